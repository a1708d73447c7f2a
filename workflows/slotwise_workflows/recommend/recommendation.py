"""One pure function from the evidence to a recommendation with its reasons as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from slotwise_workflows.compare.load import Load
from slotwise_workflows.facts import Facts, Known, Range
from slotwise_workflows.recommend.advice import (
    SAME_GAIN,
    actions,
    alternatives,
    confidence,
    flips,
    limits,
    variation,
)
from slotwise_workflows.recommend.evidence import Evidence
from slotwise_workflows.recommend.seen import seen
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.recommend.verdict import decide
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import Confidence, Fact, Reason, Verdict

Kind = TypeVar("Kind", bound=str)
Weight = Literal["none", "some", "decides", "unknown"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to tell the client, and everything that stands behind it; see `Diagnosis`."""

    verdict: Verdict
    confidence: Confidence
    reasons: tuple[Reason, ...]
    limits: tuple[Reason, ...]
    actions: tuple[Reason, ...]
    alternatives: tuple[Reason, ...]
    flip: tuple[Reason, ...]
    facts: tuple[Fact, ...]


def recommend(evidence: Evidence, thresholds: Thresholds) -> Recommendation:
    """Decides, says how sure, and says what follows."""
    decision = decide(evidence, thresholds)
    found = limits(evidence)
    first, *more = decision.reasons
    return Recommendation(
        verdict=decision.verdict,
        confidence=confidence(decision, evidence, found),
        reasons=(first, variation(evidence), *more, *seen(evidence)),
        limits=tuple(found),
        actions=tuple(actions(decision, evidence, thresholds)),
        alternatives=tuple(alternatives(decision, evidence)),
        flip=tuple(flips(decision, evidence, thresholds)),
        facts=tuple(_facts(evidence, thresholds)),
    )


def _facts(e: Evidence, t: Thresholds) -> list[Fact]:
    """Every fact with its source and how much the verdict depends on it."""
    facts = e.facts
    return [
        _known("serving", facts.serving, _weight_of_serving(e, t)),
        _known("batches_already", facts.batches_already, _weight_of_batching(e, t)),
        _known("mode", facts.mode, _weight_of_mode(e, t)),
        _known("loop", facts.loop, "unknown"),
        _known("replicas", facts.replicas, "unknown"),
        _range("slots", facts.slots, "", _weight_of_slots(e, t)),
        *_cost_facts(e, t),
        _range("max_delay_ms", facts.max_delay_ms, "ms", "unknown"),
        *_load_facts(e, t),
    ]


def _cost_facts(e: Evidence, t: Thresholds) -> list[Fact]:
    """The step cost and the memory that were told, else the time per token."""
    cost, memory = e.facts.cost, e.facts.memory
    if cost is None:
        return [_range("ms_per_token", e.facts.ms_per_token, "ms", _weight_of_load(e, t))]
    calibrated = cost.kind == "calibration"
    told = Fact(
        name="cost",
        value=cost.name or "stated",
        source="estimated" if calibrated else "given",
        basis=cost.kind if cost.kind in {"preset", "calibration"} else "given",
        detail=f"{cost.source}; {cost.quality}",
        weight=_weight_of_cost(e, t),
    )
    padding = _known("padding", e.facts.padding, _weight_of_padding(e, t))
    if memory is None:
        return [told, padding]
    held = Fact(
        name="memory",
        value=float(memory.kv_tokens),
        unit="tokens",
        source="given",
        basis="given",
        weight="none",
    )
    return [told, held, padding]


def _load_facts(e: Evidence, t: Thresholds) -> list[Fact]:
    if e.arrivals is None:
        return []
    rate = Fact(
        name="busiest_rate_per_s",
        value=e.arrivals.busiest_rate_per_s,
        unit="/s",
        source="measured",
        basis="busiest_hour",
        weight="none",
    )
    if e.load is None:
        return [rate]
    offered = Fact(
        name="offered_load",
        value=e.load.overload.estimate,
        low=e.load.overload.low,
        high=e.load.overload.high,
        source="simulated",
        basis="busiest_hour",
        weight=_weight_of_load(e, t),
    )
    return [rate, offered]


def _known(name: str, known: Known[Kind] | Known[bool] | Known[int | None], weight: Weight) -> Fact:
    return Fact(
        name=name,
        # an assumed "no" is what nothing speaks against, not what is known
        value=None if known.value is False and known.source == "assumed" else _plain(known.value),
        source=known.source,
        basis=known.basis,
        weight="none" if known.source in {"given", "measured"} else weight,
    )


def _plain(value: object) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return float(value) if isinstance(value, int | float) else str(value)


def _range(name: str, span: Range, unit: str, weight: Weight) -> Fact:
    return Fact(
        name=name,
        value=span.value if math.isfinite(span.value) else None,
        low=None if span.exact else span.low,
        high=None if span.exact else span.high,
        unit=unit,
        source=span.source,
        basis=span.basis,
        weight="none" if span.exact else weight,
    )


def _weight_of_serving(e: Evidence, t: Thresholds) -> Weight:
    """Decides again with either side running the server."""
    sides: list[Literal["self_hosted", "managed_api"]] = ["self_hosted", "managed_api"]
    ends = [
        replace(e, facts=replace(e.facts, serving=replace(e.facts.serving, value=side)))
        for side in sides
    ]
    return _weight(ends, t)


def _weight_of_batching(e: Evidence, t: Thresholds) -> Weight:
    """Decides again with an engine that batches already and one that does not."""
    ends = [
        replace(
            e, facts=replace(e.facts, batches_already=replace(e.facts.batches_already, value=v))
        )
        for v in (True, False)
    ]
    return _weight(ends, t)


def _weight_of_mode(e: Evidence, t: Thresholds) -> Weight:
    """Decides again for users who wait and for a job."""
    modes: list[Literal["online", "offline"]] = ["online", "offline"]
    ends = [
        replace(e, facts=replace(e.facts, mode=replace(e.facts.mode, value=mode))) for mode in modes
    ]
    return _weight(ends, t)


def _weight_of_slots(e: Evidence, t: Thresholds) -> Weight:
    """Decides again with the fewest and with the most slots assumed."""
    if not e.gain_by_slots:
        return "unknown"
    ends = [
        replace(e, gain=gain, gain_by_slots={slots: gain}, facts=_with_slots(e.facts, slots))
        for slots, gain in (min(e.gain_by_slots.items()), max(e.gain_by_slots.items()))
    ]
    gains = [gain.estimate for gain in e.gain_by_slots.values()]
    return _weight(ends, t, moved=max(gains) - min(gains))


def _with_slots(facts: Facts, slots: float) -> Facts:
    return replace(facts, slots=replace(facts.slots, low=slots, value=slots, high=slots))


def _weight_of_cost(e: Evidence, t: Thresholds) -> Weight:
    """Decides again by the lengths alone, as a fixed time per token would."""
    if e.gain is None or e.by_lengths is None:
        return "unknown"
    lengths = e.by_lengths
    ends = [e, replace(e, gain=lengths, gain_by_slots={int(e.facts.slots.value): lengths})]
    return _weight(ends, t, moved=lengths.estimate - e.gain.estimate)


def _weight_of_padding(e: Evidence, t: Thresholds) -> Weight:
    """Decides again for batches that are padded and for those that are not."""
    if e.gain is None:
        return "unknown"
    own = e.gain
    ends = []
    for padded in e.by_padding.values():
        times = padded / own.estimate
        gain = Estimate(estimate=padded, low=own.low * times, high=own.high * times)
        ends.append(replace(e, gain=gain, gain_by_slots=dict.fromkeys(e.gain_by_slots, gain)))
    gains = e.by_padding.values()
    return _weight(ends, t, moved=max(gains) - min(gains))


def _weight_of_load(e: Evidence, t: Thresholds) -> Weight:
    """Decides again with the load at either end; the capacity gain does not know the pace."""
    if e.load is None:
        return "none"
    ends = [replace(e, load=_at(e.load, end)) for end in ("low", "high")]
    return _weight(ends, t, moved=e.load.waiting.high - e.load.waiting.low)


def _at(load: Load, end: str) -> Load:
    def fixed(estimate: Estimate) -> Estimate:
        value = getattr(estimate, end)
        return Estimate(estimate=value, low=value, high=value)

    return replace(load, waiting=fixed(load.waiting), overload=fixed(load.overload))


def _weight(ends: list[Evidence], t: Thresholds, *, moved: float = 0.0) -> Weight:
    if len({decide(end, t).verdict for end in ends}) > 1:
        return "decides"
    return "some" if abs(moved) >= SAME_GAIN else "none"
