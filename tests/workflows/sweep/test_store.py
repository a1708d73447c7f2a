"""Finished points: known by their content, never stale, never half there."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slotwise_sim import Continuous, Memory, PerToken, Static, Step
from slotwise_workflows.errors import InputError
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.points import Point, Setting
from slotwise_workflows.sweep.run import unfinished
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.store import key_of, open_store
from slotwise_workflows.thinking import Thinking

REPLAY = Point(Setting(4, load=1.0), 0, 7)
SEARCH = Point(Setting(4), 0, 7, search=True)


def test_what_is_kept_comes_back_the_same(
    tmp_path: Path, uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    done = run_points(uneven_scenario, small_grid)
    with open_store(tmp_path / "s.sqlite", uneven_scenario) as store:
        store.keep(done[:9])
        store.keep(done[5:])  # some for the second time
    with open_store(tmp_path / "s.sqlite", uneven_scenario) as store:
        found = {own.point: own for own in store.finished(small_grid)}
    assert tuple(found[point] for point in small_grid) == tuple(done)


def test_what_failed_is_not_finished(tmp_path: Path, uneven_scenario: Scenario) -> None:
    with open_store(tmp_path / "s.sqlite", uneven_scenario) as store:
        store.keep([Done(REPLAY, failure="it broke")])
        assert list(store.finished([REPLAY])) == []


OTHERS: list[dict[str, Any]] = [
    {"policies": {"static": Static(), "continuous": Continuous("separate")}},
    {"policies": {"continuous": Continuous(), "static": Static()}},
    {"costs": {"": PerToken(8.000001)}},
    {"costs": {"": Step(base_ms=8)}},
    {"run": 4},
    {"prediction_errors": {"static": 0.1}},
    {"thinking": Thinking(1.0)},
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
@pytest.mark.parametrize("point", [REPLAY, SEARCH], ids=["replay", "search"])
def test_what_is_computed_otherwise_is_another_point(
    uneven_scenario: Scenario, other: dict[str, Any], point: Point
) -> None:
    assert key_of(uneven_scenario)(point) != key_of(replace(uneven_scenario, **other))(point)


@pytest.mark.parametrize("column", ["arrival_s", "output_tokens", "prompt_tokens"])
def test_other_traffic_is_another_point(uneven_scenario: Scenario, column: str) -> None:
    workload = uneven_scenario.workload
    changed = getattr(workload, column).copy()
    changed[17] += 1
    other = replace(uneven_scenario, workload=replace(workload, **{column: changed}))
    capped = replace(
        uneven_scenario, workload=replace(workload, max_tokens=np.full(len(workload), 300))
    )
    assert len({key_of(own)(REPLAY) for own in (uneven_scenario, other, capped)}) == 3


@pytest.mark.parametrize(
    "other",
    [
        {"setting": Setting(4, load=2.0)},
        {"setting": Setting(5, load=1.0)},
        {"setting": Setting(4, load=1.0, length_cv=1.0)},
        {"setting": Setting(4, users=1)},
        {"setting": Setting(4, 2, load=1.0)},
        {"setting": Setting(4, 1, "least_busy", load=1.0)},
        {"seed": 8},
        {"replication": 1},
        {"search": True},
    ],
    ids=str,
)
def test_points_differ(uneven_scenario: Scenario, other: dict[str, Any]) -> None:
    key = key_of(uneven_scenario)
    assert key(REPLAY) != key(replace(REPLAY, **other))


def test_what_does_not_matter_changes_nothing(uneven_scenario: Scenario) -> None:
    """Objectives are of searches alone, memory of step costs, other costs of other points."""
    key = key_of(uneven_scenario)
    with_more = replace(uneven_scenario, costs={"": PerToken(8.0), "other": PerToken(9.0)})
    assert key_of(with_more)(SEARCH) == key(SEARCH)
    limited = replace(uneven_scenario, memory=Memory(999))
    assert key_of(limited)(SEARCH) == key(SEARCH)
    asked = replace(uneven_scenario, objectives={"latency": 5.0})
    assert key_of(asked)(REPLAY) == key(REPLAY)
    assert key_of(asked)(SEARCH) != key(SEARCH)
    stepped = replace(uneven_scenario, costs={"": Step(base_ms=8)})
    assert key_of(replace(stepped, memory=Memory(999)))(REPLAY) != key_of(stepped)(REPLAY)


def test_another_version_of_the_code_reuses_nothing(
    uneven_scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key_of(uneven_scenario)(REPLAY)
    monkeypatch.setattr("slotwise_workflows.sweep.store.state_of_the_code", lambda: "another")
    assert key_of(uneven_scenario)(REPLAY) != before


def test_what_another_version_found_goes_when_it_is_swept_and_not_when_it_is_looked_at(
    tmp_path: Path, uneven_scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sqlite"

    def rows() -> int:
        with sqlite3.connect(path) as file:
            [count] = file.execute("SELECT count(*) FROM points").fetchone()
        file.close()
        return int(count)

    with open_store(path, uneven_scenario) as store:
        store.keep(run_points(uneven_scenario, [REPLAY]))
    with monkeypatch.context() as patched:
        patched.setattr("slotwise_workflows.sweep.store.state_of_the_code", lambda: "another")
        assert unfinished(uneven_scenario, [REPLAY], path) == [REPLAY]
    assert rows() == 1
    assert unfinished(uneven_scenario, [REPLAY], path) == []
    with monkeypatch.context() as patched:
        patched.setattr("slotwise_workflows.sweep.store.state_of_the_code", lambda: "another")
        with open_store(path, uneven_scenario) as store:
            store.drop_stale()
    assert rows() == 0


def test_a_file_of_something_else_is_left_alone(tmp_path: Path, uneven_scenario: Scenario) -> None:
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("no database at all, but a letter that somebody wrote\n" * 100)
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE invoices (number)")
    other.close()
    for path in (text, database):
        before = path.read_bytes()
        with (
            pytest.raises(InputError, match="cannot be kept here") as error,
            open_store(path, uneven_scenario),
        ):
            pass
        assert error.value.where == str(path)
        assert path.read_bytes() == before


def test_a_damaged_file_is_told(tmp_path: Path, uneven_scenario: Scenario) -> None:
    path = tmp_path / "s.sqlite"
    with open_store(path, uneven_scenario) as store:
        store.keep(run_points(uneven_scenario, [REPLAY]))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with (
        pytest.raises(InputError, match="cannot be kept here"),
        open_store(path, uneven_scenario) as store,
    ):
        list(store.finished([REPLAY]))


def test_two_sweeps_share_a_file(tmp_path: Path, uneven_scenario: Scenario) -> None:
    path = tmp_path / "s.sqlite"
    done = run_points(uneven_scenario, [REPLAY, SEARCH])
    with open_store(path, uneven_scenario) as one, open_store(path, uneven_scenario) as other:
        one.keep(done)
        other.keep(done)
        assert len(list(one.finished([REPLAY, SEARCH]))) == 2
