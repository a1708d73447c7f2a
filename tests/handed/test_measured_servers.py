"""The goals on measured servers: half a run from the other, continuous runs from static ones."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from slotwise_sim.observed import stretches
from slotwise_workflows.calibrate.timings import timings_of
from slotwise_workflows.traffic import ReadOptions, read_traffic

SHARED = Path(__file__).parents[3] / "shared" / "data"
FOLDERS = {"measured_servers": SHARED / "traffic" / "traces", "vllm_cpu": SHARED / "engine"}
PAGES = Path(__file__).parents[2] / "docs" / "validation"
pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS.values()),
    reason="no handed measurements beside the repository",
)


@cache
def measured(script: str) -> Any:
    return importlib.import_module(script).measure(FOLDERS[script])


@pytest.mark.parametrize("script", FOLDERS)
def test_a_page_shows_the_tables_that_its_script_prints(script: str) -> None:
    page = (PAGES / f"{script}.md").read_text(encoding="utf-8")
    assert f"uv run docs/validation/{script}.py FOLDER" in page
    pages_rows = [line for line in page.splitlines() if line.startswith("|")]
    rows = [
        line
        for table in importlib.import_module(script).tables(measured(script))
        for line in table.splitlines()
    ]
    assert len(rows) == len(pages_rows)
    for row, shown in zip(rows, pages_rows, strict=True):
        assert_same_but_for_the_last_digit(row, shown)


NUMBER = re.compile(r"[-+]?\d+\.?(\d*)")


def assert_same_but_for_the_last_digit(row: str, shown: str) -> None:
    """A fit's last digits are those of the machine's linear algebra."""
    assert NUMBER.sub("#", row) == NUMBER.sub("#", shown)
    for own, other in zip(NUMBER.finditer(row), NUMBER.finditer(shown), strict=True):
        last_digit = 10.0 ** -len(own[1])
        assert abs(float(own[0]) - float(other[0])) < 1.5 * last_digit, (row, shown)


@pytest.mark.parametrize(
    "run",
    [
        "RTX 4090, Llama 3.1 8B",
        "2 × RTX PRO 6000, Qwen3 30B-A3B, as one server",
        "the same, as two",
    ],
)
def test_half_a_run_tells_the_other_half(run: str) -> None:
    held = measured("measured_servers")[run].hold_out
    assert held.judged == 150
    assert abs(held.errors.latency_mean) < 0.05
    assert abs(held.errors.latency_p95) < 0.05
    assert abs(held.errors.busy) < 0.07  # one instant: the last end of all
    assert abs(held.errors.ttft_mean) < 0.10


@pytest.mark.parametrize("log", ["RTX4090", "RTXPRO6000"])
def test_no_server_was_empty_in_between_so_that_time_busy_is_the_makespan(log: str) -> None:
    script = importlib.import_module("measured_servers")
    traffic = read_traffic([str(FOLDERS["measured_servers"] / getattr(script, log))], ReadOptions())
    assert stretches(timings_of(traffic).measured).max() == 0


def test_a_mixture_of_experts_bends_and_a_dense_model_does_not() -> None:
    found = measured("measured_servers")
    assert found["2 × RTX PRO 6000, Qwen3 30B-A3B, as one server"].bend_seqs is not None
    assert found["RTX 4090, Llama 3.1 8B"].bend_seqs is None


def test_memory_that_is_left_out_is_noticed() -> None:
    held = measured("measured_servers")["the same, its memory left out"].hold_out
    assert held.errors.busy < -0.5


def test_static_runs_predict_the_continuous_ones() -> None:
    found = measured("vllm_cpu")
    _, simulated = found.fits["both"]
    assert simulated.continuous == pytest.approx(found.measured.continuous, rel=0.05)
    for ratio, published in zip(simulated.ratios, (2.06, 2.93), strict=True):
        assert ratio == pytest.approx(published, rel=0.05)
