"""What a `Result` allows to be said: the rules of honesty that every section shares."""

from __future__ import annotations

from collections.abc import Callable

from slotwise_workflows.report.document import Item, Label
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import Diagnosis, Fact, Reason, Result

CONTINUOUS = "continuous"
CHANGES = frozenset({"adopt", "conditional", "marginal"})  # verdicts that a change follows from
BY_FACT = frozenset({"already", "not_yours"})  # verdicts that rest on no number

_REASON_LABELS: dict[str, Label] = {
    "too_few_requests": "measured",
    "variation": "measured",
    "managed_api": "",
    "one_caller": "measured",
    "one_slot": "",
    "seen_joining": "measured",
    "seen_waiting": "measured",
    "seen_together": "measured",
    "seen_one_by_one": "measured",
}
_MEASURED_LIMITS = {
    "short_window",
    "truncated",
    "few_requests",
    "closed_loop",
    "prefill_not_counted",
    "prompts_unknown",
    "caps_exceeded",
}
_ASSUMED_LIMITS = {
    "replicas_assumed",
    "slots_assumed",
    "time_per_token_assumed",
    "constant_time_per_token",
    "cost_of_preset",
    "cost_unreliable",
    "cost_unchecked",
    "cost_extrapolated",
    "padding_not_counted",
}
_SIMULATED_LIMITS = {
    "lengths_drift",
    "replay_contradicted",
    "padding_counted",
    "batches_exceed_memory",
}
_MEASURED_ALTERNATIVES = {
    "prefix_sharing",
    "prompt_heavy",
    "output_heavy",
    "truncated_outputs",
    "route_apart",
}


def label_word(words: Words, label: Label) -> str:
    """The word that tells what kind of number it is."""
    return words(f"label.{label}") if label else ""


def reason_item(words: Words, reason: Reason) -> Item:
    """A reason's sentence, labelled."""
    label = _REASON_LABELS.get(reason.code, "simulated")
    text = words.sentence("reason", reason.code, reason.numbers)
    return Item(text, label, label_word(words, label))


def limit_item(words: Words, reason: Reason) -> Item:
    """A limit's sentence, labelled where it names numbers of the log or assumptions."""
    label: Label = ""
    if reason.code in _MEASURED_LIMITS:
        label = "measured"
    elif reason.code in _ASSUMED_LIMITS:
        label = "assumed"
    elif reason.code in _SIMULATED_LIMITS:
        label = "simulated"
    return Item(
        words.sentence("limit", reason.code, reason.numbers), label, label_word(words, label)
    )


def alternative_item(words: Words, reason: Reason) -> Item:
    """Where to look instead, labelled where it was read off the log."""
    label: Label = "measured" if reason.code in _MEASURED_ALTERNATIVES else ""
    if reason.code == "sort_by_length":
        label = "simulated"
    text = words.sentence("alternative", reason.code, reason.numbers)
    return Item(text, label, label_word(words, label))


def leading(result: Result) -> Diagnosis:
    """The diagnosis that figures and pictures show: of several models, the one that leads."""
    return next((m for m in result.models if m.verdict == result.verdict), result)


def baseline(diagnosis: Diagnosis) -> str:
    """The batch-at-once policy that continuous batching is compared with; empty if there is none.

    The strongest one the client could have: dynamic, where it was simulated.
    """
    known = {*diagnosis.policies, *diagnosis.idle_share}
    if diagnosis.timeline is not None and diagnosis.timeline.batch in known:
        return diagnosis.timeline.batch
    return next((name for name in ("dynamic", "static") if name in known), "")


def policy_name(words: Words, name: str, diagnosis: Diagnosis) -> str:
    """A policy's name in words; a repeated one keeps its number, `dynamic` tells its delay."""
    kind, mark, number = name.partition("#")
    known = words(f"policy.{kind}") if f"policy.{kind}" in words else clean(kind)
    delay = fact(diagnosis, "max_delay_ms")
    if name == "dynamic" and delay is not None:
        known = _dynamic(words, delay)
    return f"{known} {mark}{clean(number)}" if mark else known


def _dynamic(words: Words, delay: Fact) -> str:
    """JSON has no infinity: a delay without a number is one without an end."""
    if not isinstance(delay.value, float | int):
        return words("policy.dynamic_full")
    if delay.value == 0:
        return words("policy.dynamic_greedy")
    return words("policy.dynamic_delay", delay=delay.value)


def compared(words: Words, diagnosis: Diagnosis) -> Callable[[str], str]:
    """The two policies of a diagnosis' small sweep as sentences name them."""
    base = None if diagnosis.sweep is None else diagnosis.sweep.baseline
    return lambda policy: words(
        "sweep.batching_at_once" if policy == base else "sweep.continuous_batching"
    )


def overloaded(diagnosis: Diagnosis, policy: str) -> bool:
    """Whether more requests arrive than the policy sustains, so that waits grow with the log."""
    if diagnosis.utilisation.get(policy, 0.0) >= 1.0:
        return True
    return any(
        point.load == 1 and point.slots == diagnosis.slots and point.overloaded.get(policy, False)
        for point in diagnosis.what_if
    )


def times_count(diagnosis: Diagnosis) -> bool:
    """Whether simulated times of single requests mean anything: arrivals were replayed."""
    return diagnosis.replay == "arrivals" and diagnosis.arrivals is not None


def fact(diagnosis: Diagnosis, name: str) -> Fact | None:
    """The fact of that name."""
    return next((fact for fact in diagnosis.facts if fact.name == name), None)


def seconds_label(diagnosis: Diagnosis) -> Label:
    """The kind of a figure in seconds: assumed where the time per token is."""
    rests_on = fact(diagnosis, "ms_per_token")
    return "assumed" if rests_on is not None and rests_on.source == "assumed" else "simulated"


def why_no_waiting(diagnosis: Diagnosis) -> str:
    """Catalogue key of the reason why nothing is claimed about waiting."""
    limits = {limit.code for limit in diagnosis.limits}
    mode = fact(diagnosis, "mode")
    if diagnosis.arrivals is None or "arrivals_unknown" in limits:
        return "numbers.no_waiting_arrivals"
    if diagnosis.verdict == "insufficient_data" and not diagnosis.policies:
        return "numbers.no_waiting_data"
    if mode is not None and mode.value == "offline":
        return "numbers.no_waiting_offline"
    if "replay_contradicted" in limits:
        return "numbers.no_waiting_replay"
    if "replicas_unknown" in limits or "give_replicas" in {a.code for a in diagnosis.actions}:
        return "numbers.no_waiting_replicas"
    if "closed_loop" in limits:
        return "numbers.no_waiting_loop"
    return "numbers.no_waiting_other"
