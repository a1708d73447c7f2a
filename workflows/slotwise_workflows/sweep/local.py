"""The local engine: this process, and a few more where the work is large."""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.sweep.evaluate import Row, Scenario, run_point, run_points
from slotwise_workflows.sweep.points import OnProgress, Point, deal

LARGE = 20_000_000
"""Simulated requests from which further processes pay: below, starting them takes longer."""

TASKS_PER_WORKER = 8
"""Batches small enough that no worker ends long after the others."""

LARGEST_TASK = 4_000_000
"""Simulated requests of a batch, about a second's: an interrupt waits for the batches begun."""


def run_local(
    scenario: Scenario,
    grid: Sequence[Point],
    *,
    workers: int,
    on_progress: OnProgress,
) -> list[Row]:
    """Evaluate the points on this machine.

    Small grids run in this process. Large ones run in ``workers`` processes started afresh
    (``spawn``: the same on every platform, and no state of this process enters), so a script that
    calls this needs the usual ``if __name__ == "__main__":``.

    Args:
        scenario: What all points share.
        grid: The points, in any order.
        workers: Processes at most, >= 1.
        on_progress: Told how many points are done, of how many.

    Returns:
        The rows, in no particular order.

    Raises:
        SlotwiseError: A process died.
    """
    if workers > 1 and len(grid) > 1 and simulated_requests(scenario, grid) >= LARGE:
        return run_processes(scenario, grid, workers=workers, on_progress=on_progress)
    rows: list[Row] = []
    for done, point in enumerate(grid, start=1):
        rows.extend(run_point(scenario, point))
        on_progress(done, len(grid))
    return rows


def run_processes(
    scenario: Scenario,
    grid: Sequence[Point],
    *,
    workers: int,
    on_progress: OnProgress,
) -> list[Row]:
    """Evaluate the points in processes of their own; see `run_local`.

    Interrupting it drops the batches that have not begun and waits for those that have.
    """
    rows: list[Row] = []
    done = 0
    by_size = math.ceil(simulated_requests(scenario, grid) / LARGEST_TASK)
    batches = deal(grid, max(workers * TASKS_PER_WORKER, by_size))
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_interrupts
    )
    try:
        running = {pool.submit(run_points, scenario, batch): len(batch) for batch in batches}
        for future in as_completed(running):
            rows.extend(future.result())
            done += running[future]
            on_progress(done, len(grid))
    except BrokenProcessPool:
        raise SlotwiseError(
            "a worker process of the sweep died",
            why="most often the machine had no memory left",
            hint="Use fewer --workers",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return rows


def simulated_requests(scenario: Scenario, grid: Sequence[Point]) -> int:
    """How many requests the grid replays in all."""
    return len(scenario.workload) * sum(len(point.policies) for point in grid)


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; only the first one is to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
