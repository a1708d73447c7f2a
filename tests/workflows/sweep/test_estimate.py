from __future__ import annotations

import itertools

import numpy as np
import pytest

from slotwise_sim import Workload
from slotwise_workflows.sweep import estimate as module
from slotwise_workflows.sweep.estimate import MOST_REQUESTS, bytes_of, estimate
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.points import Axes, Point, points
from slotwise_workflows.sweep.scenario import Scenario


class Clock:
    """A second passes at every look."""

    def __init__(self) -> None:
        self.ticks = itertools.count()

    def __call__(self) -> float:
        return float(next(self.ticks))


def test_points_are_timed_and_counted(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    found = estimate(uneven_scenario, small_grid, clock=Clock())
    assert (found.replay_s, found.search_s) == (1 / 4, 1.0)  # four replays at once, a search
    assert found.seconds == 24 / 4 + 6
    assert {found.of(point) for point in small_grid if point.search} == {1.0}


def test_time_is_bounded(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One replay and one search take longer than is to be spent: no more are run."""
    timed: list[int] = []

    def counted(scenario: Scenario, batch: list[Point]) -> list[Done]:
        if len(scenario.workload) == 60:  # not of the few requests that load what is compiled
            timed.append(len(batch))
        return [Done(point) for point in batch]

    monkeypatch.setattr(module, "_FEW", 30)
    monkeypatch.setattr(module, "run_points", counted)
    estimate(uneven_scenario, small_grid, clock=Clock())
    assert timed == [4, 1]


def test_what_fails_is_not_counted(uneven_scenario: Scenario) -> None:
    """It takes no time, and would make the others look quick."""
    grid = points(Axes([4], length_cvs=[19.0, 0.5], loads=[1]), 1, seed=0)
    assert estimate(uneven_scenario, grid, clock=Clock()).replay_s == 1.0
    assert estimate(uneven_scenario, grid[1:], clock=Clock()).replay_s == 0.0


def test_a_large_traffic_is_timed_in_part(uneven_scenario: Scenario) -> None:
    n = 3 * MOST_REQUESTS
    large = Workload(np.arange(float(n)), np.full(n, 9), np.zeros(n, np.int64))
    scenario = Scenario(large, uneven_scenario.policies, uneven_scenario.costs, run=9)
    grid = points(Axes([4], loads=[1]), 2, seed=0)
    found = estimate(scenario, grid, clock=Clock())
    assert found.replay_s == pytest.approx(3 / 2)  # both in a second, of a third of it
    assert found.seconds == pytest.approx(3)
    assert found.memory_bytes > n * 24 == bytes_of(large)


def test_nothing_takes_no_time(uneven_scenario: Scenario) -> None:
    found = estimate(uneven_scenario, ())
    assert (found.replay_s, found.search_s, found.seconds) == (0, 0, 0)
