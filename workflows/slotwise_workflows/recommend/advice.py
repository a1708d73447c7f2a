"""What stands beside a verdict: its limits, what to do, where to look instead, when it flips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import NormalDist

from slotwise_workflows.facts import Facts
from slotwise_workflows.recommend.evidence import Evidence
from slotwise_workflows.recommend.seen import batching_unknown, servers_instead
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.recommend.verdict import Decision, requests_to_settle
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import Confidence, Reason
from slotwise_workflows.sample_size import P99_REQUESTS

BUSINESS_DAY_H = 8.0
DRIFT_FROM = 0.1
TRUNCATED_FROM = 0.05
PREFIX_FROM = 0.1
HEAVY_RATIO = 10.0
APART_FROM = 0.5

Numbers = dict[str, float | int | str | None]

_PROBE = ("probe_endpoint", "probe_again")
# What to do after a decision, by its deciding reason, else by its verdict; those that do not apply
# to the evidence are left out.
NEXT_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "too_few_requests": ("use_provider_levers", "tune_engine", "collect_requests"),
    "interval_wide": ("collect_requests", "give_slots", "give_replicas"),
    "slots_decide": ("give_slots", "give_replicas"),
    "low_load": ("set_max_delay", "keep_server"),
    "one_caller": ("keep_server",),
    "one_slot": ("more_slots",),
    "waiting_only": (*_PROBE, "pilot", "measure_after"),
    "unless_already": ("give_replicas", *_PROBE, "give_slots"),
    "from_load": ("watch_load", *_PROBE, "give_slots", "give_replicas"),
    "adopt": (*_PROBE, "pilot", "give_slots", "give_replicas", "measure_after"),
    "marginal": (*_PROBE, "pilot", "give_slots", "give_replicas", "measure_after"),
    "no_gain": ("keep_server", "give_slots"),
    "already": ("tune_engine",),
    "not_yours": ("use_provider_levers",),
}

# Limits that could turn the verdict over by themselves.
_SEVERE = frozenset(
    {"replay_contradicted", "biased_missing", "bench_load", "few_requests", "prefill_not_counted"}
    | {"probe_doubtful"}
)
# A gain that moves by less than this is the same gain.
SAME_GAIN = 0.05

# Limits that would not change a verdict.
_HARMLESS = frozenset(
    {"reader_unverified", "overload_ratio", "constant_time_per_token", "clock_coarse"}
    | {"cost_calibrated", "cost_unchecked"}
)


def limits(e: Evidence) -> list[Reason]:
    """What keeps the confidence down, the gravest first."""
    facts = e.facts
    found: list[Reason | None] = [
        _contradicted(e),
        _if("biased_missing" in _flag_names(e), "biased_missing"),
        _if(e.bench, "bench_load"),
        _prefill(e),
        _if(
            facts.cost is not None and e.prompts_unknown > 0,
            "prompts_unknown",
            share=e.prompts_unknown,
        ),
        _if(e.beyond_caps > 0, "caps_exceeded", requests=e.beyond_caps),
        _if(e.requests < P99_REQUESTS, "few_requests", requests=e.requests),
        _of_step_cost(facts),
        _extrapolated(facts),
        _batching(e),
        _if(
            facts.slots_probed not in {None, facts.slots.value},
            "slots_differ",
            slots=int(facts.slots.value),
            probed=facts.slots_probed,
        ),
        _if(e.arrivals is None and facts.mode.value != "offline", "arrivals_unknown"),
        _if(e.arrivals is not None and facts.replicas.value is None, "replicas_unknown"),
        _if(facts.replicas.source == "assumed" and e.load is not None, "replicas_assumed"),
        _if(facts.loop.value == "closed", "closed_loop", in_flight=facts.in_flight),
        _if(
            facts.slots.source != "given" and not facts.slots.exact,
            "slots_assumed",
            low=facts.slots.low,
            high=facts.slots.high,
        ),
        _if(
            e.load is not None and facts.cost is None and facts.ms_per_token.source == "assumed",
            "time_per_token_assumed",
            low=facts.ms_per_token.low,
            high=facts.ms_per_token.high,
        ),
        _memory(e),
        _padding(e),
        _short_window(e),
        _if(facts.serving.value == "unknown", "serving_unknown"),
        _drift(e),
        _if(e.truncated_share >= TRUNCATED_FROM, "truncated", share=e.truncated_share),
        _if("time_resolution" in _flag_names(e), "clock_coarse"),
        _if(not e.verified, "reader_unverified"),
        _if(e.load is not None and e.load.overload.high >= 1, "overload_ratio"),
        _if(facts.cost is None, "constant_time_per_token"),
    ]
    return [reason for reason in found if reason is not None]


def confidence(decision: Decision, e: Evidence, found: list[Reason]) -> Confidence:
    """How sure: high with nothing assumed, low where a single limit could turn the verdict."""
    if decision.verdict == "insufficient_data":
        return "low"
    if decision.verdict in {"already", "not_yours"}:
        source = e.facts.batches_already if decision.verdict == "already" else e.facts.serving
        return "high" if source.source in {"given", "measured"} else "medium"
    codes = {reason.code for reason in found}
    if codes & _SEVERE:
        return "low"
    return "medium" if codes - _HARMLESS else "high"


def variation(e: Evidence) -> Reason:
    """The measured variation, which every verdict sentence carries."""
    return Reason(
        code="variation",
        numbers={
            "mean": e.lengths.mean,
            "cv": e.lengths.cv,
            "max_over_mean": None if e.bound is None else e.bound.estimate,
            "slots": int(e.facts.slots.value),
        },
    )


def actions(decision: Decision, e: Evidence, t: Thresholds) -> list[Reason]:
    """What to do, the next action first: those of `NEXT_ACTIONS` that apply."""
    codes = NEXT_ACTIONS.get(decision.reasons[0].code) or NEXT_ACTIONS[decision.verdict]
    return [
        Reason(code=code, numbers=numbers)
        for code in codes
        if (numbers := _ACTION_NUMBERS[code](decision, e, t)) is not None
    ]


def _more_requests(decision: Decision, e: Evidence, t: Thresholds) -> Numbers | None:
    if len(decision.reasons) > 1:  # settled by something that no request would change
        return None
    if decision.reasons[0].code == "interval_wide":
        return {"more_requests": requests_to_settle(e, t)}
    needed = max(t.min_requests, int(e.facts.slots.value))
    return {"more_requests": max(1, needed - e.requests)}


def _pilot(_: Decision, e: Evidence, __: Thresholds) -> Numbers:
    return {"replicas": e.facts.replicas.value or 1, "slots": int(e.facts.slots.value)}


def _measure_after(_: Decision, e: Evidence, __: Thresholds) -> Numbers | None:
    return None if e.gain is None else {"low": e.gain.low, "high": e.gain.high}


def _delays(e: Evidence) -> bool:
    """Whether short batches wait for company, so that a shorter delay is to be had."""
    return e.facts.max_delay_ms.value > 0


def _when(applies: Callable[[Evidence], bool]) -> Callable[..., Numbers | None]:
    """An action without numbers that only some evidence calls for."""
    return lambda _, e, __: {} if applies(e) else None


# The numbers of each action's sentence, or None where the action does not apply.
_ACTION_NUMBERS: Mapping[str, Callable[[Decision, Evidence, Thresholds], Numbers | None]] = {
    "collect_requests": _more_requests,
    "pilot": _pilot,
    "measure_after": _measure_after,
    "watch_load": lambda d, _, __: {"rate": d.reasons[0].numbers["rate"]},
    "give_slots": _when(lambda e: not e.facts.slots.exact),
    "give_replicas": _when(lambda e: e.arrivals is not None and e.facts.replicas.value is None),
    "probe_endpoint": _when(
        lambda e: batching_unknown(e) and not e.bench and not e.facts.probed_in_vain
    ),
    "probe_again": _when(lambda e: batching_unknown(e) and e.facts.probed_in_vain),
    "use_provider_levers": _when(lambda e: e.facts.serving.value == "managed_api"),
    "tune_engine": _when(lambda e: e.facts.batches_already.value),
    "set_max_delay": _when(lambda e: e.facts.max_delay_ms.source != "given" or _delays(e)),
    "more_slots": _when(lambda _: True),
    "keep_server": _when(lambda _: True),
}


def alternatives(decision: Decision, e: Evidence) -> list[Reason]:
    """Where to look instead (or as well), from the same log."""
    if decision.verdict == "not_yours":
        levers = ("batch_api", "prompt_caching", "cap_max_tokens", "limit_concurrency")
        return [*_apart(e), *(Reason(code=code) for code in levers)]
    found: list[Reason | None] = [
        *_apart(e),
        _sorting(e),
        _prefixes(e),
        *_balance(e),
        _if(e.truncated_share >= TRUNCATED_FROM, "truncated_outputs", share=e.truncated_share),
    ]
    if decision.verdict in {"no_gain", "marginal", "already", "conditional"}:
        found += [Reason(code=c) for c in ("kv_memory", "quantisation", "speculative_decoding")]
    return [reason for reason in found if reason is not None]


def flips(decision: Decision, e: Evidence, t: Thresholds) -> list[Reason]:
    """The values at which the verdict changes."""
    if e.gain is None or e.facts.slots.high < 2:
        return []
    code = decision.reasons[0].code
    found: list[Reason] = []
    if code in {"even_lengths", "neighbours_alike", "waiting_only"}:
        found = _flip_cv(t.none_below, e, gain=e.gain.high)
    elif decision.verdict in {"adopt", "marginal"} or code in {"from_load", "unless_already"}:
        found = _flip_cv(t.adopt_from, e, gain=e.gain.low)
    if e.load is not None and code == "from_load":
        times = e.load.adopt_from_load
        numbers = {"rate": times * e.load.rate_per_s, "times": times}
        found.append(Reason(code="flip_load", numbers=numbers))
    return found


def _flip_cv(threshold: float, e: Evidence, *, gain: float) -> list[Reason]:
    """None where equal lengths are beyond the threshold already."""
    cv = _cv_at(threshold, e, gain=gain)
    return [Reason(code="flip_cv", numbers={"cv": cv})] if cv > 0 else []


def _cv_at(threshold: float, e: Evidence, *, gain: float) -> float:
    """The coefficient of variation at which this end of the gain crosses a threshold.

    Rescaling the spread at the same mean m moves every batch's longest member along a straight
    line, max(m + k (x - m)) = m + k (max(x) - m), and the gain with it, from what equal lengths
    gain: even + k (gain - even). At a fixed time per token, where equal lengths gain 1, the
    crossing is exact. Equal lengths have no spread to rescale; there it is that of normal lengths,
    whose longest of B lies Blom's (B - 0.375) / (B + 0.25) quantile above the mean (Blom, 1958).
    """
    cv = e.lengths.cv
    if cv and gain > e.even:
        return cv * (threshold - e.even) / (gain - e.even)
    slots = e.facts.slots.value
    return (threshold / e.even - 1) / NormalDist().inv_cdf((slots - 0.375) / (slots + 0.25))


def _if(applies: bool, code: str, **numbers: float | int | str | None) -> Reason | None:
    return Reason(code=code, numbers=numbers) if applies else None


def _flag_names(e: Evidence) -> set[str]:
    return {flag.split(":")[0] for flag in e.flags}


def _contradicted(e: Evidence) -> Reason | None:
    if e.contradicted is None:
        return None
    measured, simulated = e.contradicted
    return Reason(
        code="replay_contradicted", numbers={"measured": measured, "simulated": simulated}
    )


def _batching(e: Evidence) -> Reason | None:
    """Nothing tells, or several servers that batch at once would explain the log as well."""
    if not batching_unknown(e):
        return None
    if e.facts.probed_in_vain:
        return Reason(code="probe_doubtful")
    servers = servers_instead(e)
    if servers is None:
        return Reason(code="batching_unknown")
    return Reason(code="batching_several", numbers={"servers": servers})


def _short_window(e: Evidence) -> Reason | None:
    if e.arrivals is None or e.facts.mode.value == "offline":
        return None
    hours = e.arrivals.span_s / 3600
    return _if(hours < BUSINESS_DAY_H, "short_window", hours=hours)


def _drift(e: Evidence) -> Reason | None:
    bound, gain = e.bound, e.by_lengths
    if bound is None or gain is None or not _is_apart(bound, gain):
        return None
    return Reason(
        code="lengths_drift", numbers={"gain_bound": bound.estimate, "gain": gain.estimate}
    )


def _prefill(e: Evidence) -> Reason | None:
    """Long prompts take time that refilling does not save and a cost per token leaves out."""
    if e.facts.cost is not None:
        return None
    ratio = None if e.prompt_mean is None else e.prompt_mean / e.lengths.mean
    return _if(ratio is not None and ratio >= HEAVY_RATIO, "prefill_not_counted", ratio=ratio)


def _of_step_cost(facts: Facts) -> Reason | None:
    """What the figures rest on under a step cost."""
    cost = facts.cost
    if cost is None:
        return None
    if cost.checked is None:
        return Reason(code="cost_unchecked")
    if cost.kind == "preset":
        return Reason(code="cost_of_preset", numbers={"name": cost.name})
    code = "cost_calibrated" if cost.checked.reliable else "cost_unreliable"
    numbers: Numbers = {"off": cost.checked.off, "held_out": cost.checked.held_out or None}
    return Reason(code=code, numbers=numbers)


def _extrapolated(facts: Facts) -> Reason | None:
    """A fitted cost at slots that its run never, or hardly ever, filled or left so empty."""
    if facts.cost is None or facts.cost.fitted_seqs is None:
        return None
    (low, high), slots = facts.cost.fitted_seqs, int(facts.slots.value)
    return _if(not low <= slots <= high, "cost_extrapolated", slots=slots, low=low, high=high)


def _memory(e: Evidence) -> Reason | None:
    """Memory limits continuous batching alone: batches that exceed it are taken to fit."""
    memory = e.facts.memory
    if memory is None or e.batch_tokens <= memory.kv_tokens:
        return None
    numbers: Numbers = {
        "slots": int(e.facts.slots.value),
        "needed": e.batch_tokens,
        "held": memory.kv_tokens,
    }
    return Reason(code="batches_exceed_memory", numbers=numbers)


def _padding(e: Evidence) -> Reason | None:
    """What the gain would be over batches of the other kind, where that is another figure.

    Where nothing is batched at once today there are no batches that might pad.
    """
    padding = e.facts.padding
    if e.facts.cost is None or not e.by_padding or e.facts.batches_already.value:
        return None
    other = e.by_padding[not padding.value]
    if abs(other - e.by_padding[padding.value]) < SAME_GAIN:
        return None
    if padding.value:
        return Reason(code="padding_counted", numbers={"unpadded": other})
    return _if(padding.source != "given", "padding_not_counted", padded=other)


def _sorting(e: Evidence) -> Reason | None:
    """What sorting a job by length makes of the same batches, beside what refilling does."""
    if e.if_sorted is None or e.gain is None:
        return None
    return Reason(
        code="sort_by_length",
        numbers={
            "perfect": e.if_sorted.perfect,
            "guessed": e.if_sorted.guessed,
            "off": e.if_sorted.off,
            "refilled": e.gain.estimate,
        },
    )


def _is_apart(bound: Estimate, gain: Estimate) -> bool:
    return bound.estimate - gain.estimate > DRIFT_FROM


def _apart(e: Evidence) -> list[Reason]:
    """A route that makes most of the variation: serving it apart is the cheaper cure."""
    for name, split in e.segments.items():
        if name == "model" or split.between_share is None or split.between_share < APART_FROM:
            continue
        value, figures = max(split.values.items(), key=lambda item: item[1].output_tokens.mean)
        numbers = {"segment": name, "value": value, "share": figures.token_share}
        return [Reason(code="route_apart", numbers=numbers)]
    return []


def _prefixes(e: Evidence) -> Reason | None:
    if e.prefix_share is None:
        return Reason(code="prefix_sharing_unknown")
    return _if(e.prefix_share >= PREFIX_FROM, "prefix_sharing", share=e.prefix_share)


def _balance(e: Evidence) -> list[Reason | None]:
    if e.prompt_mean is None:
        return []
    ratio = e.prompt_mean / e.lengths.mean
    return [
        _if(ratio >= HEAVY_RATIO, "prompt_heavy", ratio=ratio),
        _if(ratio <= 1 / HEAVY_RATIO, "output_heavy", ratio=1 / ratio if ratio else None),
    ]
