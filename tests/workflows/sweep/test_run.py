from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path

import polars as pl
import pytest

from slotwise_sim import PerToken, Policy, Workload
from slotwise_workflows.costs import find_preset
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.errors import MissingExtraError
from slotwise_workflows.sweep import Engine, choose_engine, parquet, points, report, sweep
from slotwise_workflows.sweep.evaluate import Scenario, run_point
from slotwise_workflows.sweep.local import run_processes
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.table import COLUMNS, table

LOCAL = Engine("local", 1, None, "")
MS = PerToken(8.0)
STATED = by_the_user(MS, "ms_per_token")
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "sweep.md"


@pytest.fixture
def small_grid(both_policies: dict[str, Policy]) -> tuple[Point, ...]:
    return points([2, 4], [0.5, 2], both_policies, 3, seed=11)


def test_the_table_forgets_the_order_of_the_workers(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    rows = [row for point in small_grid for row in run_point(uneven_scenario, point)]
    shuffled = random.Random(5).sample(rows, len(rows))
    assert parquet(table(shuffled, small_grid), STATED) == parquet(table(rows, small_grid), STATED)
    assert table(rows, small_grid).columns == list(COLUMNS)


def test_processes_find_the_same_rows(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    told: list[tuple[int, int]] = []
    found = run_processes(
        uneven_scenario, small_grid, workers=2, on_progress=lambda *done: told.append(done)
    )
    rows = [row for point in small_grid for row in run_point(uneven_scenario, point)]
    assert parquet(table(found, small_grid), STATED) == parquet(table(rows, small_grid), STATED)
    assert told[-1] == (len(small_grid), len(small_grid))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("fault", ["missing", "twice", "foreign"])
def test_rows_that_are_not_the_grids(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...], fault: str
) -> None:
    rows = [row for point in small_grid for row in run_point(uneven_scenario, point)]
    wrong = {"missing": rows[1:], "twice": [*rows, rows[0]], "foreign": rows}[fault]
    grid = small_grid[1:] if fault == "foreign" else small_grid
    with pytest.raises(ValueError, match="not those of the grid"):
        table(wrong, grid)


def test_widening_the_grid_moves_no_row(
    uneven_workload: Workload, both_policies: dict[str, Policy]
) -> None:
    small = points([4], [1], both_policies, 2, seed=5)
    large = points([2, 4, 8], [0.5, 1], both_policies, 4, seed=5)
    few = sweep(uneven_workload, small, MS, LOCAL, seed=5).frame
    many = sweep(uneven_workload, large, MS, LOCAL, seed=5).frame
    again = many.filter(
        (pl.col("slots") == 4) & (pl.col("load") == 1) & (pl.col("replication") < 2)
    )
    assert again.equals(few)


def test_the_seed_matters(uneven_workload: Workload, both_policies: dict[str, Policy]) -> None:
    frames = [
        sweep(
            uneven_workload,
            points([4], [1], both_policies, 2, seed=seed),
            MS,
            LOCAL,
            seed=seed,
        ).frame
        for seed in (0, 1)
    ]
    assert not frames[0]["latency_mean_s"].equals(frames[1]["latency_mean_s"])


def test_the_report_holds_means_and_intervals(
    uneven_workload: Workload, small_grid: tuple[Point, ...]
) -> None:
    done = sweep(uneven_workload, small_grid, MS, LOCAL, seed=11)
    said = report(done, STATED)
    assert (said.engine, said.points, said.baseline) == ("local", 12, "static")
    assert len(said.rows) == 2 * 2 * 2
    row = next(r for r in said.rows if (r.slots, r.load, r.policy) == (4, 2.0, "continuous"))
    values = sorted(
        done.frame.filter(
            (pl.col("slots") == 4) & (pl.col("load") == 2) & (pl.col("policy") == "continuous")
        )["latency_mean_s"]
    )
    assert row.replications == 3
    assert row.latency_mean_s.estimate == pytest.approx(sum(values) / 3)
    # The linear quantile of three values at 2.5 %: 5 % of the way from the first to the second.
    assert row.latency_mean_s.low == pytest.approx(values[0] + 0.05 * (values[1] - values[0]))
    assert row.latency_mean_s.high == pytest.approx(values[2] - 0.05 * (values[2] - values[1]))
    assert row.latency_mean_s.low <= row.latency_mean_s.estimate <= row.latency_mean_s.high


def test_nothing_waits_longer_for_continuous_batching(
    uneven_workload: Workload, small_grid: tuple[Point, ...]
) -> None:
    frame = sweep(uneven_workload, small_grid, MS, LOCAL, seed=11).frame
    continuous = frame.filter(pl.col("policy") == "continuous")
    assert (continuous["latency_ratio"] >= 1).all()
    assert (continuous["gain"] >= 1).all()
    assert (frame["idle_share"].is_between(0, 1)).all()


def test_progress_is_told(uneven_workload: Workload, small_grid: tuple[Point, ...]) -> None:
    told: list[tuple[int, int]] = []
    sweep(
        uneven_workload,
        small_grid,
        MS,
        LOCAL,
        seed=11,
        on_progress=lambda *done: told.append(done),
    )
    assert told == [(k, len(small_grid)) for k in range(1, len(small_grid) + 1)]


@pytest.mark.parametrize(
    ("asked", "address", "name"),
    [
        ("auto", None, "local"),
        ("auto", "10.0.0.1:6379", "ray"),
        ("local", "10.0.0.1:6379", "local"),
        ("ray", None, "ray"),
    ],
)
def test_the_engine_chosen_says_why(asked: str, address: str | None, name: str) -> None:
    engine = choose_engine(asked, address=address, workers=3)  # type: ignore[arg-type]
    assert (engine.name, engine.workers) == (name, 3)
    assert name in engine.why
    assert engine.why.endswith(("(asked for)", "address was given)"))


def test_a_missing_extra_is_told(
    uneven_workload: Workload, small_grid: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="uv sync --extra ray") as error:
        sweep(uneven_workload, small_grid, MS, Engine("ray", 1, None, ""), seed=11)
    assert error.value.exit_code == 6


def test_the_file_says_what_its_cost_is_and_how_good(
    uneven_workload: Workload, small_grid: tuple[Point, ...]
) -> None:
    preset = find_preset("llama-3.1-8b-a100").stated()
    done = sweep(uneven_workload, small_grid, preset.cost, LOCAL, seed=11)
    told = pl.read_parquet_metadata(io.BytesIO(parquet(done.frame, preset)))
    cost = json.loads(told["cost"])
    assert (cost["kind"], cost["name"]) == ("preset", "llama-3.1-8b-a100")
    assert cost["quality"].startswith("derived; decode within 3.1 %")
    assert "aiconfigurator" in cost["source"]
    assert cost["values"]["prefill_base_ms"] == 8.43
    said = report(done, preset)
    assert said.cost.model_dump(mode="json") == cost
    assert said.memory is None


def test_every_column_is_documented() -> None:
    text = REFERENCE.read_text("utf-8")
    assert [name for name in COLUMNS if f"`{name}`" not in text] == []
