"""The pages of docs/validation print what their scripts print, and what is published holds."""

from __future__ import annotations

import importlib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "validation"
SCRIPTS = [
    "anyscale",
    "article",
    "binned_batches",
    "harmonic_numbers",
    "negative_controls",
    "queueing",
    "vllm_paper",
]


@cache
def measured(script: str) -> Any:
    """What a script measures; more than one test looks at it."""
    return importlib.import_module(script).measure()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_page_shows_the_tables_that_its_script_prints(script: str) -> None:
    page = (PAGES / f"{script}.md").read_text(encoding="utf-8")
    assert f"uv run docs/validation/{script}.py" in page
    for table in importlib.import_module(script).tables(measured(script)):
        assert table in page


def test_every_page_is_in_the_index() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for page in PAGES.glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_refilling_gives_twice_the_throughput_of_anyscales_static_batches_of_four() -> None:
    draws = measured("anyscale")[1536]
    assert 1.8 < mean([draw.continuous / draw.static for draw in draws]) < 2.1


def test_anyscales_vllm_comes_out_within_a_fifth() -> None:
    draws = measured("anyscale")[1536]
    assert mean([draw.paged for draw in draws]) == pytest.approx(1900, rel=0.2)


@pytest.mark.parametrize(
    ("cap", "mean_tokens", "cv", "longest"),
    [
        (32, 15.6, 0.60, 1.95),
        (128, 53.7, 0.67, 2.11),
        (512, 118.4, 0.90, 2.54),
        (1536, 128, 1, 2.09),
    ],
)
def test_anyscales_lengths(cap: int, mean_tokens: float, cv: float, longest: float) -> None:
    draws = measured("anyscale")[cap]
    assert mean([draw.mean for draw in draws]) == pytest.approx(mean_tokens, rel=0.02)
    assert mean([draw.cv for draw in draws]) == pytest.approx(cv, rel=0.03)
    assert mean([draw.longest for draw in draws]) == pytest.approx(longest, rel=0.02)


def test_the_parts_of_anyscales_gain_multiply_to_all_of_it() -> None:
    for draws in measured("anyscale").values():
        for draw in draws:
            split = draw.split
            assert split.order * split.memory * split.larger_batch == pytest.approx(split.total)


def test_the_vllm_papers_batches() -> None:
    """At the middle spread of lengths; see the page for the others."""
    found = measured("vllm_paper")[1].backlog
    assert found["Orca (Max)"].at_once == pytest.approx(7.0, abs=0.05)
    assert found["Orca (Oracle), powers of two"].at_once == pytest.approx(13.6, rel=0.05)
    assert found["vLLM"].at_once == pytest.approx(30.4, rel=0.1)


def test_memory_gives_the_vllm_papers_factor_of_two_to_four() -> None:
    for row in measured("vllm_paper"):
        assert 2 < row.backlog["vLLM"].per_s / row.backlog["Orca (Max)"].per_s < 4


def test_equal_lengths_gain_nothing() -> None:
    for row in measured("negative_controls").equal:
        assert row.static == pytest.approx(row.continuous, rel=1e-9)


def test_continuous_batching_can_lose() -> None:
    found = measured("negative_controls")
    assert min(row.separate for row in found.interrupted) < 0.97
    assert found.slower_scheduler["64 to 64"][2] == pytest.approx(150 / 169, abs=0.02)


def test_exponential_lengths_gain_the_harmonic_numbers() -> None:
    for row in measured("harmonic_numbers"):
        for gain in (row.order_statistics, row.per_token, row.step):
            assert gain == pytest.approx(row.harmonic, rel=0.01)


def test_queues_wait_as_their_formulas_say() -> None:
    for row in measured("queueing")[0]:
        assert row.simulated.holds(row.formula, widths=1.8), row  # 3.5 standard errors


def test_queues_wait_as_in_ciw() -> None:
    for row in measured("queueing")[1]:
        between = abs(row.simulated.mean - row.ciw.mean)
        assert between < row.simulated.half_width + row.ciw.half_width, row


def test_bins_of_uniform_lengths_follow_the_formula() -> None:
    found = measured("binned_batches")
    oracle = next(t for t in found.throughputs if t.lengths == "uniform" and t.error == 0)
    for bins, share in oracle.share.items():
        assert share == pytest.approx(found.formula[bins], rel=0.005)


def test_more_bins_serve_more_and_better_predictions_do() -> None:
    found = measured("binned_batches").throughputs
    for row in found:
        shares = list(row.share.values())
        assert shares == sorted(shares)
    for better, worse in pairwise(found):
        if better.lengths == worse.lengths:
            assert better.share[32] > worse.share[32]
