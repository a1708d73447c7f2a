"""Two runs side by side: what moved is told only where the intervals show it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from slotwise_workflows import resources
from slotwise_workflows.record import Estimate, Record
from slotwise_workflows.report import Branding, load_words
from slotwise_workflows.report.compare import (
    Comparison,
    FactShift,
    Kept,
    Run,
    Shift,
    Side,
    compare_runs,
    difference,
)
from slotwise_workflows.report.compare_page import compose_comparison, write_comparison
from slotwise_workflows.report.render import as_html, as_markdown
from slotwise_workflows.report.words import Language
from slotwise_workflows.result import Result
from slotwise_workflows.schemas import comparison_schema

Make = Callable[..., Result]


def estimate(value: float, below: float, above: float) -> Estimate:
    return Estimate(estimate=value, low=value - below, high=value + above)


def spread(value: float, half: float = 0.1) -> dict[str, float]:
    return estimate(value, half, half).model_dump()


def shift(comparison: Comparison, name: str, policy: str = "") -> Shift:
    [found] = [own for own in comparison.figures if (own.name, own.policy) == (name, policy)]
    return found


@given(st.floats(0.01, 5), st.floats(0.01, 5), st.floats(-9, 9), st.floats(-9, 9))
def test_of_symmetric_intervals_it_is_the_normal_one(
    half: float, other: float, before: float, after: float
) -> None:
    """Two independent normal means: the standard errors add as squares."""
    change = difference(estimate(before, half, half), estimate(after, other, other))
    both = math.sqrt(half**2 + other**2)
    assert change.estimate == pytest.approx(after - before)
    assert change.high - change.estimate == pytest.approx(both)
    assert change.estimate - change.low == pytest.approx(both)


def test_of_skewed_intervals_it_covers_the_change_as_often_as_it_says() -> None:
    """Log-normal estimates with their own, skewed intervals, ten thousand times over."""
    draw = np.random.default_rng(11)
    z, sigma, true = 1.96, np.array([0.3, 0.2]), np.array([1.5, 2.2])
    covered = 0
    for own in true * np.exp(sigma * draw.standard_normal((10_000, 2))):
        before, after = (
            Estimate(estimate=v, low=v * math.exp(-z * s), high=v * math.exp(z * s))
            for v, s in zip(own, sigma, strict=True)
        )
        change = difference(before, after)
        covered += change.low <= true[1] - true[0] <= change.high
    assert 0.94 <= covered / 10_000 <= 0.96


@pytest.mark.parametrize(
    ("now", "half", "moved"),
    [
        (2.07, 0.1, "not_shown"),
        (2.20, 0.1, "not_shown"),  # the intervals overlap, and so does that of the change with 0
        (2.22, 0.1, "up"),  # they overlap still, but the change is beyond 0.1414
        (1.92, 0.1, "down"),
        (1.92, 0.2, "not_shown"),
    ],
)
def test_a_figure_moved_where_the_interval_of_the_change_does_not_hold_nothing(
    make_result: Make, now: float, half: float, moved: str
) -> None:
    comparison = compare_runs(make_result("adopt"), make_result("adopt", gain=spread(now, half)))
    assert shift(comparison, "gain").moved == moved
    assert comparison.prediction is not None
    told = {"up": "above", "down": "below", "not_shown": "held"}
    assert comparison.prediction.outcome == told[moved]


def test_without_an_interval_nothing_is_said_of_the_change(make_result: Make) -> None:
    comparison = compare_runs(
        make_result("adopt"),
        make_result("adopt", capacity_per_s={"dynamic": 9.0, "continuous": 20.0}),
    )
    own = shift(comparison, "capacity", "batch")
    assert (own.before.value, own.after.value) == (2.29, 9.0)
    assert (own.change, own.moved) == (None, "unknown")
    assert shift(comparison, "busiest_rate").moved == "unknown"


def test_the_mean_length_has_the_interval_of_a_mean(make_result: Make) -> None:
    result = make_result("adopt")
    own = shift(compare_runs(result, result), "mean_length")
    assert own.before.value == 211.4
    assert own.before.high == pytest.approx(211.4 + 1.96 * 211.4 * 0.77 / math.sqrt(1940), rel=1e-5)
    few = make_result("adopt", requests=71)
    assert shift(compare_runs(result, few), "mean_length").moved == "unknown"


def test_no_p95_that_a_sample_does_not_hold_or_that_an_overload_makes(make_result: Make) -> None:
    spreads = {f"latency_p95_s.{name}": spread(5.3) for name in ("dynamic", "continuous")}
    held = make_result("adopt", intervals=spreads)
    assert shift(compare_runs(held, held), "latency_p95", "batch").moved == "not_shown"
    few = make_result("adopt", intervals=spreads, requests=71)
    strained = make_result("overloaded", intervals=spreads)
    for other in (few, strained):
        names = {own.name for own in compare_runs(held, other).figures}
        assert "latency_p95" not in names
    assert "waiting" not in {own.name for own in compare_runs(held, strained).figures}


def test_what_was_told_differently_is_named(make_result: Make) -> None:
    before = make_result("adopt")
    comparison = compare_runs(before, make_result("step_cost"))
    assert [own.name for own in comparison.facts] == ["ms_per_token", "cost", "memory", "padding"]
    assert comparison.prediction is None  # of another cost
    assert compare_runs(before, before).facts == []


def test_a_prediction_is_held_only_against_the_same_slots(make_result: Make) -> None:
    before = make_result("adopt")
    assert compare_runs(before, make_result("adopt", slots=16)).prediction is None
    assert compare_runs(make_result("no_gain"), before).prediction is None
    assert compare_runs(before, make_result("already")).prediction is not None


def test_the_same_model_is_compared(make_result: Make) -> None:
    several = make_result("several_models")
    second = several.models[1]
    alone = make_result("adopt").model_copy(update={"model": second.model})
    comparison = compare_runs(alone, several)
    assert (comparison.before.model, comparison.after.model) == (second.model, second.model)
    assert comparison.after.verdict == "no_gain"


def test_that_both_read_the_same_log_is_known_by_its_hash(make_result: Make) -> None:
    result = make_result("adopt")
    assert compare_runs(result, result).same_log
    none = result.provenance.model_copy(update={"inputs": []})
    unknown = result.model_copy(update={"provenance": none})
    assert not compare_runs(unknown, unknown).same_log
    assert not compare_runs(result, unknown).same_log


def test_any_two_runs_can_be_put_on_a_page(
    any_result: Result, make_result: Make, language: Language
) -> None:
    words = load_words(language)
    for before, after in ((make_result("adopt"), any_result), (any_result, any_result)):
        comparison = compare_runs(before, after)
        document = compose_comparison(comparison, words, Branding("A & Co <Ltd>", "B"))
        html, markdown = as_html(document), as_markdown(document)
        assert "A &amp; Co &lt;Ltd&gt;" in html
        assert "<script" not in html
        figures = document.first_page[1].blocks[0]
        assert len(getattr(figures, "rows")) == len(comparison.figures)  # noqa: B009
        assert words(f"verdict.{after.verdict}.badge") in markdown


def test_the_page_says_what_came_of_the_prediction(make_result: Make, language: Language) -> None:
    words = load_words(language)
    for now, outcome in ((2.07, "held"), (1.5, "below"), (2.9, "above")):
        comparison = compare_runs(make_result("adopt"), make_result("adopt", gain=spread(now)))
        document = compose_comparison(comparison, words, Branding())
        assert document.cover.sentence == words(f"compared.prediction_{outcome}")
        assert words.number(now, "times") in document.cover.because[0].text


def test_files_hold_the_same_comparison(make_result: Make, tmp_path: Path) -> None:
    comparison = compare_runs(make_result("adopt"), make_result("no_gain"))
    how: dict[str, Any] = {"language": "ja", "branding": Branding()}
    paths = write_comparison(comparison, tmp_path, formats=("md", "summary"), **how)
    assert [path.name for path in paths] == ["comparison.json", "comparison.md"]
    plain = json.loads(paths[0].read_bytes())
    assert Comparison.model_validate(plain) == comparison
    Draft202012Validator(json.loads(comparison_schema())).validate(plain)


def test_the_published_schema_is_that_of_the_record() -> None:
    published = resources.read_text(resources.COMPARISON_SCHEMA)
    assert published == comparison_schema(), "run: python -m slotwise_workflows.schemas"


@pytest.mark.parametrize("model", [Comparison, Run, Side, Shift, FactShift, Kept])
def test_every_key_is_documented(model: type[Record]) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/report.md").read_text(encoding="utf-8")
    section = page.split("\n## Comparing two runs\n")[1].split("\n## ")[0]
    for name, field in model.model_fields.items():
        assert f"`{field.alias or name}`" in section
