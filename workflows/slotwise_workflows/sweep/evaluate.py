"""Points as a worker is given them: one after another, and none takes the others with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.sweep.limits import find_limits
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.replay import replay
from slotwise_workflows.sweep.rows import Limit, Row
from slotwise_workflows.sweep.scenario import Bench, Scenario, bench


@dataclass(frozen=True, slots=True)
class Done:
    """A point that a worker is done with.

    Attributes:
        point: Which one.
        rows: One a policy, in their order; of a search, limits. Empty where it failed.
        failure: Why there are none, in one line; empty where there are.
    """

    point: Point
    rows: tuple[Row, ...] | tuple[Limit, ...] = ()
    failure: str = ""


def run_points(scenario: Scenario, batch: Sequence[Point]) -> list[Done]:
    """Several points, as one task of a worker; in any order, and told in that order."""
    shared = bench(scenario)
    return [_run(shared, point) for point in batch]


def _run(shared: Bench, point: Point) -> Done:
    try:
        rows = find_limits(shared, point) if point.search else replay(shared, point)
    except SlotwiseError as error:
        return Done(point, failure=str(error))
    except Exception as error:  # whatever it is, the other points are still to be had
        return Done(point, failure=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return Done(point, rows)
