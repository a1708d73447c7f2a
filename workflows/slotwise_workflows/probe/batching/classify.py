"""Judges the group test: did short requests begin beside the long one, and how if not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.probe.batching.baseline import median_step
from slotwise_workflows.probe.batching.doubts import doubt
from slotwise_workflows.probe.batching.ends import Ends, explain_ends
from slotwise_workflows.probe.batching.measures import (
    Measures,
    held_layout,
    no_verdict,
    slots_shown,
    together_seen,
)
from slotwise_workflows.probe.batching.spans import Layout, slack_s
from slotwise_workflows.probe.model import Baseline, Batching, Evidence, Release, Sample, Sizes
from slotwise_workflows.result import Reason

JOINED_BELOW = 0.5
"""Share of what was left of the long request; seen on real servers: 0.006 to 0.015."""
WAITED_FROM = 0.95
"""Likewise; seen on real servers that do not let requests join: 1.01 to 1.08."""
GROUP_FROM = 1.5
"""Overlap of requests run together; seen: 2.4 to 2.8."""
TURNS_TO = 1.2
"""Overlap of requests run by turn; seen: 0.95."""
PROMPT_BELOW = 0.5
"""A wait shorter than this share of the shortest short request was not a wait for one of them."""
LEFT_FROM = 0.2
"""Share of the long request that must be left when the last of the shorts is sent."""
JOINING_TTFTS = 1.25
JOINING_STEPS = 2.0
"""Steps more than alone that a request may take to join: the one under way, and noise."""
_A_BATCH = 2
_APART = 3


def judge_group(
    samples: Sequence[Sample], measures: Measures, sizes: Sizes, *, trial: int
) -> Evidence:
    """Judge one group test.

    All shorts begin soon: `continuous`. None begins before the long request has ended: it depends
    on how they then run, together (`static`) or by turn (`serial`). Some join and the others wait,
    but never while a slot is free: `continuous`, to be confirmed by the refill test. Anything else
    is `undetermined`, with the reason.

    Args:
        samples: The long request and the shorts, in the order sent.
        measures: What requests alone took.
        sizes: What was asked for.
        trial: The trial's number.

    Returns:
        The verdict on this trial and what it rests on.
    """
    baseline = measures.baseline
    long, shorts = samples[0], list(samples[1:])
    reason = doubt(samples, baseline, measures.alone) or _unseen(long, shorts, sizes)
    if reason is not None:
        return no_verdict("group", trial, reason)
    waits = [_wait(short, long, baseline) for short in shorts]
    prompt = _prompt(shorts, baseline)
    joined = sum(wait < JOINED_BELOW and soon for wait, soon in zip(waits, prompt, strict=True))
    waited = sum(wait >= WAITED_FROM for wait in waits)
    overlap = _overlap(long, shorts, baseline) if waited == len(shorts) else None
    found = held_layout(samples, measures)
    slack = slack_s(samples, measures.alone)
    pace_s = measures.alone.seconds_per_token
    ends = None if baseline.streams or waited < len(shorts) else _ends(long, shorts)
    seen = _Seen(len(shorts), joined, waited, overlap, ends)
    batching, reason = _judge(seen, found, shorts, measures)
    return Evidence(
        stage="group",
        trial=trial,
        batching=batching,
        reason=reason,
        joined=joined,
        waited=waited,
        late=len(shorts) - joined - waited,
        waits=waits,
        overlap=overlap,
        clusters=[len(cluster) for cluster in found.clusters],
        together=together_seen(found, measures),
        slots=slots_shown(batching, found, measures),
        release=_release(shorts, found, ends, slack=slack, pace_s=pace_s)
        if batching == "static"
        else None,
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    shorts: int
    joined: int
    waited: int
    overlap: float | None
    ends: Ends | None


def _unseen(long: Sample, shorts: Sequence[Sample], sizes: Sizes) -> Reason | None:
    """Whether too little of the long request was left to see the shorts beside it."""
    if len(shorts) < len(sizes.shorts):
        return Reason(code="long_too_short", numbers={"left": 0.0})
    last_sent_ns = max(short.sent_ns for short in shorts)  # whose connection took longest
    left = _ns(long.last_token_ns) - last_sent_ns
    share = left / max(1, _ns(long.last_token_ns) - long.sent_ns)
    if share < LEFT_FROM:
        return Reason(code="long_too_short", numbers={"left": max(0.0, share)})
    return None


def _judge(
    seen: _Seen, found: Layout, shorts: Sequence[Sample], measures: Measures
) -> tuple[Batching, Reason]:
    numbers: dict[str, float | int | str | None] = {"shorts": seen.shorts, "overlap": seen.overlap}
    if seen.joined == seen.shorts:
        if measures.baseline.streams and not _joined_in_steps(shorts, measures):
            return "undetermined", Reason(code="joined_late", numbers={"shorts": seen.shorts})
        return "continuous", Reason(code="joined_at_once", numbers={"shorts": seen.shorts})
    if measures.baseline.streams and found.kind == "noisy":
        return "undetermined", Reason(code="too_noisy", numbers=numbers)
    if seen.waited == seen.shorts and seen.ends is not None:
        return _judge_ends(seen.ends, seen.shorts)
    if seen.waited == seen.shorts and seen.overlap is not None:
        if seen.overlap >= GROUP_FROM and found.kind == "batches":
            return "static", Reason(code="ran_as_a_group", numbers=numbers)
        if seen.overlap <= TURNS_TO and found.kind == "turns":
            return "serial", Reason(code="ran_by_turn", numbers=numbers)
        return "undetermined", Reason(code="overlap_unclear", numbers=numbers)
    few = {
        "joined": seen.joined,
        "waited": seen.waited,
        "late": seen.shorts - seen.joined - seen.waited,
        "shorts": seen.shorts,
        "together": found.together,
    }
    if not measures.baseline.streams:
        return "undetermined", Reason(code="streaming_off", numbers=dict(few))
    if found.kind == "queue" and found.together > 1:
        return "continuous", Reason(code="few_slots", numbers=dict(few))
    return "undetermined", Reason(code="replicas", numbers=dict(few))


def _judge_ends(ends: Ends, shorts: int) -> tuple[Batching, Reason]:
    """The verdict where only ends are seen: what explains them, if nothing else does."""
    numbers: dict[str, float | int | str | None] = {
        "shorts": shorts,
        "overlap": None,
        "together": ends.size,
        "residual": ends.residual,
    }
    if not ends.clear:
        return "undetermined", Reason(code="ends_unclear", numbers=numbers)
    if ends.size == 1:
        return "serial", Reason(code="ended_by_turn", numbers=numbers)
    return "static", Reason(code="ended_as_a_group", numbers=numbers)


def _ends(long: Sample, shorts: Sequence[Sample]) -> Ends:
    after_s = [(short.end_ns - long.end_ns) / 1e9 for short in shorts]
    return explain_ends(after_s, [short.asked_tokens for short in shorts])


def _joined_in_steps(shorts: Sequence[Sample], measures: Measures) -> bool:
    """Whether each short began within a few steps, as one does that joins a running batch.

    A wait that is long against that, but short against the long request, is one for something that
    cannot be seen: a server behind a proxy that releases tokens at its own pace, others' requests.
    """
    alone = measures.alone
    step_s = max([alone.step_s, *median_step(shorts)])
    allowed = JOINING_TTFTS * alone.ttft_s + JOINING_STEPS * step_s + 3 * alone.noise_s
    return all(_ns(short.first_token_ns) - short.sent_ns <= allowed * 1e9 for short in shorts)


def _wait(short: Sample, long: Sample, baseline: Baseline) -> float:
    """The short's wait over what was left of the long request when the short was sent.

    Where tokens are not seen as they are made, the end of the answer stands for its beginning.
    """
    begun = _ns(short.first_token_ns) if baseline.streams else short.end_ns
    return (begun - short.sent_ns) / (_ns(long.last_token_ns) - short.sent_ns)


def _prompt(shorts: Sequence[Sample], baseline: Baseline) -> list[bool]:
    """Whether each short began without waiting for another short to end.

    Where tokens are not seen, its whole time is held against what its tokens take alone, half as
    much again allowed for the company of the others.
    """
    if not baseline.streams:
        own = [short.asked_tokens * baseline.seconds_per_token * 1e9 for short in shorts]
        allowed = [(1 + PROMPT_BELOW) * ns + PROMPT_BELOW * min(own) for ns in own]
        return [s.end_ns - s.sent_ns < ns for s, ns in zip(shorts, allowed, strict=True)]
    shortest = min(_duration(short) for short in shorts)
    return [_ns(short.first_token_ns) - short.sent_ns < PROMPT_BELOW * shortest for short in shorts]


def _overlap(long: Sample, shorts: Sequence[Sample], baseline: Baseline) -> float:
    """The durations of all shorts over the time from the first's beginning to the last's end.

    About 1 for requests by turn, the mean number at once for requests together. Where tokens are
    not seen, a request's duration is what the baseline says of its tokens.
    """
    if baseline.streams:
        begun = min(_ns(short.first_token_ns) for short in shorts)
        ended = max(_ns(short.last_token_ns) for short in shorts)
        return sum(_duration(short) for short in shorts) / max(1, ended - begun)
    own_s = sum(short.asked_tokens for short in shorts) * baseline.seconds_per_token
    span_ns = max(short.end_ns for short in shorts) - long.end_ns
    return own_s * 1e9 / max(1, span_ns)


def _release(
    shorts: Sequence[Sample], found: Layout, ends: Ends | None, *, slack: float, pace_s: float
) -> Release | None:
    """Whether answers of a batch end together, although their lengths differ.

    A batch whose ends all lie within what two instants may lie apart was released at once, if its
    members' lengths alone would put them three times as far apart; one whose ends do lie so far
    apart was not. Batches that differ, and none that tells, leave it open.
    """
    if ends is not None:
        return ends.release
    end_s = {short.name: short.end_ns / 1e9 for short in shorts}
    tokens = {short.name: short.asked_tokens for short in shorts}
    seen: set[Release] = set()
    for cluster in found.clusters:
        members = [name for name in cluster if name in end_s]
        if len(members) < _A_BATCH:
            continue
        ends_s = [end_s[name] for name in members]
        lengths = [tokens[name] for name in members]
        spread_s = max(ends_s) - min(ends_s)
        if spread_s >= _APART * slack:
            seen.add("own")
        elif spread_s <= slack and (max(lengths) - min(lengths)) * pace_s >= _APART * slack:
            seen.add("batch")
    return next(iter(seen)) if len(seen) == 1 else None


def _duration(sample: Sample) -> int:
    return _ns(sample.last_token_ns) - _ns(sample.first_token_ns)


def _ns(instant: int | None) -> int:
    """An instant that answered requests have."""
    if instant is None:
        raise ValueError("an answered request has its first and last token")
    return instant
