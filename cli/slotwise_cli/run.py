"""`slotwise run`: what a host calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from slotwise_cli import options
from slotwise_cli.console import Console


def run(
    workflow: Annotated[
        str, typer.Argument(metavar="WORKFLOW", help="Its id in template.yaml: diagnose.")
    ],
    inputs: Annotated[
        Path, typer.Option("--inputs", metavar="FILE", help="The workflow's inputs, as JSON.")
    ],
    output_dir: Annotated[
        Path,
        typer.Option("--output-dir", metavar="DIR", help="For artifacts; made, or empty."),
    ],
    events: Annotated[
        Path | None,
        typer.Option("--events", metavar="FILE", help="JSON lines; DIR/events.jsonl if left out."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - a run never asks
) -> None:
    """Run a workflow for a host.

    An inputs file goes in, artifacts and events come out. Ends with 0, with 4 where the log holds
    too little to decide on, or with the code of an error; the last event says the same.
    """
    from slotwise_workflows.host.run import run_workflow

    console = Console(quiet=quiet)
    finished = run_workflow(
        workflow,
        inputs_file=inputs,
        output_dir=output_dir,
        events_file=events or output_dir / "events.jsonl",
        command=["slotwise", *sys.argv[1:]],
    )
    if json:
        console.json(finished.outputs)
    said = ", ".join(f"{k}: {v}" for k, v in finished.outputs.items() if isinstance(v, str))
    console.note(f"{workflow} finished in {output_dir} ({said})")
    if finished.exit_code:
        raise typer.Exit(finished.exit_code)
