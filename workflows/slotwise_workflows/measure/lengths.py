"""How output lengths vary: the figures of a sample and what batches make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slotwise_sim.lengths import cv, gain_bound_intervals, std
from slotwise_sim.workload import Ints
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import Histogram, LengthFigures

# Slots for which `gain_bound` is stated, as far as the sample fills one batch of them.
BOUND_SLOTS = (2, 4, 8, 16, 32, 64, 128, 256)
HISTOGRAM_BINS = 40


def length_figures(tokens: Ints) -> LengthFigures:
    """Figures of a sample's own lengths.

    Args:
        tokens: Lengths in tokens, shape (n,), n >= 1.
    """
    p50, p95 = np.percentile(tokens, (50, 95))
    return LengthFigures(
        mean=float(tokens.mean()),
        p50=float(p50),
        p95=float(p95),
        max=float(tokens.max()),
        std=std(tokens),
        cv=cv(tokens),
    )


def stated_slots(requests: int, *also: int) -> tuple[int, ...]:
    """The slots for which a sample of this size has a bound, those named besides among them."""
    return tuple(sorted(slots for slots in {*BOUND_SLOTS, *also} if slots <= requests))


def gain_bounds(
    tokens: Ints, slots: Sequence[int], rng: np.random.Generator
) -> dict[str, Estimate]:
    """E[longest of a random batch] / E[length] for each number of slots, with intervals.

    Args:
        tokens: Output lengths in order of arrival, shape (n,).
        slots: Batch sizes, each at most n.
        rng: For the bootstrap.
    """
    if not slots:
        return {}
    bounds = gain_bound_intervals(tokens, tuple(slots), rng)
    return {
        str(b): Estimate(estimate=mid, low=low, high=high) for b, (mid, low, high) in bounds.items()
    }


def histogram(tokens: Ints) -> Histogram:
    """Equal bins over the whole range, for a picture; shape (<= `HISTOGRAM_BINS`,)."""
    first, last = int(tokens.min()), int(tokens.max())
    width = max(1, -(-(last - first + 1) // HISTOGRAM_BINS))
    bins = -(-(last - first + 1) // width)
    counts = np.bincount((tokens - first) // width, minlength=bins)
    return Histogram(start=float(first), width=float(width), counts=[int(c) for c in counts])
