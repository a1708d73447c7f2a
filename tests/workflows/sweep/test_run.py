"""A sweep as a whole: the same on any engine, interrupted or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from slotwise_sim import PerToken
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.sweep import local
from slotwise_workflows.sweep.engine import Engine
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.points import Axes, Point, points
from slotwise_workflows.sweep.run import Sweep, sweep
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.table import limits, parquet, replays

ALONE = Engine("local", 1, None, "")
TWO = Engine("local", 2, None, "")
COSTS = {"": CostRecord.of(by_the_user(PerToken(8.0), "ms_per_token"))}


def tables(done: Sweep) -> tuple[bytes, bytes]:
    return parquet(replays(done.done), COSTS), parquet(limits(done.done), COSTS)


def test_processes_find_the_same_bytes(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...], quick: Estimate
) -> None:
    told: list[tuple[int, int]] = []
    one = sweep(uneven_scenario, small_grid, ALONE, quick)
    two = sweep(
        uneven_scenario, small_grid, TWO, quick, on_progress=lambda *done: told.append(done)
    )
    assert tables(one) == tables(two)
    assert told[0] == (0, 30)
    assert told[-1] == (30, 30)
    assert told == sorted(told)
    assert len(told) > 3


def test_the_order_of_the_grid_is_that_of_the_table(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...], quick: Estimate
) -> None:
    done = sweep(uneven_scenario, small_grid, ALONE, quick)
    assert [own.point for own in done.done] == list(small_grid)


def test_an_interrupted_sweep_goes_on(
    tmp_path: Path,
    uneven_scenario: Scenario,
    small_grid: tuple[Point, ...],
    quick: Estimate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was finished is not computed again, and what comes out is the same."""
    store = tmp_path / "s.sqlite"

    def interrupt(done: int, _total: int) -> None:
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(uneven_scenario, small_grid, ALONE, quick, store=store, on_progress=interrupt)
    computed: list[Point] = []

    def counted(scenario: Scenario, batch: Sequence[Point]) -> list[Done]:
        computed.extend(batch)
        return run_points(scenario, batch)

    monkeypatch.setattr(local, "run_points", counted)
    told: list[int] = []
    done = sweep(
        uneven_scenario,
        small_grid,
        ALONE,
        quick,
        store=store,
        on_progress=lambda done, _: told.append(done),
    )
    assert told[0] == done.reused >= 10
    assert len(computed) == 30 - done.reused
    monkeypatch.undo()
    assert tables(done) == tables(sweep(uneven_scenario, small_grid, ALONE, quick))
    again = sweep(uneven_scenario, small_grid, TWO, quick, store=store)
    assert again.reused == 30
    assert tables(again) == tables(done)


def test_a_point_that_raises_does_not_stop_the_others(
    tmp_path: Path, uneven_scenario: Scenario, quick: Estimate
) -> None:
    """Sixty lengths cannot vary so much."""
    grid = points(Axes([2], length_cvs=[0.5, 19.0], loads=[1]), 2, seed=0)
    for engine in (ALONE, TWO):
        done = sweep(uneven_scenario, grid, engine, quick, store=tmp_path / "s.sqlite")
        failed = [own for own in done.done if own.failure]
        assert {own.point.setting.length_cv for own in failed} == {19.0}
        assert len(failed) == 2
        assert "ValueError" in failed[0].failure
    assert done.reused == 2  # what failed is tried again


def test_widening_the_grid_moves_no_row(uneven_scenario: Scenario, quick: Estimate) -> None:
    small = points(Axes([4], loads=[1]), 2, seed=5)
    large = points(Axes([2, 4, 8], loads=[0.5, 1]), 4, seed=5)
    few = {own.point: own.rows for own in sweep(uneven_scenario, small, ALONE, quick).done}
    many = {own.point: own.rows for own in sweep(uneven_scenario, large, ALONE, quick).done}
    assert few == {point: many[point] for point in small}
