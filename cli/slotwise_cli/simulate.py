"""`slotwise simulate`: one workload under the policies named, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotwise_cli import options
from slotwise_cli.console import Console
from slotwise_cli.faults import place_named_by


def simulate(
    workload: options.Workload,
    requests_out: Annotated[
        Path | None,
        typer.Option(
            "--requests-out",
            metavar="FILE.csv",
            help="Write the times of every request under every policy.",
        ),
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Replay a workload under its policies, side by side.

    Same requests, same slots, same cost; only the order of filling differs.
    """
    from slotwise_cli.summary import print_simulation
    from slotwise_workflows.config import load_workload
    from slotwise_workflows.files import check_output
    from slotwise_workflows.requests import input_files
    from slotwise_workflows.simulation import simulate_file, write_requests

    console = Console(quiet=quiet)
    workload_file = load_workload(workload)
    if requests_out is not None:
        with place_named_by("--requests-out"):
            check_output(requests_out, (workload, *input_files(workload_file)))
    with console.progress("simulating") as advance:
        simulation = simulate_file(workload_file, seed=seed, on_progress=advance)
    for note in simulation.result.notes:
        console.note(f"note: {note}")
    if requests_out is not None:
        with place_named_by("--requests-out"):
            write_requests(simulation, requests_out)
        console.note(f"wrote {requests_out}")
    if json:
        console.json(simulation.result)
    else:
        print_simulation(simulation.result)
