"""Points dealt out as tasks: large enough that dealing is cheap, small enough to share out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slotwise_workflows.sweep.points import Point

if TYPE_CHECKING:
    from slotwise_workflows.sweep.estimate import Estimate

Batch = tuple[Point, ...]

LARGEST_S = 1.0
"""What an interrupt may lose, and how often progress is told; a point may take longer alone."""

TASKS_PER_WORKER = 8
"""Tasks so small that no worker ends long after the others."""

MOST_DEATHS = 3
"""A task whose worker died so often is tried point by point, and a point is then given up."""


@dataclass(frozen=True, slots=True)
class Task:
    """Points to be computed, and how often a worker has died that was at them."""

    batch: Batch
    deaths: int = 0


def after_a_death(task: Task) -> list[Task]:
    """What is to be run again when the worker died that was at a task.

    Most often it had no memory left, or somebody killed it: then the task is none the worse. But
    one of its points may be what kills, and the others are still to be had.

    Args:
        task: What it was at.

    Returns:
        The tasks to run; none where a single point is to be given up.
    """
    died = replace(task, deaths=task.deaths + 1)
    if died.deaths < MOST_DEATHS:
        return [died]
    return [Task((point,)) for point in task.batch] if len(task.batch) > 1 else []


def deal(grid: Sequence[Point], estimate: Estimate, *, workers: int) -> list[Batch]:
    """Cuts the grid into tasks of about equal length.

    Searches, the longest points, come first; the rest is in the order of `neighbours`.

    Args:
        grid: The points.
        estimate: How long they take.
        workers: How many work on them.

    Returns:
        Tasks, none of them empty.
    """
    ordered = sorted(neighbours(grid), key=lambda point: not point.search)
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


def neighbours(grid: Sequence[Point]) -> list[Point]:
    """The grid in an order in which points of one server and replication are next to each other.

    They share the traffic and what the server sustains: together they take less than apart.
    """
    order: dict[object, int] = {}
    for point in grid:
        order.setdefault((point.setting.server(), point.replication), len(order))
    return sorted(grid, key=lambda point: order[point.setting.server(), point.replication])
