"""A sweep from its grid to its table, on whichever engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from slotwise_sim import Cost, Memory, Workload
from slotwise_sim.replicate import run_length
from slotwise_workflows.costs import CostRecord, StatedCost
from slotwise_workflows.sweep.evaluate import Scenario, baseline
from slotwise_workflows.sweep.local import run_local
from slotwise_workflows.sweep.points import OnProgress, Point
from slotwise_workflows.sweep.ray_engine import run_ray
from slotwise_workflows.sweep.table import SweepReport, summary, table

EngineName = Literal["local", "ray"]


@dataclass(frozen=True, slots=True)
class Engine:
    """Where the points are evaluated.

    Attributes:
        name: In this process, or as Ray tasks.
        workers: Processes, or processors of a Ray of our own.
        address: Of an existing Ray cluster, or None.
        why: One sentence for a person: which engine, and why this one.
    """

    name: EngineName
    workers: int
    address: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep.

    Attributes:
        engine: What it ran on; the table does not depend on it.
        grid: Its points.
        seed: The run's seed.
        frame: A row a point and policy, see `slotwise_workflows.sweep.table.COLUMNS`.
    """

    engine: EngineName
    grid: tuple[Point, ...]
    seed: int
    frame: pl.DataFrame


def choose_engine(
    asked: Literal["auto", "local", "ray"], *, address: str | None, workers: int | None
) -> Engine:
    """Settle on an engine.

    ``auto`` takes Ray only if it was given the address of a cluster: on one machine the local
    engine needs nothing installed and nothing started.

    Args:
        asked: What the user asked for.
        address: Of an existing Ray cluster, or None.
        workers: How many; None is one for every processor this process may use.

    Returns:
        The engine.
    """
    count = workers or available_processors()
    if asked == "ray" or (asked == "auto" and address is not None):
        reason = "a cluster's address was given" if asked == "auto" else "asked for"
        place = f"the cluster at {address}" if address else f"{count} processors of this machine"
        return Engine("ray", count, address, f"engine ray on {place} ({reason})")
    reason = "no cluster's address was given" if asked == "auto" else "asked for"
    return Engine("local", count, None, f"engine local, at most {count} processes ({reason})")


def sweep(
    workload: Workload,
    grid: Sequence[Point],
    cost: Cost,
    engine: Engine,
    *,
    seed: int,
    replicas: int = 1,
    memory: Memory | None = None,
    prediction_errors: Mapping[str, float] | None = None,
    on_progress: OnProgress | None = None,
) -> Sweep:
    """Evaluate every point of the grid.

    The engine, its workers and their order leave no trace in the table.

    Args:
        workload: The traffic at load 1.
        grid: What `slotwise_workflows.sweep.points.points` laid out.
        cost: What tokens or iterations cost.
        engine: Where to evaluate.
        seed: The seed the grid was laid out with.
        replicas: Servers behind a round-robin balancer, each with the point's slots.
        memory: KV memory of each server; None never limits.
        prediction_errors: How far the lengths that a binned policy goes by are off, by its name;
            none are where that is not told.
        on_progress: Told how many points are done, of how many.

    Returns:
        The finished sweep.

    Raises:
        MissingExtraError: Ray was asked for and is not installed.
        EndpointError: The Ray cluster cannot be reached.
        SlotwiseError: A Ray task failed for good.
    """
    run = run_length(workload)
    scenario = Scenario(workload, cost, replicas, run, memory, prediction_errors or {})
    told = on_progress or _ignore
    if engine.name == "ray":
        rows = run_ray(
            scenario, grid, workers=engine.workers, address=engine.address, on_progress=told
        )
    else:
        rows = run_local(scenario, grid, workers=engine.workers, on_progress=told)
    return Sweep(engine.name, tuple(grid), seed, table(rows, grid))


def report(done: Sweep, cost: StatedCost, memory: Memory | None = None) -> SweepReport:
    """The sweep as ``sweep --json`` says it, with what it was replayed at."""
    return SweepReport(
        engine=done.engine,
        points=len(done.grid),
        seed=done.seed,
        cost=CostRecord.of(cost),
        memory=memory,
        baseline=baseline(done.grid[0].policies),
        rows=summary(done.frame),
    )


def available_processors() -> int:
    """Processors this process may use, which a container's owner may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ignore(_done: int, _total: int) -> None:
    """Listen to nothing."""
