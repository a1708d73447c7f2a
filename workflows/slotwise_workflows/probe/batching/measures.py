"""What a trial is held against, and what is read off any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.probe.batching.spans import Layout, Span, layout, slack_s, spans_of
from slotwise_workflows.probe.model import (
    Alone,
    Baseline,
    Batching,
    Evidence,
    Release,
    Sample,
    Stage,
)
from slotwise_workflows.result import Reason


@dataclass(frozen=True, slots=True)
class Measures:
    """What a trial is held against: requests alone, and what is known of ends.

    Attributes:
        baseline: The measure of requests alone.
        alone: How they differ.
        release: Where tokens are not seen, how batches were seen to end, if they were.
    """

    baseline: Baseline
    alone: Alone
    release: Release | None = None


def held_spans(samples: Sequence[Sample], measures: Measures) -> list[Span]:
    """A trial's requests in the order in which they began."""
    slack = slack_s(samples, measures.alone)
    return spans_of(samples, measures.baseline, slack=slack, release=measures.release)


def held_layout(samples: Sequence[Sample], measures: Measures) -> Layout:
    """How a trial's requests lay to one another."""
    return layout(
        held_spans(samples, measures),
        ttft_s=measures.alone.ttft_s,
        slack=slack_s(samples, measures.alone),
    )


def slots_shown(batching: Batching, found: Layout, measures: Measures) -> int | None:
    """Slots, where a request more had to wait; only what is seen counts."""
    seen = measures.baseline.streams or measures.release == "batch"
    return found.slots if seen and batching != "undetermined" else None


def together_seen(found: Layout, measures: Measures) -> int:
    """Most seen at once: making tokens, or ending as one batch."""
    if measures.baseline.streams:
        return found.together
    return max(map(len, found.clusters)) if measures.release == "batch" else 1


def no_verdict(stage: Stage, trial: int, reason: Reason) -> Evidence:
    """The evidence of a trial that nothing can be read off."""
    return Evidence(stage=stage, trial=trial, batching="undetermined", reason=reason)
