"""The same requests with output lengths that vary more, or less, around the same mean."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from slotwise_sim.lengths import histogram
from slotwise_sim.workload import MOST_TOKENS, Floats, Ints

PRECISION = 1e-7
"""Brackets are closed to this share of themselves; whole tokens come nowhere near it."""


def with_cv(tokens: Ints, cv: float) -> Ints:
    """Spreads lengths anew to a given variation at the same mean.

    Each length x becomes ``c x^p``, rounded to whole tokens and at least 1. On a logarithmic scale
    that stretches the spread: log-normal lengths stay log-normal. Ranks and ties are kept. Both p
    and c are found for the rounded lengths, in some hundred tries of O(distinct lengths) each.

    Whole tokens come near, and seldom nearer: with 200 requests or more, a mean of 20 or more and
    ``cv`` up to 2, to 0.5 % of the mean, and to 1 % of ``cv`` where the deviation is of 4 tokens or
    more (below that, to 10 %).

    Args:
        tokens: Lengths >= 1, shape (n,), n >= 1.
        cv: Standard deviation (ddof 1) over mean, >= 0; at 0 all become the rounded mean.

    Returns:
        Lengths >= 1, shape (n,).

    Raises:
        ValueError: ``cv`` is negative or not finite; equal lengths would have to differ; so few
            requests cannot vary so much; a length would be beyond `MOST_TOKENS`.
    """
    if not 0 <= cv < math.inf:
        raise ValueError(f"cv must be finite and >= 0, got {cv}")
    lengths, often = histogram(tokens)
    counts = often.astype(np.float64)
    mean = _sum(counts, lengths) / len(tokens)
    if cv == 0:
        return np.full(len(tokens), round(mean), dtype=np.int64)
    if len(lengths) == 1:
        raise ValueError(f"all lengths are {lengths[0]}: none can be made to differ from the rest")
    most = _variation(_longest_alone(counts, mean), counts)
    if cv > most:
        raise ValueError(
            f"{len(tokens)} lengths with a mean of {mean:.6g} can have a cv of at most {most:.4g}"
            f" while ranks are kept, not {cv:.6g}"
        )
    spread = _spread(lengths, counts, mean, cv)
    if spread[-1] > MOST_TOKENS:
        raise ValueError(
            f"a cv of {cv:.6g} needs a length of {spread[-1]:.0f}; the most is {MOST_TOKENS}"
        )
    return spread.astype(np.int64)[np.searchsorted(lengths, tokens)]


def _longest_alone(counts: Floats, mean: float) -> Floats:
    """The largest variation that keeps ranks and ties: all are 1 but the longest."""
    alone = np.ones(len(counts))
    others = int(counts[:-1].sum())
    alone[-1] = np.rint((mean * (others + counts[-1]) - others) / counts[-1])
    return alone


def _spread(lengths: Ints, counts: Floats, mean: float, cv: float) -> Floats:
    """The rounded powers of the distinct lengths that come nearest to mean and variation."""
    below_longest = np.log(lengths) - np.log(lengths[-1])  # (d,)

    def to_power(power: float) -> Floats:
        return _scaled(np.exp(power * below_longest), counts, mean)

    # From this power on, all but the longest are rounded to less than 1.
    beyond = math.log(4 * mean * float(counts.sum())) / -float(below_longest[-2])
    powers = _bracket(0.0, beyond, lambda power: _variation(to_power(power), counts) < cv)
    return min(map(to_power, powers), key=lambda spread: abs(_variation(spread, counts) - cv))


def _scaled(shape: Floats, counts: Floats, mean: float) -> Floats:
    """A multiple of the shape in whole tokens, its mean as near to the given one as can be."""
    n = float(counts.sum())

    def times(factor: float) -> Floats:
        return np.maximum(1.0, np.rint(factor * shape))

    def off(spread: Floats) -> float:
        return _sum(counts, spread) / n - mean

    # Rounding lowers a length by at most a half and, where it is to be 1, raises it by less than 1.
    unit = _sum(counts, shape) / n
    low, high = max(0.0, mean - 1) / unit, (mean + 0.5) / unit
    factors = _bracket(low, high, lambda factor: off(times(factor)) < 0)
    return min(map(times, factors), key=lambda spread: abs(off(spread)))


def _variation(lengths: Floats, counts: Floats) -> float:
    """Standard deviation over mean of the lengths, each as often as it counts."""
    n = float(counts.sum())
    mean = _sum(counts, lengths) / n
    return math.sqrt(_sum(counts, (lengths - mean) ** 2) / (n - 1)) / mean


def _sum(counts: Floats, values: Floats | Ints) -> float:
    """Values as often as they count; a dot product would call up threads for it."""
    return float((counts * values).sum())


def _bracket(low: float, high: float, is_below: Callable[[float], bool]) -> tuple[float, float]:
    """The two sides of where values cease to be below, by halving."""
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low, high
