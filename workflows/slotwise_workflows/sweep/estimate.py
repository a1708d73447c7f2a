"""How long a sweep will take and how much memory: measured on a few of its points."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from slotwise_sim import Workload
from slotwise_sim.workload import rows_of
from slotwise_workflows.sweep.batches import neighbours
from slotwise_workflows.sweep.evaluate import run_points
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.scenario import Scenario

MOST_REQUESTS = 50_000
"""From here on a replay's time grows with its requests: of more, so many are timed."""

TIMED_S = 1.0
"""For so long further points are timed; at least one of each kind is."""

_FEW = 100
_PLACES = 6
_TOGETHER = 4  # points of a place: what they share is shared in the sweep, too
_PROCESS_BYTES = 250 << 20
# Resampled, at its load, as records, and the times that come out: measured at 10^6 requests.
_BYTES_A_REQUEST = 400


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sweep takes.

    Attributes:
        replay_s: Seconds of one processor for a replayed point, on average.
        search_s: The same for a search.
        seconds: For all points together.
        memory_bytes: Of one worker.
    """

    replay_s: float
    search_s: float
    seconds: float
    memory_bytes: int

    def of(self, point: Point) -> float:
        """Seconds for one point."""
        return self.search_s if point.search else self.replay_s


def estimate(
    scenario: Scenario, grid: Sequence[Point], *, clock: Callable[[], float] = time.perf_counter
) -> Estimate:
    """Times a few points spread over the grid.

    Args:
        scenario: What all points share.
        grid: The points.
        clock: Seconds.
    """
    n = len(scenario.workload)
    timed = min(n, MOST_REQUESTS)
    some = replace(scenario, workload=rows_of(scenario.workload, slice(0, timed)))
    few = replace(scenario, workload=rows_of(scenario.workload, slice(0, min(n, _FEW))))
    means = {}
    for search in (False, True):
        kind = neighbours([point for point in grid if point.search == search])
        together = 1 if search else _TOGETHER
        places = range(0, len(kind), max(together, -(-len(kind) // _PLACES)))
        sample = [kind[place : place + together] for place in places]
        for stretch in sample[:1] if search else sample:
            run_points(few, stretch)  # loads the compiled loops, which is not to be counted
        means[search] = _mean_s(some, sample, clock) * n / timed
    seconds = sum(means[point.search] for point in grid)
    memory = _PROCESS_BYTES + n * (_BYTES_A_REQUEST + bytes_of(scenario.workload) // n)
    return Estimate(means[False], means[True], seconds, memory)


def bytes_of(workload: Workload) -> int:
    """How much the arrays of a workload hold."""
    columns = (getattr(workload, field.name) for field in fields(workload))
    return sum(column.nbytes for column in columns if column is not None)


def _mean_s(
    scenario: Scenario, sample: Sequence[Sequence[Point]], clock: Callable[[], float]
) -> float:
    """Seconds a point, of those that do not fail."""
    spent_s, timed = 0.0, 0
    for stretch in sample:
        if spent_s >= TIMED_S:
            break
        begin = clock()
        done = run_points(scenario, stretch)
        if whole := sum(not own.failure for own in done):
            spent_s += clock() - begin
            timed += whole
    return spent_s / timed if timed else 0.0
