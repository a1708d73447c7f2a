"""What a report says of the live endpoint, and its picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Branding, Document, Figure, Section, Table
from slotwise_workflows.report.render import as_html
from slotwise_workflows.report.words import Language, load_words
from slotwise_workflows.result import ProbeFigures, Result

TIMELINE = [
    {"name": "long", "sent_s": 0.0, "first_token_s": 0.02, "last_token_s": 4.0},
    {"name": "short-1", "sent_s": 0.5, "first_token_s": 0.53, "last_token_s": 1.5},
    {"name": "short-2", "sent_s": 0.6, "first_token_s": 4.1, "last_token_s": 5.0},
]
PROBE: dict[str, Any] = {
    "url": "http://localhost:8000/v1/chat/completions",
    "kind": "unknown",
    "model": "<b>tiny</b>",
    "batching": "continuous",
    "confidence": "high",
    "reason": {"code": "joined_at_once", "numbers": {"shorts": 2}},
    "remarks": [],
    "slots": 8,
    "slots_at_least": 7,
    "release": None,
    "gather_s": None,
    "requests_sent": 17,
    "output_tokens": 4321,
    "timeline": TIMELINE,
    "cost": None,
    "prediction": {
        "window": "the first 100",
        "requests": 100,
        "failed": 0,
        "rate_scale": 1.0,
        "length_scale": 1.0,
        "measured": {"latency_mean": 2.0, "latency_p95": 4.0, "makespan": 60.0},
        "simulated": {"latency_mean": 1.9, "latency_p95": 4.4, "makespan": 60.0},
        "client_bottleneck": False,
    },
}
Make = Callable[..., Result]


def probed(make_result: Make, **changes: Any) -> Result:
    probe = ProbeFigures.model_validate(PROBE | changes)
    return make_result("adopt").model_copy(update={"probe": probe})


def section(document: Document) -> Section:
    [own] = [section for section in document.sections if section.id == "endpoint"]
    return own


@pytest.mark.parametrize("batching", ["continuous", "static", "dynamic", "serial", "undetermined"])
def test_every_way_of_batching_has_its_sentence(
    make_result: Make, language: Language, batching: str
) -> None:
    words = load_words(language)
    document = compose(probed(make_result, batching=batching), words, Branding())
    first = section(document).blocks[0]
    assert words(f"probe.said_{batching}", url=PROBE["url"]) == getattr(first, "text", None)


def test_the_picture_counts_who_began_beside_the_first(make_result: Make) -> None:
    [drawn] = [
        block
        for block in section(compose(probed(make_result), load_words("en"), Branding())).blocks
        if isinstance(block, Figure)
    ]
    assert drawn.title.startswith("1 of 2 requests sent later began before")
    assert [row[1:] for row in drawn.table.rows] == [
        ("0 s", "20.0 ms", "4.00 s"),
        ("0.500 s", "0.530 s", "1.50 s"),
        ("0.600 s", "4.10 s", "5.00 s"),
    ]
    assert "url(#" in drawn.svg


def test_the_prediction_is_held_against_what_was_measured(make_result: Make) -> None:
    def errors(**changes: Any) -> dict[str, str]:
        prediction = PROBE["prediction"] | changes
        document = compose(probed(make_result, prediction=prediction), load_words("en"), Branding())
        [table] = [block for block in section(document).blocks if isinstance(block, Table)]
        return {row[0]: row[3] for row in table.rows}

    assert errors() == {
        "Mean latency": "−5%",
        "p95 latency": "+10%",
        "From the first request to the last answer": "0%",
    }


@pytest.mark.parametrize("held_out", [0, 63])
def test_how_good_the_cost_is_stands_in_the_reports_language(
    make_result: Make, language: Language, held_out: int
) -> None:
    cost = {
        "kind": "calibration",
        "name": "endpoint",
        "source": "slotwise calibrate",
        "quality": "on the requests",
        "kv_tokens": None,
        "values": {"base_ms": 8.0},
    }
    errors = {"latency_mean": -0.031, "latency_p95": 0.0004, "ttft_mean": 0.12}
    result = probed(make_result, cost=cost, held_out=held_out, cost_errors=errors)
    text = as_html(compose(result, load_words(language), Branding()))
    assert "−3.1%" in text
    assert "+12%" in text
    counted = {"en": "63 requests held out", "ja": "当てはめに使わなかったリクエスト63件"}
    assert (counted[language] in text) == (held_out == 63)


def test_both_skins_escape_it(make_result: Make, language: Language) -> None:
    url = "http://h/<script>alert(1)</script>"
    document = compose(probed(make_result, url=url), load_words(language), Branding())
    assert "<script>alert" not in as_html(document)


def test_without_a_probe_there_is_no_such_section(make_result: Make) -> None:
    document = compose(make_result("adopt"), load_words("en"), Branding())
    assert "endpoint" not in [own.id for own in document.sections]
