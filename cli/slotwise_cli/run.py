"""`slotwise run`: what a host calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    workflow: Annotated[str, typer.Argument(help="Id of a workflow in template.yaml: diagnose.")],
    inputs: Annotated[
        Path, typer.Option("--inputs", metavar="FILE", help="The workflow's inputs, as JSON.")
    ],
    output_dir: Annotated[
        Path,
        typer.Option("--output-dir", metavar="DIR", help="A new or empty directory for artifacts."),
    ],
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            metavar="FILE",
            help="Where events go, as JSON lines; events.jsonl in the output directory by default.",
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the workflow's outputs as JSON on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No messages on stderr.")] = False,
    no_input: Annotated[  # noqa: ARG001 - hosts pass it to every command
        bool, typer.Option("--no-input", help="Never ask; a run never does.")
    ] = False,
) -> None:
    """Run a workflow for a host: inputs file in, artifacts and events out.

    Ends with 0, with 4 where the log holds too little to decide on, or with an error's exit code;
    the last line of the events file says the same.
    """
    from slotwise_workflows.host.run import run_workflow

    events_file = events or output_dir / "events.jsonl"
    finished = run_workflow(
        workflow,
        inputs_file=inputs,
        output_dir=output_dir,
        events_file=events_file,
        command=[
            *("slotwise", "run", workflow, "--inputs", str(inputs)),
            *("--output-dir", str(output_dir), "--events", str(events_file)),
        ],
    )
    if json_:
        import json

        typer.echo(json.dumps(finished.outputs, ensure_ascii=False))
    if not quiet:
        said = ", ".join(f"{name} {value}" for name, value in finished.outputs.items())
        typer.echo(f"{workflow} finished: {said}; artifacts in {output_dir}", err=True)
    if finished.exit_code:
        raise typer.Exit(finished.exit_code)
