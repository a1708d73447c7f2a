"""Points dealt out as tasks: large enough that dealing is cheap, small enough to share out."""

from __future__ import annotations

from collections.abc import Sequence

from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.points import Point

Batch = tuple[Point, ...]

LARGEST_S = 1.0
"""What an interrupt may lose, and how often progress is told; a point may take longer alone."""

TASKS_PER_WORKER = 8
"""Tasks so small that no worker ends long after the others."""


def deal(grid: Sequence[Point], estimate: Estimate, *, workers: int) -> list[Batch]:
    """Cuts the grid into tasks of about equal length.

    Points of one server and replication stay next to each other, since they share the traffic and
    what the server sustains. Searches, the longest points, come first.

    Args:
        grid: The points.
        estimate: How long they take.
        workers: How many work on them.

    Returns:
        Tasks, none of them empty.
    """
    order = {server: place for place, server in enumerate(dict.fromkeys(_key(p) for p in grid))}
    ordered = sorted(grid, key=lambda point: (not point.search, order[_key(point)]))
    whole_s = sum(estimate.of(point) for point in ordered)
    target_s = min(LARGEST_S, whole_s / (workers * TASKS_PER_WORKER))
    batches: list[list[Point]] = []
    filled_s = target_s
    for point in ordered:
        if filled_s >= target_s:
            batches.append([])
            filled_s = 0.0
        batches[-1].append(point)
        filled_s += estimate.of(point)
    return [tuple(batch) for batch in batches]


def _key(point: Point) -> tuple[object, int]:
    return point.setting.server(), point.replication
