"""`slotwise demo`: the article's case end to end, and its control."""

from __future__ import annotations

import sys

import typer

from slotwise_cli import options
from slotwise_cli.console import Console, choose_language


def demo(
    output_dir: options.OutputDir = None,
    language: options.Language = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Show the whole job on a well-known case.

    Table, verdict and report of 600 requests to eight slots, of which 15 % have long answers; and
    right after it the same requests with equal lengths, where the answer is no. Needs no file and
    no network. With --json, files are written only if --output-dir is given.
    """
    from pathlib import Path

    from slotwise_cli.summary import print_policies, verdict_lines
    from slotwise_workflows.demo import demo as run_demo
    from slotwise_workflows.files import prepare_directory
    from slotwise_workflows.provenance import provenance
    from slotwise_workflows.report import write_report
    from slotwise_workflows.run_directory import write_result

    console = Console(quiet=quiet)
    told = choose_language(language)
    directory = output_dir or (None if json else Path("slotwise-demo"))
    if directory is not None:
        prepare_directory(directory)
    with console.progress("demo") as advance:
        result = run_demo(
            seed=seed,
            provenance=provenance(
                files=(), command=["slotwise", *sys.argv[1:]], config={}, seed=seed
            ),
            on_progress=advance,
        )
    cases = [(result, directory)]
    if result.control is not None:
        cases.append((result.control, directory and directory / "control"))
    for case, place in cases:
        if place is not None:
            prepare_directory(place)
            write_report(case, place, language=told)
            write_result(case, place)
        if not json:
            shown = {key: case.policies[key] for key in ("static", "continuous")}
            print_policies(shown, title=f"{case.name}, seconds", requests=case.requests)
            for line in verdict_lines(case, told):
                console.out(line)
            if place is not None:
                console.out(f"Report: {place / 'report.html'}")
            typer.echo()
    if json:
        console.json(result)
