"""Judges the slots test and the refill test: how did those begin that had to queue?"""

from __future__ import annotations

from collections.abc import Sequence

from slotwise_workflows.probe.batching.doubts import doubt
from slotwise_workflows.probe.batching.measures import (
    Measures,
    held_layout,
    held_spans,
    no_verdict,
    slots_shown,
    together_seen,
)
from slotwise_workflows.probe.batching.refill import Refill, position
from slotwise_workflows.probe.batching.slots import Burst
from slotwise_workflows.probe.batching.spans import Layout
from slotwise_workflows.probe.model import Batching, Evidence, Sample, Stage
from slotwise_workflows.result import Reason


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
        return no_verdict("slots", trial, reason)
    found = held_layout(samples, measures)
    gather = _gathering(samples, found, measures, burst) if found.kind == "batches" else None
    batching, code = _BY_LAYOUT[found.kind]
    if gather is not None and gather[0] > 0:
        batching, code = "dynamic", "began_with_later_ones"
    return _evidence("slots", trial, batching, code, samples, found, measures, gather=gather)


def judge_refill(
    samples: Sequence[Sample], measures: Measures, sizes: Refill, *, trial: int
) -> Evidence:
    """Judge one refill test, by how its requests lay to one another.

    `position` is noted for the reader; the verdict does not rest on it.

    Args:
        samples: In the order sent.
        measures: What requests alone took.
        sizes: What was asked for.
        trial: The trial's number.

    Returns:
        The verdict on this trial: `continuous` if all that waited were let in as soon as a slot was
        free, `static` if they began batch by batch, `serial` if by turn; else it is open.
    """
    reason = doubt(samples, measures.baseline, measures.alone)
    if reason is not None:
        return no_verdict("refill", trial, reason)
    found = held_layout(samples, measures)
    spans = held_spans(samples, measures)
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
        together=together_seen(found, measures),
        slots=slots_shown(batching, found, measures),
        gather_s=gather,
    )


def _gathering(
    samples: Sequence[Sample], found: Layout, measures: Measures, burst: Burst
) -> tuple[float, float | None] | None:
    """How long the first batch of a rung waited for company, as far as the rung tells.

    Nothing, if the first batch had to wait itself: then all that came in the meantime are in it. A
    server that waits for company lets a request alone wait as long.
    """
    named = dict(zip((sample.name for sample in samples), burst.offsets_s, strict=True))
    first = [named[name] for name in found.clusters[0]]
    spans = {span.name: span for span in held_spans(samples, measures)}
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
