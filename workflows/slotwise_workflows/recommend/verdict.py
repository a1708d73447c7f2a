"""The verdict: one ordered table, the first row that applies.

Each row is a small function from the evidence to the deciding reason, or None where the row does
not apply. To change a rule, change its row; to add one, add a row to `TABLE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from slotwise_workflows.facts import FEWEST_BATCHES
from slotwise_workflows.recommend.evidence import Evidence
from slotwise_workflows.recommend.seen import servers_instead
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the reasons that decided it, the deciding one first."""

    verdict: Verdict
    reasons: tuple[Reason, ...]


Row = Callable[[Evidence, Thresholds], Decision | None]


def decide(evidence: Evidence, thresholds: Thresholds) -> Decision:
    """The first row of `TABLE` that applies; the last one always does."""
    return next(decision for row in TABLE if (decision := row(evidence, thresholds)) is not None)


def _too_few(e: Evidence, t: Thresholds) -> Decision | None:
    needed = max(t.min_requests, int(e.facts.slots.value))
    if e.requests >= needed and e.gain is not None:
        return None
    decision = _decision(
        "insufficient_data",
        "too_few_requests",
        requests=e.requests,
        needed=max(needed, e.requests + 1),
    )
    # More requests would not change what these rows say, so nobody need collect them.
    settled = _managed(e, t) or (_already(e, t) if e.gain is not None else None)
    return (
        decision
        if settled is None
        else replace(decision, reasons=(*decision.reasons, *settled.reasons))
    )


def _managed(e: Evidence, _: Thresholds) -> Decision | None:
    if e.facts.serving.value != "managed_api":
        return None
    return _decision("not_yours", "managed_api")


def _already(e: Evidence, _: Thresholds) -> Decision | None:
    if not e.facts.batches_already.value:
        return None
    saved = 1 - 1 / _gain(e).estimate
    slots = int(e.facts.slots.value)
    return _decision("already", "batches_continuously", idle_saved=saved, slots=slots)


def _slower(e: Evidence, t: Thresholds) -> Decision | None:
    if _gain(e).high >= t.slower_below:
        return None
    return _decision("no_gain", "slower", gain_high=_gain(e).high)


def _no_batches(e: Evidence, t: Thresholds) -> Decision | None:
    if e.overlapped is False and e.facts.loop.value == "closed":
        return _decision("no_gain", "one_caller")
    if e.facts.slots.high < 2:
        return _decision("no_gain", "one_slot")
    if e.facts.mode.value == "offline" or e.shared is None or e.shared >= t.shared_batches:
        return None
    return _decision("no_gain", "low_load", shared=e.shared, load=t.shared_at_load)


def _even(e: Evidence, t: Thresholds) -> Decision | None:
    gain = _gain(e)
    if gain.high >= t.none_below:
        return None
    if e.load is not None and e.load.waiting.low >= t.waiting_fall:
        return _decision("conditional", "waiting_only", gain=gain.estimate, **_fall(e.load.waiting))
    lengths, bound = e.by_lengths, e.bound
    if lengths is not None and lengths.low >= t.none_below:
        return _decision(
            "no_gain", "cost_takes_it", gain_high=gain.high, by_lengths=lengths.estimate
        )
    if bound is not None and bound.low >= t.none_below:
        return _decision(
            "no_gain", "neighbours_alike", gain_high=gain.high, gain_bound=bound.estimate
        )
    return _decision("no_gain", "even_lengths", gain_high=gain.high)


def _large(e: Evidence, t: Thresholds) -> Decision | None:
    gain = _gain(e)
    if gain.low < t.adopt_from:
        return None
    servers = servers_instead(e)
    if servers is not None:  # nobody need buy what the log may show to be there
        return _decision("conditional", "unless_already", gain=gain.estimate, servers=servers)
    figures = {"gain": gain.estimate, "low": gain.low, "high": gain.high}
    if e.facts.mode.value == "offline":
        return _decision("adopt", "gain_offline", **figures)
    if e.load is None:
        code = "gain_lengths_only" if e.facts.cost is None else "gain_at_cost"
        return _decision("adopt", code, **figures)
    missed = _missed_objective(e)
    if missed is not None:
        return _adopt_for_objective(e, figures, *missed)
    if e.load.overload.low >= 1:
        return _decision("adopt", "gain_overload", **figures, utilisation=e.load.overload.estimate)
    if e.load.waiting.low >= t.waiting_adopt:
        return _decision("adopt", "gain_waiting", **figures, **_fall(e.load.waiting))
    load = e.load.adopt_from_load
    rate = load * e.load.rate_per_s
    return _decision("conditional", "from_load", gain=gain.estimate, load=load, rate=rate)


def _fall(waiting: Estimate) -> dict[str, float]:
    """The fall of the mean latency, with its interval."""
    ends = {"waiting_low": waiting.low, "waiting_high": waiting.high}
    return {"waiting": waiting.estimate, **ends}


def _missed_objective(e: Evidence) -> tuple[str, float] | None:
    """The first objective that batch-at-once misses in the busiest hour: its name and value."""
    if e.load is None:
        return None
    reached = {"latency": e.load.latency_p95_s, "ttft": e.load.ttft_p95_s}
    for name, objective in e.objectives.items():
        if reached[name]["dynamic"] > objective:
            return name, objective
    return None


def _adopt_for_objective(
    e: Evidence, figures: dict[str, float], name: str, objective: float
) -> Decision:
    if e.load is None:
        raise ValueError("an objective is missed only where the load is known")
    reached = e.load.latency_p95_s if name == "latency" else e.load.ttft_p95_s
    code = "gain_objective" if name == "latency" else "gain_objective_ttft"
    decision = _decision("adopt", code, **figures, p95=reached["dynamic"], objective=objective)
    if reached["continuous"] <= objective:
        return decision
    needed = Reason(
        code="objective_out_of_reach",
        numbers={
            "replicas": e.facts.replicas.value,
            "servers": e.load.servers_needed["continuous"],
            "p95": reached["continuous"],
            "objective": objective,
        },
    )
    return Decision("adopt", (*decision.reasons, needed))


def _wide(e: Evidence, t: Thresholds) -> Decision | None:
    gain = _gain(e)
    if gain.high - gain.low <= t.widest_interval:
        return None
    few, many = min(e.gain_by_slots), max(e.gain_by_slots)
    if few < many and _sampling_width(e) <= t.widest_interval:
        return _decision(
            "insufficient_data",
            "slots_decide",
            gain_few=e.gain_by_slots[few].estimate,
            slots_few=few,
            gain_many=e.gain_by_slots[many].estimate,
            slots_many=many,
        )
    return _decision(
        "insufficient_data",
        "interval_wide",
        low=gain.low,
        high=gain.high,
        more_requests=requests_to_settle(e, t),
    )


def _marginal(e: Evidence, _: Thresholds) -> Decision:
    gain = _gain(e)
    return _decision("marginal", "marginal", gain=gain.estimate, low=gain.low, high=gain.high)


TABLE: tuple[Row, ...] = (
    _too_few,
    _managed,
    _already,
    _slower,
    _no_batches,
    _even,
    _large,
    _wide,
    _marginal,
)


def requests_to_settle(e: Evidence, t: Thresholds) -> int:
    """How many more requests would narrow the interval to what a verdict needs.

    An interval's width falls with the square root of the sample. One that spans all there can be
    says only that more batches are needed: as many as make any statement.
    """
    slots = max(e.gain_by_slots)
    widest = e.gain_by_slots[slots]
    if widest.low <= 1 and widest.high >= slots:
        return max(1, FEWEST_BATCHES * slots - e.requests)
    ratio = _sampling_width(e) / t.widest_interval
    return max(1, math.ceil(e.requests * (ratio**2 - 1)))


def _sampling_width(e: Evidence) -> float:
    """How wide the interval is at one number of slots: what more requests would narrow."""
    return max(gain.high - gain.low for gain in e.gain_by_slots.values())


def _gain(e: Evidence) -> Estimate:
    """The gain; rows after `_too_few` always have one."""
    if e.gain is None:
        raise ValueError("there is no gain before a batch is filled")
    return e.gain


def _decision(verdict: Verdict, code: str, **numbers: float | int | str | None) -> Decision:
    return Decision(verdict, (Reason(code=code, numbers=numbers),))
