"""From the times of one trial to what it says about how the server batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.probe.batching.baseline import median_step
from slotwise_workflows.probe.batching.doubts import doubt
from slotwise_workflows.probe.batching.ends import Ends, explain_ends
from slotwise_workflows.probe.batching.refill import Refill, position
from slotwise_workflows.probe.batching.slots import Burst
from slotwise_workflows.probe.batching.spans import Layout, Span, layout, slack_s, spans_of
from slotwise_workflows.probe.model import (
    Alone,
    Baseline,
    Batching,
    Evidence,
    Release,
    Sample,
    Sizes,
    Stage,
)
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
"""Share of the long request that must be left when the last short is sent."""
_A_BATCH = 2
_APART = 3
JOINING_TTFTS = 1.25
JOINING_STEPS = 2.0
"""Steps more than alone that a request may take to join: the one under way, and noise."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What a trial is held against: a request alone, those alone so far, and what is known of ends.

    Attributes:
        baseline: The first request alone.
        alone: All of them so far.
        release: Where tokens are not seen, how batches were seen to end, if they were.
    """

    baseline: Baseline
    alone: Alone
    release: Release | None = None


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
        return _open("group", trial, reason)
    waits = [_wait(short, long, baseline) for short in shorts]
    prompt = _prompt(shorts, baseline)
    joined = sum(wait < JOINED_BELOW and soon for wait, soon in zip(waits, prompt, strict=True))
    waited = sum(wait >= WAITED_FROM for wait in waits)
    overlap = _overlap(long, shorts, baseline) if waited == len(shorts) else None
    found = _layout(samples, measures)
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
        together=_together(found, measures),
        slots=_slots(batching, found, measures),
        release=_release(shorts, found, ends, slack=slack, pace_s=pace_s)
        if batching == "static"
        else None,
    )


def judge_slots(
    samples: Sequence[Sample], measures: Measures, burst: Burst, *, trial: int
) -> Evidence:
    """Judge one rung of the slots test.

    If nobody waits, it says nothing but how many ran together. Else the queue tells: refilled one
    by one, batch by batch, or by turn; and the first batch, whether it waited for company.

    Args:
        samples: In the order sent.
        measures: What requests alone took.
        burst: When each was sent.
        trial: The trial's number.

    Returns:
        The verdict on this rung.
    """
    reason = doubt(samples, measures.baseline, measures.alone)
    if reason is not None:
        return _open("slots", trial, reason)
    found = _layout(samples, measures)
    gather = _gathering(samples, found, measures, burst) if found.kind == "batches" else None
    batching, code = _BY_LAYOUT[found.kind]
    if gather is not None and gather[0] > 0:
        batching, code = "dynamic", "began_with_later_ones"
    return _evidence("slots", trial, batching, code, samples, found, measures, gather=gather)


def judge_refill(
    samples: Sequence[Sample], measures: Measures, sizes: Refill, *, trial: int
) -> Evidence:
    """Judge one refill test.

    Args:
        samples: In the order sent.
        measures: What requests alone took.
        sizes: What was asked for.
        trial: The trial's number.

    Returns:
        The verdict on this trial: `continuous` if all were let in as soon as a slot was free,
        `static` if only when the longest had ended.
    """
    reason = doubt(samples, measures.baseline, measures.alone)
    if reason is not None:
        return _open("refill", trial, reason)
    found = _layout(samples, measures)
    spans = _spans(samples, measures)
    batching, code = _BY_LAYOUT[found.kind]
    where = position(spans, sizes)
    return _evidence("refill", trial, batching, code, samples, found, measures, where=where)


_BY_LAYOUT: dict[str, tuple[Batching, str]] = {
    "at_once": ("undetermined", "nobody_waited"),
    "queue": ("continuous", "refilled"),
    "batches": ("static", "began_together"),
    "turns": ("serial", "began_by_turn"),
    "mixed": ("undetermined", "replicas"),
    "noisy": ("undetermined", "too_noisy"),
}


def _evidence(
    stage: Stage,
    trial: int,
    batching: Batching,
    code: str,
    samples: Sequence[Sample],
    found: Layout,
    measures: Measures,
    *,
    gather: tuple[float, float | None] | None = None,
    where: float | None = None,
) -> Evidence:
    numbers: dict[str, float | int | str | None] = {
        "requests": len(samples),
        "together": found.together,
    }
    return Evidence(
        stage=stage,
        trial=trial,
        batching=batching,
        reason=Reason(code=code, numbers=numbers),
        clusters=[len(cluster) for cluster in found.clusters],
        position=where,
        together=_together(found, measures),
        slots=_slots(batching, found, measures),
        gather_s=gather,
    )


def _open(stage: Stage, trial: int, reason: Reason) -> Evidence:
    return Evidence(stage=stage, trial=trial, batching="undetermined", reason=reason)


def _spans(samples: Sequence[Sample], measures: Measures) -> list[Span]:
    slack = slack_s(samples, measures.alone)
    return spans_of(samples, measures.baseline, slack=slack, release=measures.release)


def _layout(samples: Sequence[Sample], measures: Measures) -> Layout:
    return layout(
        _spans(samples, measures),
        ttft_s=measures.alone.ttft_s,
        slack=slack_s(samples, measures.alone),
    )


def _slots(batching: Batching, found: Layout, measures: Measures) -> int | None:
    """Slots, where a request more had to wait; only what is seen counts."""
    seen = measures.baseline.streams or measures.release == "batch"
    return found.slots if seen and batching != "undetermined" else None


def _together(found: Layout, measures: Measures) -> int:
    """Most seen at once: making tokens, or ending as one batch."""
    if measures.baseline.streams:
        return found.together
    return max(map(len, found.clusters)) if measures.release == "batch" else 1


def _gathering(
    samples: Sequence[Sample], found: Layout, measures: Measures, burst: Burst
) -> tuple[float, float | None] | None:
    """How long the first batch of a rung waited for company, as far as the rung tells.

    Nothing, if the first batch had to wait itself: then all that came in the meantime are in it. A
    server that waits for company lets a request alone wait as long.
    """
    named = dict(zip((sample.name for sample in samples), burst.offsets_s, strict=True))
    first = [named[name] for name in found.clusters[0]]
    spans = {span.name: span for span in _spans(samples, measures)}
    earliest = min((spans[name] for name in found.clusters[0]), key=lambda span: span.sent)
    alone = measures.alone
    # The prompts of a batch are read together, and so take longer than one.
    allowed = (1 + len(first) / 4) * alone.ttft_s + 2 * alone.step_s + 3 * alone.noise_s
    if measures.baseline.streams and (
        earliest.begin - earliest.sent > allowed
        or max(first) - min(first) > alone.ttft_min_s + alone.noise_s
    ):
        return None
    others = [offset for name, offset in named.items() if name not in found.clusters[0]]
    later = [offset - min(first) for offset in others if offset > min(first)]
    return max(first) - min(first), min(later, default=None)


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
    left = _ns(long.last_token_ns) - shorts[-1].sent_ns
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
