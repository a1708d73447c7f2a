from __future__ import annotations

import itertools

import numpy as np
import pytest

from slotwise_sim import Workload
from slotwise_workflows.sweep import estimate as module
from slotwise_workflows.sweep.estimate import MOST_REQUESTS, bytes_of, estimate
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
    assert (found.replay_s, found.search_s) == (1.0, 1.0)
    assert found.seconds == 30.0
    assert {found.of(point) for point in small_grid} == {1.0}


def test_time_is_bounded(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One replay and one search take longer than is to be spent: no more are run."""
    run: list[Point] = []

    def counted(_scenario: Scenario, batch: list[Point]) -> list[object]:
        run.extend(batch)
        return []

    monkeypatch.setattr(module, "run_points", counted)
    estimate(uneven_scenario, small_grid, clock=Clock())
    assert len(run) == 4  # one of each kind to load what is compiled, and one of each timed


def test_a_large_traffic_is_timed_in_part(uneven_scenario: Scenario) -> None:
    n = 3 * MOST_REQUESTS
    large = Workload(np.arange(float(n)), np.full(n, 9), np.zeros(n, np.int64))
    scenario = Scenario(large, uneven_scenario.policies, uneven_scenario.costs, run=9)
    grid = points(Axes([4], loads=[1]), 2, seed=0)
    found = estimate(scenario, grid, clock=Clock())
    assert found.replay_s == pytest.approx(3)
    assert found.seconds == pytest.approx(6)
    assert found.memory_bytes > n * 24 == bytes_of(large)


def test_nothing_takes_no_time(uneven_scenario: Scenario) -> None:
    found = estimate(uneven_scenario, ())
    assert (found.replay_s, found.search_s, found.seconds) == (0, 0, 0)
