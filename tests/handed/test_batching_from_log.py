"""Measured servers, told by the times of their logs alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from slotwise_sim.workload import Workload
from slotwise_workflows.facts import gather
from slotwise_workflows.given import Given
from slotwise_workflows.observe.batching import observe_batching
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic
from slotwise_workflows.traffic.model import made_traffic

SHARED = Path(__file__).parents[3] / "shared" / "data"
TRACES, ENGINE = SHARED / "traffic" / "traces", SHARED / "engine"
UNEVEN, EVEN, POISSON = (
    ENGINE / f"vllmcpu_4m_{run}.csv"
    for run in ("quiet_mixed_upfront", "quiet_uniform_upfront", "mixed_poisson_r1.0")
)
pytestmark = pytest.mark.skipif(
    not (TRACES.is_dir() and ENGINE.is_dir()),
    reason="no handed measurements beside the repository",
)


def run_of(file: Path, mode: str, run: int, arrival: str = "arrival") -> Traffic:
    """One measured run as a log; arrivals as users made them, or as the client sent them on."""
    rows = pl.read_csv(file).filter((pl.col("mode") == mode) & (pl.col("run") == run))
    start = rows[arrival].to_numpy() - rows[arrival].min()
    tokens = rows["output_tokens"].to_numpy().astype(np.int64)
    made = made_traffic(Workload(start, tokens, np.zeros_like(tokens)), format_id="made")
    times = {
        "e2e_latency": rows["end"] - rows[arrival],
        "gen_ai.response.time_to_first_chunk": rows["first"] - rows[arrival],
    }
    return replace(made, table=made.table.with_columns(**times))


@pytest.mark.parametrize("log", ["RTX4090_Llama-3.1-8B", "RTXPRO6000_Qwen3-30B-A3B-Instruct-2507"])
def test_vllms_own_logs_are_continuous_if_it_is_one_server(log: str) -> None:
    path = TRACES / f"vllm_measured_{log}_requests.jsonl"
    traffic = read_traffic([str(path)], ReadOptions())
    assert observe_batching(traffic, 1).kind == "continuous"
    facts = gather(traffic, Given())  # the one file of an engine is that of one server
    assert facts.observed is not None
    assert facts.observed.kind == "continuous"
    # Too few start alone to see whether others slow them down: a fleet would log the same.
    found = observe_batching(traffic)
    assert (found.kind, found.reason, found.slowing) == ("undetermined", "several_servers", 0.0)
    assert found.joined[8] > 0


@pytest.mark.parametrize(
    ("file", "mode"), [(UNEVEN, "continuous"), (UNEVEN, "server"), (POISSON, "continuous")]
)
@pytest.mark.parametrize("arrival", ["arrival", "send"])
@pytest.mark.parametrize("run", range(3))
def test_vllm_on_a_cpu_is_continuous_if_it_is_one_server(
    file: Path, mode: str, arrival: str, run: int
) -> None:
    log = run_of(file, mode, run, arrival)
    assert observe_batching(log, 1).kind == "continuous"
    # Eight servers of one slot would have logged much the same.
    open_ = observe_batching(log)
    assert open_.reason == "several_servers"
    assert open_.likelihood["continuous"] > open_.likelihood["several"]


@pytest.mark.parametrize("run", range(3))
def test_equal_lengths_all_at_once_leave_it_open(run: int) -> None:
    """All slots come free at once, so that refilling them and the next batch are the same."""
    for mode in ("continuous", "static_full"):
        assert observe_batching(run_of(EVEN, mode, run), 1).kind == "undetermined"


@pytest.mark.parametrize(
    ("file", "mode"),
    [(POISSON, "static_full"), (POISSON, "static_greedy"), (UNEVEN, "static_full")],
)
@pytest.mark.parametrize("run", range(3))
def test_batches_that_the_client_forms_are_batches_to_its_users(
    file: Path, mode: str, run: int
) -> None:
    """From the moment a user came; from the moment the client sent on, nothing ever had to wait."""
    found = observe_batching(run_of(file, mode, run), 1)
    assert found.kind in {"static", "dynamic", "batch_at_once", "not_continuous"}
    assert observe_batching(run_of(file, mode, run, "send"), 1).kind == "undetermined"
