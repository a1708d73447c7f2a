"""`slotwise sweep`: the grid of slots and loads in a workload file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotwise_cli import options
from slotwise_cli.console import Console

if TYPE_CHECKING:
    from slotwise_workflows.result import Estimate
    from slotwise_workflows.sweep import SweepReport
    from slotwise_workflows.sweep.table import SweepRow

FILE = "sweep.parquet"
_BEST = "best gain"


def sweep(
    workload: options.Workload,
    engine: Annotated[
        Literal["auto", "local", "ray"] | None,
        typer.Option(
            "--engine", metavar="auto|local|ray", help="Where it runs; the file's if left out."
        ),
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT",
            help="Of an existing Ray cluster; the file's, else RAY_ADDRESS, if left out.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=1024, metavar="N", help="Processors used; all if left out."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")
    ] = False,
    output_dir: options.OutputDir = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Replay a workload over its grid of slots and loads.

    Every point is replayed many times on resampled traffic, the same for all policies.
    """
    from slotwise_cli.summary import setting_lines
    from slotwise_workflows.config import load_workload
    from slotwise_workflows.files import prepare_directory, write_file
    from slotwise_workflows.run_directory import default_directory
    from slotwise_workflows.sweep import choose_engine, parquet, report
    from slotwise_workflows.sweep.file import plan_sweep, sweep_file

    console = Console(quiet=quiet)
    workload_file = load_workload(workload)
    execution = workload_file.execution
    plan = plan_sweep(workload_file, seed=seed)
    asked = engine or execution.engine
    address = ray_address or execution.address
    if asked == "ray" and address is None:
        address = os.environ.get("RAY_ADDRESS") or None
    chosen = choose_engine(asked, address=address, workers=workers)
    points = "1 point" if len(plan.grid) == 1 else f"{len(plan.grid)} points"
    policies = "1 policy" if len(plan.policies) == 1 else f"{len(plan.policies)} policies"
    console.note(f"{points} under {policies}: {', '.join(plan.policies)}; {chosen.why}")
    if dry_run:
        if json:
            console.json({"engine": chosen.name, "points": len(plan.grid), "dry_run": True})
        return
    directory = prepare_directory(output_dir or default_directory(workload_file.name))
    with console.progress("sweeping") as advance:
        done, notes = sweep_file(workload_file, plan, chosen, on_progress=advance)
    for note in notes:
        console.note(f"note: {note}")
    written = write_file(directory / FILE, parquet(done.frame, plan.cost))
    found = report(done, plan.cost, plan.memory)
    if json:
        console.json(found)
    else:
        _print_grid(found)
        for line in setting_lines(found.cost, found.memory):
            console.out(line)
    console.note(f"wrote {written}")


def _print_grid(found: SweepReport) -> None:
    """Mean latency by slots and load, one column a policy, and whose gain is the best."""
    from rich import box
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(row.policy for row in found.rows))
    points: dict[tuple[int, float], dict[str, SweepRow]] = {}
    for row in found.rows:
        points.setdefault((row.slots, row.load), {})[row.policy] = row
    table = Table(box=box.SIMPLE_HEAD, title=Text("mean latency in seconds"), title_justify="left")
    console = RichConsole(file=sys.stdout, markup=False, highlight=False, emoji=False)
    rows = [_cells(slots, load, by_policy, names) for (slots, load), by_policy in points.items()]
    for column in _heads(names, rows, console.width):
        table.add_column(Text(column), justify="right", no_wrap=column != _BEST, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    table.caption = Text(
        "best gain: the policy that sustains most requests per second here, over batches in order "
        "of arrival (95 % of replications). "
        "* overloaded: the mean grows with the length of the traffic."
    )
    table.caption_justify = "left"
    console.print(table)


def _cells(
    slots: int, load: float, by_policy: dict[str, SweepRow], names: list[str]
) -> tuple[str, ...]:
    gains = {name: row.gain for name, row in by_policy.items() if row.gain is not None}
    best = max(gains, key=lambda name: gains[name].estimate, default="")
    latencies = (_latency(by_policy[name]) for name in names)
    return (str(slots), f"{load:g}", f"{best} {_gain(gains[best])}" if best else "-", *latencies)


def _heads(names: list[str], rows: list[tuple[str, ...]], width: int) -> tuple[str, ...]:
    """The columns' heads; policies by short names where the whole ones leave no room."""
    whole = ("slots", "load", _BEST, *names)
    wide = (max(map(len, column)) + 3 for column in zip(whole, *rows, strict=True))
    if sum(wide) <= width:
        return whole
    return tuple(
        head.replace("dynamic", "dyn").replace("continuous", "cont") if head in names else head
        for head in whole
    )


def _gain(gain: Estimate) -> str:
    return f"{gain.estimate:.2f} ({gain.low:.2f}-{gain.high:.2f})"


def _latency(row: SweepRow) -> str:
    overloaded = row.utilisation is not None and row.utilisation.estimate > 1
    return f"{row.latency_mean_s.estimate:.2f}{'*' if overloaded else ' '}"
