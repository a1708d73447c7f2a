"""`slotwise sweep`: the grid of servers, loads and lengths in a workload file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotwise_cli import options
from slotwise_cli.console import Console, choose_language
from slotwise_workflows.errors import Cancelled, SlotwiseError

if TYPE_CHECKING:
    from slotwise_workflows.sweep.estimate import Estimate
    from slotwise_workflows.sweep.evaluate import Done
    from slotwise_workflows.sweep.file import Plan
    from slotwise_workflows.sweep.points import Setting

STORE = "sweep.partial.sqlite"

MOST_SETTINGS = 40
"""Lines of a dry run's list; `--json` has all of them."""


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
        bool,
        typer.Option("--dry-run", help="Say what would be run and how long it takes; run nothing."),
    ] = False,
    output_dir: options.OutputDir = None,
    language: options.Language = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Replay a workload over its grid of servers, loads and lengths.

    Every point is replayed many times on resampled traffic, the same for all policies. What is
    finished is kept: after Ctrl-C the same command goes on where it stopped.
    """
    from slotwise_cli.sweep_summary import print_sweep
    from slotwise_workflows.config import load_workload
    from slotwise_workflows.files import prepare_directory, write_file
    from slotwise_workflows.report.sweep_page import write_sweep_page
    from slotwise_workflows.run_directory import as_json, default_directory
    from slotwise_workflows.sweep.engine import choose_engine
    from slotwise_workflows.sweep.estimate import estimate
    from slotwise_workflows.sweep.file import plan_sweep, report
    from slotwise_workflows.sweep.files import write_sweep
    from slotwise_workflows.sweep.run import sweep as run_sweep
    from slotwise_workflows.sweep.run import unfinished

    console = Console(quiet=quiet)
    workload_file = load_workload(workload)
    asked = engine or workload_file.execution.engine
    address = ray_address or workload_file.execution.address
    if asked != "local" and address is None:
        address = os.environ.get("RAY_ADDRESS") or None
    with console.progress("reading") as advance:
        plan = plan_sweep(workload_file, seed=seed, on_progress=advance)
    directory = output_dir or default_directory(workload_file.name)
    missing = unfinished(plan.scenario, plan.grid, directory / STORE)
    work = estimate(plan.scenario, missing)
    chosen = choose_engine(asked, address=address, workers=workers, estimate=work)
    console.note(f"{_size(plan, len(plan.grid) - len(missing))}; {chosen.why}")
    if dry_run:
        _print_plan(console, plan, work, chosen.name, json=json)
        return
    store = prepare_directory(directory) / STORE
    with console.progress("sweeping", counted=True) as advance, _kept_on_ctrl_c(plan, store):
        done = run_sweep(plan.scenario, plan.grid, chosen, work, store=store, on_progress=advance)
    found = report(plan, done, workload_file.name)
    told = choose_language(language, workload_file.report.language)
    write_sweep(done.done, found.costs, directory)
    write_file(directory / "sweep.json", as_json(found))
    page = write_sweep_page(found, directory, language=told)
    for note in found.notes:
        console.note(f"note: {note}")
    if json:
        console.json(found)
    else:
        print_sweep(console, found)
    if done.reused:
        console.note(
            f"{done.reused:,} of {len(plan.grid):,} points were finished by an earlier run"
        )
    console.note(f"wrote {page[0]}, and its tables and pictures beside it")
    _raise_failures(plan, [own for own in done.done if own.failure])


def _size(plan: Plan, finished: int) -> str:
    searches = sum(point.search for point in plan.grid)
    points = "1 point" if len(plan.grid) == 1 else f"{len(plan.grid):,} points"
    if searches:
        points += f" ({len(plan.grid) - searches:,} replays, {searches:,} searches)"
    if finished:
        points += f", {finished:,} of them finished"
    names = plan.scenario.policies
    policies = "1 policy" if len(names) == 1 else f"{len(names)} policies"
    return f"{points} under {policies}: {', '.join(names)}"


@contextmanager
def _kept_on_ctrl_c(plan: Plan, store: Path) -> Iterator[None]:
    """Says at Ctrl-C how much of the sweep is kept.

    Raises:
        Cancelled: At Ctrl-C.
    """
    from slotwise_workflows.sweep.run import unfinished

    try:
        yield
    except KeyboardInterrupt:
        total = len(plan.grid)
        kept = total - len(unfinished(plan.scenario, plan.grid, store))
        raise Cancelled(
            "cancelled",
            why=f"{kept:,} of {total:,} points are finished and kept",
            hint="The same command goes on from there",
        ) from None


def _print_plan(console: Console, plan: Plan, work: Estimate, engine: str, *, json: bool) -> None:
    """What a dry run says."""
    settings = list(dict.fromkeys((point.setting, point.search) for point in plan.grid))
    if json:
        console.json(
            {
                "dry_run": True,
                "engine": engine,
                "points": len(plan.grid),
                "settings": [{**asdict(own), "limits": search} for own, search in settings],
                "seconds": work.seconds,
                "memory_bytes": work.memory_bytes,
            }
        )
        return
    for own, search in settings[:MOST_SETTINGS]:
        console.out(_told(own, search=search))
    if len(settings) > MOST_SETTINGS:
        console.out(f"... and {len(settings) - MOST_SETTINGS:,} more")


def _told(setting: Setting, *, search: bool) -> str:
    """A setting in words, as a dry run lists it and a failure is named."""
    words = [setting.cost, f"{setting.slots} slots"]
    if setting.replicas > 1:
        words.append(f"{setting.replicas} servers, {setting.balancer}")
    if setting.length_cv is not None:
        words.append(f"length CV {setting.length_cv:g}")
    if search:
        words.append("limits")
    elif setting.load is not None:
        words.append(f"load {setting.load:g}")
    else:
        words.append("offline" if setting.users is None else f"{setting.users} users")
    return ", ".join(words)


def _raise_failures(plan: Plan, failed: Sequence[Done]) -> None:
    """Names the first points that were not computed; the rest stand in the summary.

    Raises:
        SlotwiseError: There are some.
    """
    if not failed:
        return
    first = failed[0]
    point = first.point
    raise SlotwiseError(
        f"{len(failed):,} of {len(plan.grid):,} points failed",
        why=f"the first, {_told(point.setting, search=point.search)}, replication "
        f"{point.replication}: {first.failure}",
        hint="The others are written; sweep.json names all that failed. "
        "The same command tries them again",
    )
