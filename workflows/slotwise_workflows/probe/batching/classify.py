"""From the times of one trial, or of several, to how the server batches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.probe.model import Baseline, Batching, Evidence, Release, Sample, Sizes
from slotwise_workflows.result import Confidence, Reason

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
HONOURED_FROM = 0.8
"""Share of the tokens asked for that must have come."""
LEFT_FROM = 0.2
"""Share of the long request that must be left when the last short is sent."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What all trials say together."""

    batching: Batching
    confidence: Confidence
    reason: Reason
    slots_at_least: int
    release: Release | None


def classify_trial(
    samples: Sequence[Sample], baseline: Baseline, sizes: Sizes, *, trial: int
) -> Evidence:
    """Judge one trial of the group test.

    All shorts begin soon: `continuous`. None begins before the long request has ended: it depends
    on how they then run, together (`static`) or by turn (`serial`). Anything between is
    `undetermined`, with the reason.

    Args:
        samples: The long request and the shorts.
        baseline: What a request alone took.
        sizes: What was asked for.
        trial: The trial's number.

    Returns:
        The verdict on this trial and what it rests on.
    """
    long, shorts = samples[0], list(samples[1:])
    doubt = _doubt(long, shorts, sizes)
    if doubt is not None:
        return _evidence(trial, "undetermined", doubt)
    waits = [_wait(short, long, baseline) for short in shorts]
    prompt = _prompt(shorts, baseline)
    joined = sum(wait < JOINED_BELOW and soon for wait, soon in zip(waits, prompt, strict=True))
    waited = sum(wait >= WAITED_FROM for wait in waits)
    overlap = _overlap(long, shorts, baseline) if waited == len(shorts) else None
    batching, reason = _judge(joined, waited, len(shorts), overlap)
    return _evidence(
        trial,
        batching,
        reason,
        joined=joined,
        waited=waited,
        late=len(shorts) - joined - waited,
        waits=waits,
        overlap=overlap,
        together=most_together(samples) if baseline.streams else 1,
        release=_release(shorts, baseline) if batching == "static" else None,
    )


def conclude(trials: Sequence[Evidence], *, streams: bool) -> Conclusion:
    """What the trials say together: only what all of them say.

    Args:
        trials: The evidence of each, at least one.
        streams: Whether tokens were seen as they were made.

    Returns:
        The conclusion; trials that differ leave it open.
    """
    first = trials[0]
    together = max(trial.together for trial in trials)
    found = {trial.batching for trial in trials}
    releases = {trial.release for trial in trials}
    release = first.release if len(releases) == 1 else None
    if len(found) > 1:
        return Conclusion("undetermined", "low", Reason(code="trials_differ"), together, None)
    if first.batching == "undetermined":
        return Conclusion("undetermined", "low", first.reason, together, None)
    confidence: Confidence = "high" if len(trials) > 1 else "medium"
    if not streams:
        confidence = "medium" if len(trials) > 1 else "low"
    return Conclusion(first.batching, confidence, first.reason, together, release)


def most_together(samples: Sequence[Sample]) -> int:
    """Most requests between their first and their last token at one instant."""
    spans = [(s.first_token_ns, s.last_token_ns) for s in samples]
    edges = [(first, 1) for first, last in spans if first is not None and last is not None]
    edges += [(last, -1) for first, last in spans if first is not None and last is not None]
    most = running = 0
    for _instant, step in sorted(edges):  # at one instant, ends before beginnings
        running += step
        most = max(most, running)
    return most


def _doubt(long: Sample, shorts: Sequence[Sample], sizes: Sizes) -> Reason | None:
    """Why nothing can be read off this trial."""
    failed = [sample for sample in (long, *shorts) if not sample.answered]
    if any(sample.fault == "rate_limited" for sample in failed):
        return Reason(code="rate_limited", numbers={"requests": len(failed)})
    if failed:
        fault = failed[0].fault
        return Reason(code="requests_failed", numbers={"requests": len(failed), "fault": fault})
    unmet = [
        sample
        for sample in (long, *shorts)
        if sample.output_tokens is not None
        and sample.output_tokens < HONOURED_FROM * sample.asked_tokens
    ]
    if unmet:
        return Reason(code="lengths_not_honoured", numbers={"requests": len(unmet)})
    if len(shorts) < len(sizes.shorts):
        return Reason(code="long_too_short", numbers={"left": 0.0})
    left = _ns(long.last_token_ns) - shorts[-1].sent_ns
    share = left / max(1, _ns(long.last_token_ns) - long.sent_ns)
    if share < LEFT_FROM:
        return Reason(code="long_too_short", numbers={"left": max(0.0, share)})
    return None


def _judge(joined: int, waited: int, shorts: int, overlap: float | None) -> tuple[Batching, Reason]:
    if joined == shorts:
        return "continuous", Reason(code="joined_at_once", numbers={"shorts": shorts})
    if waited < shorts or overlap is None:
        late = shorts - joined - waited
        numbers: dict[str, float | int | str | None] = {
            "joined": joined,
            "waited": waited,
            "late": late,
            "shorts": shorts,
        }
        return "undetermined", Reason(code="some_joined", numbers=numbers)
    numbers = {"shorts": shorts, "overlap": overlap}
    if overlap >= GROUP_FROM:
        return "static", Reason(code="ran_as_a_group", numbers=numbers)
    if overlap <= TURNS_TO:
        return "serial", Reason(code="ran_by_turn", numbers=numbers)
    return "undetermined", Reason(code="overlap_unclear", numbers=numbers)


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


def _release(shorts: Sequence[Sample], baseline: Baseline) -> Release:
    """Whether answers of a batch end together, although their lengths differ.

    Ends that lie closer than a tenth of the shortest request's own time are one end. A batch that
    releases each answer on its own leaves as many ends as requests.
    """
    ends = sorted(short.end_ns for short in shorts)
    shortest = min(short.asked_tokens for short in shorts)
    near_ns = shortest * baseline.seconds_per_token * 1e9 / 10
    clusters = 1 + sum(later - earlier > near_ns for earlier, later in itertools.pairwise(ends))
    return "batch" if clusters <= len(shorts) / 2 else "own"


def _evidence(
    trial: int,
    batching: Batching,
    reason: Reason,
    *,
    joined: int = 0,
    waited: int = 0,
    late: int = 0,
    waits: Sequence[float] = (),
    overlap: float | None = None,
    together: int = 1,
    release: Release | None = None,
) -> Evidence:
    return Evidence(
        trial=trial,
        batching=batching,
        reason=reason,
        joined=joined,
        waited=waited,
        late=late,
        waits=list(waits),
        overlap=overlap,
        together=together,
        release=release,
    )


def _duration(sample: Sample) -> int:
    return _ns(sample.last_token_ns) - _ns(sample.first_token_ns)


def _ns(instant: int | None) -> int:
    """An instant that answered requests have."""
    if instant is None:
        raise ValueError("an answered request has its first and last token")
    return instant
