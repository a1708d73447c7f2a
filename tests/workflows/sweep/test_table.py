from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest

from slotwise_sim import PerToken, Policy, Workload
from slotwise_workflows import resources
from slotwise_workflows.costs import CostRecord, find_preset
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.schemas import sweep_schema
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.points import Axes, points
from slotwise_workflows.sweep.record import Here, SweepLimit, SweepReport, SweepRow
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.table import (
    COLUMNS,
    LIMIT_COLUMNS,
    failures,
    figures_of,
    limits,
    parquet,
    replays,
)

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "sweep.md"
STATED = {"8 ms": CostRecord.of(by_the_user(PerToken(8.0), "ms_per_token"))}


@pytest.fixture
def scenario(uneven_workload: Workload, both_policies: dict[str, Policy]) -> Scenario:
    return Scenario(uneven_workload, both_policies, {"8 ms": PerToken(8.0)}, run=3)


@pytest.fixture
def done(scenario: Scenario) -> list[Done]:
    axes = Axes([2, 4], costs=["8 ms"], length_cvs=[None, 1.0], loads=[0.5, 2], searches=True)
    return run_points(scenario, points(axes, 3, seed=11))


def test_both_tables_have_a_row_a_point_and_policy(done: list[Done]) -> None:
    assert replays(done).height == 2 * 2 * 2 * 3 * 2
    assert limits(done).height == 2 * 2 * 3 * 2
    assert replays(done).columns == list(COLUMNS)
    assert limits(done).columns == list(LIMIT_COLUMNS)


def test_no_rows_have_columns_all_the_same() -> None:
    assert replays([]).schema == replays([]).schema
    assert replays([]).columns == list(COLUMNS)


def test_means_and_their_intervals(scenario: Scenario, done: list[Done]) -> None:
    figures = figures_of(scenario, done)
    row = figures.rows[-1]
    assert (row.slots, row.length_cv, row.load, row.policy) == (4, 1.0, 2.0, "continuous")
    own = replays(done).filter(
        (pl.col("slots") == 4)
        & (pl.col("length_cv") == 1.0)
        & (pl.col("load") == 2.0)
        & (pl.col("policy") == "continuous")
    )["latency_mean_s"]
    assert row.replications == 3
    assert row.latency_mean_s.estimate == pytest.approx(own.mean())
    assert own.min() <= row.latency_mean_s.low <= row.latency_mean_s.high <= own.max()  # type: ignore[operator]
    assert figures.here.requests == 60
    assert figures.here.rate_per_s == pytest.approx(5, rel=0.5)


def test_a_figure_that_some_replication_lacks_is_null(scenario: Scenario, done: list[Done]) -> None:
    """A mean of those that have it would lie."""
    for own in figures_of(scenario, done).limits:
        if own.policy == "static":
            assert own.break_even_load is None
        else:
            assert own.capacity_load is not None


def test_failures_are_named(scenario: Scenario, done: list[Done]) -> None:
    broken = [Done(done[0].point, failure="it broke"), *done[1:]]
    [failure] = failures(broken)
    assert (failure.slots, failure.load, failure.replication) == (2, 0.5, 0)
    assert failure.why == "it broke"
    assert replays(broken).height == replays(done).height - 2
    assert figures_of(scenario, broken).rows[0].replications == 2


def test_the_same_table_has_the_same_bytes(done: list[Done]) -> None:
    assert parquet(replays(done), STATED) == parquet(replays(list(done)), STATED)
    assert pl.read_parquet(io.BytesIO(parquet(limits(done), STATED))).equals(limits(done))


def test_the_file_says_what_its_costs_are_and_how_good(done: list[Done]) -> None:
    preset = CostRecord.of(find_preset("llama-3.1-8b-a100").stated())
    told = pl.read_parquet_metadata(io.BytesIO(parquet(replays(done), {"a": preset, **STATED})))
    costs = json.loads(told["costs"])
    assert list(costs) == ["a", "8 ms"]
    assert (costs["a"]["kind"], costs["a"]["name"]) == ("preset", "llama-3.1-8b-a100")
    assert costs["a"]["quality"].startswith("derived; decode within 3.1 %")
    assert costs["a"]["values"]["prefill_base_ms"] == 8.43


def test_every_column_is_documented() -> None:
    text = REFERENCE.read_text("utf-8")
    assert [name for name in {**COLUMNS, **LIMIT_COLUMNS} if f"`{name}`" not in text] == []


def test_every_key_of_the_summary_is_documented() -> None:
    text = REFERENCE.read_text("utf-8")
    names = {*SweepReport.model_fields} - {"schema_"} | {"schema"}
    assert [name for name in names if f'"{name}"' not in text] == []
    assert [name for name in Here.model_fields if f"`{name}`" not in text] == []
    shown = {*SweepRow.model_fields, *SweepLimit.model_fields} - {"replications"}
    assert shown <= {*COLUMNS, *LIMIT_COLUMNS}


def test_the_published_schema_is_that_of_the_summary() -> None:
    published = resources.read_text(resources.SWEEP_SCHEMA)
    assert published == sweep_schema(), "run: python -m slotwise_workflows.schemas"
