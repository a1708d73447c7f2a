"""How the requests of a trial lay to one another: who began with whom, beside whom, after whom."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slotwise_workflows.probe.batching.baseline import median_step
from slotwise_workflows.probe.model import Alone, Baseline, Release, Sample
from slotwise_workflows.result import TimelineRow

_STEPS = 2.5
"""Steps by which two beginnings of one batch may lie apart, or a beginning behind an end."""
_TTFTS = 0.25
"""Likewise, as a share of the time to the first token of a request alone."""
_NOISES = 3.0
_WAITED = 0.5
"""A wait of this share of the shortest request may have been one for a request to end."""

_CLEAR_TO = 0.6
"""Slack over the shortest request's duration up to which who began beside whom can be told."""

Kind = Literal["at_once", "queue", "batches", "turns", "mixed", "noisy"]


@dataclass(frozen=True, slots=True)
class Span:
    """One request, in seconds from when the trial's first was sent."""

    name: str
    sent: float
    begin: float
    end: float

    @property
    def duration(self) -> float:
        """From its first token to its last."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Layout:
    """How the requests of a trial lay to one another.

    Attributes:
        kind: at_once: nobody waited for another's end. queue: requests waited, always while as
            many ran as ever did, and the queue moved as one ended. batches: nobody began while one
            of an earlier batch ran, and some began together. turns: likewise, each alone. mixed:
            none of these. noisy: the requests are too short against the noise.
        clusters: Those that began together, by name, in order.
        together: Most that ran at once.
        slots: As many ran while another waited, and never more; None if that was not seen.
    """

    kind: Kind
    clusters: tuple[tuple[str, ...], ...]
    together: int
    slots: int | None


def spans_of(
    samples: Sequence[Sample], baseline: Baseline, *, slack: float, release: Release | None = None
) -> list[Span]:
    """The answered requests in the order in which they began.

    Where tokens are not seen as they are made, a request is taken to begin as long before its end
    as its tokens take alone; if batches are released together, when the batch before it ended.

    Args:
        samples: Of one trial.
        baseline: What a request alone took.
        slack: What two instants may lie apart and still be one, in seconds.
        release: What is known of a server whose tokens are not seen.

    Returns:
        A span each.
    """
    origin = min(sample.sent_ns for sample in samples)
    found = []
    for sample in samples:
        if sample.first_token_ns is None or sample.last_token_ns is None:
            continue
        end = (sample.last_token_ns - origin) / 1e9
        begin = (sample.first_token_ns - origin) / 1e9
        if not baseline.streams:
            begin = end - sample.asked_tokens * baseline.seconds_per_token
        found.append(Span(sample.name, (sample.sent_ns - origin) / 1e9, begin, end))
    if not baseline.streams and release == "batch":
        found = _spans_of_batches(found, slack)
    return sorted(found, key=lambda span: (span.begin, span.end))


def _spans_of_batches(spans: Sequence[Span], slack: float) -> list[Span]:
    """Those that end together began together, when the ones before them had ended."""
    found: list[Span] = []
    before = 0.0
    batches = _clusters(sorted(spans, key=lambda span: span.end), slack, by_end=True)
    for batch in batches:
        begin = max(before, min(span.sent for span in batch))
        found += [replace(span, begin=begin) for span in batch]
        before = max(span.end for span in batch)
    return found


def timeline(samples: Sequence[Sample]) -> list[TimelineRow]:
    """The answered requests of a trial, for a picture.

    Args:
        samples: Of one trial, in the order sent.

    Returns:
        A row each, in seconds from when the first was sent.
    """
    origin = min((sample.sent_ns for sample in samples), default=0)
    return [
        TimelineRow(
            name=sample.name,
            sent_s=(sample.sent_ns - origin) / 1e9,
            first_token_s=(sample.first_token_ns - origin) / 1e9,
            last_token_s=(sample.last_token_ns - origin) / 1e9,
        )
        for sample in samples
        if sample.first_token_ns is not None and sample.last_token_ns is not None
    ]


def slack_s(samples: Sequence[Sample], alone: Alone) -> float:
    """What two instants may lie apart and still be one, in seconds.

    Two and a half steps at the trial's own pace, a quarter of the time to the first token, and the
    noise of that time.
    """
    step_s = max([alone.step_s, *median_step(samples)])
    return _STEPS * step_s + _TTFTS * alone.ttft_s + _NOISES * alone.noise_s


def layout(spans: Sequence[Span], *, ttft_s: float, slack: float) -> Layout:
    """How the requests lay to one another.

    Args:
        spans: In the order in which they began.
        ttft_s: Time to the first token of a request alone.
        slack: What two instants may lie apart and still be one.

    Returns:
        The layout.
    """
    clusters = _clusters(spans, slack)
    names = tuple(tuple(span.name for span in cluster) for cluster in clusters)
    together = most_together(spans, slack)
    shortest = min((span.duration for span in spans), default=0.0)
    if slack > _CLEAR_TO * shortest:
        return Layout("noisy", names, together, None)
    soon = max(ttft_s + slack, _WAITED * shortest)
    waiting = [span for span in spans if span.begin - span.sent > soon]
    if not waiting or len(clusters) == 1:
        return Layout("at_once", names, together, None)
    if not _joined(clusters, slack):
        batches = any(len(cluster) > 1 for cluster in clusters)
        slots = _slots_of_batches(clusters, soon) if batches else 1
        return Layout("batches" if batches else "turns", names, together, slots)
    if not any(_follows_an_end(span, spans, ttft_s + slack) for span in waiting):
        return Layout("at_once", names, together, None)  # prompts were read one after the other
    idle = max(_idle_s(span, spans, together, ttft_s + slack) for span in waiting)
    if idle <= ttft_s + slack:
        return Layout("queue", names, together, together)
    return Layout("mixed", names, together, None)


def most_together(spans: Sequence[Span], slack: float = 0.0) -> int:
    """Most requests between their first and their last token at one instant.

    Args:
        spans: The requests.
        slack: By so much each may have ended before its end was seen: noise of the network would
            else let one that took another's place look as if it had run beside it.
    """
    edges = [(span.begin, 1) for span in spans]
    edges += [(max(span.begin, span.end - slack), -1) for span in spans]
    most = running = 0
    for _instant, step in sorted(edges):  # at one instant, ends before beginnings
        running += step
        most = max(most, running)
    return most


def _clusters(spans: Sequence[Span], slack: float, *, by_end: bool = False) -> list[list[Span]]:
    clusters = [[span] for span in spans[:1]]
    for before, span in itertools.pairwise(spans):
        apart = span.end - before.end if by_end else span.begin - before.begin
        if apart <= slack:
            clusters[-1].append(span)
        else:
            clusters.append([span])
    return clusters


def _joined(clusters: Sequence[Sequence[Span]], slack: float) -> bool:
    """Whether any began while one of an earlier cluster still ran."""
    latest = float("-inf")
    for cluster in clusters:
        if cluster[0].begin < latest - slack:
            return True
        latest = max(latest, *(span.end for span in cluster))
    return False


def _slots_of_batches(clusters: Sequence[Sequence[Span]], soon: float) -> int | None:
    """The largest batch's size, if one who was there when it began had to wait for the next.

    Every batch that others were left waiting at must have been as large.
    """
    full = [
        len(cluster)
        for cluster, after in itertools.pairwise(clusters)
        if any(span.sent + soon < cluster[0].begin for span in after)
    ]
    largest = max(len(cluster) for cluster in clusters)
    return largest if full and set(full) == {largest} else None


def _idle_s(waiter: Span, spans: Sequence[Span], slots: int, step: float) -> float:
    """How long somebody waited although fewer than ``slots`` ran and nobody was being let in.

    Prompts are read one after the other on many servers: for ``step`` after each beginning, the
    next may be on its way.
    """
    since = waiter.sent + step
    edges = sorted({since, waiter.begin, *(s.begin for s in spans), *(s.end for s in spans)})
    idle = longest = 0.0
    for start, stop in itertools.pairwise(edges):
        if start < since or stop > waiter.begin:
            continue
        running = sum(span.begin <= start and span.end >= stop for span in spans)
        begun = any(span.begin <= start < span.begin + step for span in spans)
        idle = 0.0 if running >= slots or begun else idle + stop - start
        longest = max(longest, idle)
    return longest


def _follows_an_end(waiter: Span, spans: Sequence[Span], step: float) -> bool:
    """Whether another one ended just before it began."""
    return any(
        waiter.sent < span.end and 0 <= waiter.begin - span.end <= step
        for span in spans
        if span is not waiter
    )
