"""What may be shared of a result: all of its numbers, and none of the log's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slotwise_workflows.report import Branding, load_words
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.render import as_html
from slotwise_workflows.report.words import Language
from slotwise_workflows.result import Fact, ProbeFigures, Reason, Result
from slotwise_workflows.share import shareable

Make = Callable[..., Result]

PROBE: dict[str, Any] = {
    "url": "http://heron.internal:8000/v1",
    "kind": "vllm",
    "model": "walrus-7b",
    "batching": "undetermined",
    "confidence": "low",
    "reason": {"code": "requests_failed", "numbers": {"requests": 2, "fault": "no heron.internal"}},
    "remarks": [{"code": "replay_failed", "numbers": {"why": "cannot read /srv/gnu.csv"}}],
    "slots": None,
    "slots_at_least": 1,
    "release": None,
    "gather_s": None,
    "requests_sent": 2,
    "output_tokens": 3,
    "timeline": [],
    "cost": None,
    "prediction": None,
}


def named(make_result: Make) -> Result:
    """A result with a name in every place that can hold one."""
    result = make_result("step_cost", model="walrus-7b", name="narwhal")
    told = result.cost
    assert told is not None
    cost = told.model_copy(
        update={"kind": "calibration", "name": "/srv/emu.json", "source": "run of emu.csv"}
    )
    calibrated = Fact(
        name="cost",
        value="/srv/emu.json",
        source="estimated",
        basis="calibration",
        detail="run of emu.csv",
    )
    apart = {"segment": "team", "value": "quokka", "share": 0.4}
    return result.model_copy(
        update={
            "cost": cost,
            "facts": [*(fact for fact in result.facts if fact.name != "cost"), calibrated],
            "alternatives": [Reason(code="route_apart", numbers=dict(apart))],
            "models": [
                result.model_copy(update={"model": name}) for name in ("walrus-7b", "ocelot-70b")
            ],
            "probe": ProbeFigures.model_validate(PROBE | {"cost": cost.model_dump()}),
        }
    )


def test_every_place_that_can_hold_a_name_is_labelled_or_left_out(make_result: Make) -> None:
    result = named(make_result)
    shared, key = shareable(result)
    text = shared.model_dump_json()
    for name in ("narwhal", "walrus", "ocelot", "heron", "gnu", "emu", "quokka", "a.csv", "/srv"):
        assert name in result.model_dump_json()
        assert name not in text, name
    assert [model.model for model in shared.models] == ["model-1", "model-2"]
    assert shared.model == "model-1"
    assert key.segments["model"] == {"model-1": "walrus-7b", "model-2": "ocelot-70b"}
    assert key.segments["team"] == {"team-1": "quokka"}
    assert shared.alternatives[0].numbers["value"] == "team-1"
    assert shared.alternatives[0].numbers["share"] == 0.4


def test_any_result_can_be_shared_and_shown(any_result: Result, language: Language) -> None:
    shared, _ = shareable(any_result)
    assert Result.model_validate(shared.model_dump(by_alias=True)) == shared
    html = as_html(compose(shared, load_words(language), Branding("A & Co", "B")))
    assert "A &amp; Co" in html


@pytest.mark.parametrize("left", ["gain", "policies", "what_if", "sweep", "timeline", "histogram"])
def test_the_numbers_stay(make_result: Make, left: str) -> None:
    result = named(make_result)
    assert getattr(shareable(result)[0], left) == getattr(result, left)
