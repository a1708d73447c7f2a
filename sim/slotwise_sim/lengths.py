"""How output lengths vary, and what that alone is worth.

A batch that starts and ends together takes as long as its longest request, while its slots work for
the mean. So with work always waiting, refilling slots at once gains ``E[max of B] / E[X]`` over
batches of B, whatever a token costs and whenever requests arrive. Two figures estimate it:

- `gain_bound`: batches drawn at random from all lengths, exactly, on their histogram.
- `in_order_gain`: batches of consecutive requests. It says less than the bound where lengths drift
  in time, because neighbours are then alike.

Both come with 95 % intervals that respect that lengths cluster in time.

SciPy is imported where it is used: it is slow to import, and the workers of a sweep need none of
it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from slotwise_sim.bootstrap import block_length, interval, resampled_counts
from slotwise_sim.workload import Floats, Ints

if TYPE_CHECKING:
    from scipy import sparse

MOST_CELLS = 4096
"""A longer record is cut into this many runs of consecutive requests, which are then resampled."""

_HISTOGRAM_CELLS = 4_000_000  # counts of resampled histograms held at once: 32 MB


def histogram(tokens: Ints) -> tuple[Ints, Ints]:
    """Distinct lengths and how often each occurs.

    Args:
        tokens: Lengths >= 0, shape (n,), n >= 1.

    Returns:
        ``(lengths, counts)``, both of shape (distinct,); lengths ascend.
    """
    if tokens.max() < 4 * len(tokens):  # counting is faster than sorting, and no larger
        every = np.bincount(tokens)
        lengths = np.flatnonzero(every)
        return lengths.astype(np.int64), every[lengths].astype(np.int64)
    lengths, counts = np.unique(tokens, return_counts=True)
    return lengths.astype(np.int64), counts.astype(np.int64)


def std(tokens: Ints) -> float | None:
    """Standard deviation with ddof 1; None for one request."""
    return float(tokens.std(ddof=1)) if len(tokens) > 1 else None


def cv(tokens: Ints) -> float | None:
    """Coefficient of variation, `std` over mean; None for one request or a mean of zero."""
    spread, mean = std(tokens), float(tokens.mean())
    return None if spread is None or mean == 0 else spread / mean


def variance_between(tokens: Ints, groups: Ints) -> float | None:
    """Share of the variance of lengths that lies between groups, not within them.

    Eta squared of a one-way analysis of variance: the groups' squared deviations from the overall
    mean over all requests' squared deviations from it. Near 1, one group (a route, a model) has
    lengths of its own and serving it apart is the cheaper cure. It never falls when groups are
    split further; with as many groups as requests it is 1 and says nothing.

    Args:
        tokens: Lengths, shape (n,).
        groups: Any integer label of each request's group, shape (n,).

    Returns:
        A share from 0 to 1; None where the lengths do not vary.
    """
    deviation = tokens - tokens.mean()
    total = float(deviation @ deviation)
    if total == 0:
        return None
    _, group = np.unique(groups, return_inverse=True)
    sums = np.bincount(group, weights=deviation)
    between = float((sums**2 / np.bincount(group)).sum())
    return min(between / total, 1.0)


def expected_longest(lengths: Ints, counts: Ints, batch: int) -> float:
    """Mean of the longest of ``batch`` requests drawn without replacement from the sample.

    The mean over all C(n, B) batches, as the order-statistic formula sum x_i C(i-1, B-1) / C(n, B)
    has it, summed over distinct lengths instead of requests: E[max] = x_1 + sum (x_k+1 - x_k) Q_k,
    where Q_k = 1 - C(F_k, B) / C(n, B) is the chance that a batch reaches beyond x_k, and F_k
    counts the requests up to x_k. The ratio of binomials is a product of B factors
    (F - j) / (n - j) = 1 - (n - F) / (n - j); summed as ``log1p`` and taken from one by ``expm1``,
    neither a rare longest request nor millions of requests cost digits: all terms are positive, and
    the relative error stays below 1e-12 (n = 10^7, B = 256 and beyond).

    Args:
        lengths: Distinct lengths, ascending, shape (distinct,).
        counts: How often each occurs, >= 1, shape (distinct,).
        batch: Requests of a batch, B.

    Returns:
        Tokens.

    Raises:
        ValueError: ``batch`` is below 1, or above the sample's size: such a batch cannot be drawn.
    """
    n = int(counts.sum())
    if not 1 <= batch <= n:
        raise ValueError(f"a batch of {batch} cannot be drawn from {n} requests")
    beyond = n - np.cumsum(counts[:-1])  # requests longer than each length but the last
    log_none_beyond = np.zeros(len(beyond))
    with np.errstate(divide="ignore"):
        for drawn in range(batch):
            share = np.minimum(beyond / (n - drawn), 1.0)
            log_none_beyond += np.log1p(-share)
    some_beyond = -np.expm1(log_none_beyond)
    return float(lengths[0] + np.diff(lengths) @ some_beyond)


def gain_bound(lengths: Ints, counts: Ints, batch: int) -> float:
    """How much longer batches of random requests take than refilled slots: E[max of B] / E[X].

    Args:
        lengths: Distinct lengths, ascending, the longest >= 1, shape (distinct,).
        counts: How often each occurs, shape (distinct,).
        batch: Requests of a batch, B: the slots.

    Returns:
        A factor from 1 (equal lengths) to ``batch``.

    Raises:
        ValueError: As `expected_longest`.
    """
    mean = float(lengths @ counts) / int(counts.sum())
    return expected_longest(lengths, counts, batch) / mean


def gain_bound_intervals(
    tokens: Ints, batches: Collection[int], rng: np.random.Generator, resamples: int = 200
) -> dict[int, tuple[float, float, float]]:
    """`gain_bound` for several batch sizes, with 95 % intervals.

    Circular block bootstrap of the requests in order of time (`bootstrap`); records of more than
    `MOST_CELLS` requests are resampled in cells of consecutive requests, whose histograms add. The
    record is worth as many independent parts as it has blocks, but no more than it has batches of
    B: the longest of B is decided by the longest one in B. Few parts make the interval wide
    (`bootstrap.interval`). It cannot know of lengths longer than any in the sample.

    In seeded trials (200 and 1000 requests, batches of 8) the interval held the truth in 95 to
    97 % where lengths were independent, and in 89 % where they came in clusters of twenty.

    Args:
        tokens: Lengths in order of time, shape (n,).
        batches: Batch sizes; those above n have no bound and are left out.
        rng: Source of randomness.
        resamples: Resampled records.

    Returns:
        ``{batch: (estimate, low, high)}`` with 1 <= low <= estimate <= high <= batch.
    """
    n = len(tokens)
    sizes = sorted({batch for batch in batches if batch <= n})
    lengths, counts = histogram(tokens)
    cells = _cells_by_length(tokens, lengths)
    per_cell = -(-n // cells.shape[0])
    block = block_length(_cell_means(tokens, per_cell))
    times_drawn = resampled_counts(cells.shape[0], block, resamples, rng)
    rows = max(1, _HISTOGRAM_CELLS // len(lengths))
    gains = np.concatenate(
        [
            _gains((cells.T @ times_drawn[first : first + rows].T).T, lengths, sizes)
            for first in range(0, resamples, rows)
        ]
    )
    found = {}
    for column, batch in enumerate(sizes):
        estimate = gain_bound(lengths, counts, batch)
        parts = n / (block * per_cell + batch - 1)
        ends = interval(estimate, gains[:, column], parts, low=1.0, high=float(batch))
        found[batch] = (estimate, *ends)
    return found


def in_order_gain(tokens: Ints, slots: int) -> float:
    """What refilling gains over full batches of consecutive requests, work always waiting.

    A batch of ``slots`` requests holds every slot for its longest: slots * max / sum of its tokens,
    pooled over batches. Where the first batch starts is an accident, so every run of ``slots``
    consecutive requests counts as a batch: the mean over the ``slots`` ways to place the
    boundaries.

    Args:
        tokens: Lengths in order of arrival, shape (n,).
        slots: Requests of a batch.

    Returns:
        A factor from 1 to ``slots``.

    Raises:
        ValueError: ``slots`` is below 1, or there are too few requests for one batch.
    """
    held, worked = _held_and_worked(tokens, slots)
    return float(held.sum() / worked.sum())


def in_order_gain_interval(
    tokens: Ints, slots: int, rng: np.random.Generator, resamples: int = 200
) -> tuple[float, float, float]:
    """`in_order_gain` with its 95 % interval.

    Circular block bootstrap over the batches in order of time, in blocks of at least ``slots``
    because batches overlap. The series that decides on the length of blocks is each batch's
    contribution to the gain. In the trials of `gain_bound_intervals` it held the truth in 92 to
    96 %.

    Args:
        tokens: Lengths in order of arrival, shape (n,).
        slots: Requests of a batch.
        rng: Source of randomness.
        resamples: Resampled records.

    Returns:
        ``(estimate, low, high)`` with 1 <= low <= estimate <= high <= slots.

    Raises:
        ValueError: As `in_order_gain`.
    """
    held, worked = _held_and_worked(tokens, slots)
    return gain_interval(held, worked, slots, rng, resamples, block=slots, low=1.0)


def gain_interval(
    numerator: Floats,
    denominator: Floats,
    slots: int,
    rng: np.random.Generator,
    resamples: int = 200,
    *,
    block: int,
    low: float,
) -> tuple[float, float, float]:
    """The ratio of two sums over the same rows, such as a gain, with its 95 % interval.

    Args:
        numerator: By row, in order of time, shape (rows,); of a gain, what it takes in batches.
        denominator: By row, shape (rows,); of a gain, what it takes when slots are refilled.
        slots: Requests of a batch. No gain is higher at a fixed time per token; where a ratio is,
            its resamples bound it.
        rng: Source of randomness.
        resamples: Resampled records.
        block: Rows that at least are drawn together, because they depend on each other.
        low: The ratio cannot be lower.

    Returns:
        ``(estimate, low, high)``.
    """
    estimate = float(numerator.sum() / denominator.sum())
    per_cell = -(-len(numerator) // MOST_CELLS)
    first = np.arange(0, len(numerator), per_cell)
    sums = np.stack(
        [np.add.reduceat(numerator, first), np.add.reduceat(denominator, first)], axis=1
    )
    contribution = (sums[:, 0] - estimate * sums[:, 1]) / np.diff(first, append=len(numerator))
    block = min(len(first), max(block_length(contribution), -(-block // per_cell)))
    resampled = resampled_counts(len(first), block, resamples, rng) @ sums
    ratios = resampled[:, 0] / resampled[:, 1]
    parts = (len(numerator) + slots - 1) / (block * per_cell + slots - 1)
    high = max(float(slots), float(ratios.max()))
    return (estimate, *interval(estimate, ratios, parts, low=low, high=high))


def _held_and_worked(tokens: Ints, slots: int) -> tuple[Floats, Floats]:
    """Slot-tokens held and worked by every run of ``slots`` requests, shape (n - slots + 1,)."""
    n = len(tokens)
    if not 1 <= slots <= n:
        raise ValueError(f"{n} requests do not fill one batch of {slots}")
    longest, covered = tokens, 1  # the longest of every run of `covered` requests
    while covered < slots:
        step = min(covered, slots - covered)
        longest = np.maximum(longest[:-step], longest[step:])
        covered += step
    total = np.cumsum(np.concatenate([[0], tokens]))
    worked = total[slots:] - total[:-slots]
    return slots * longest.astype(np.float64), worked.astype(np.float64)


def _cell_means(tokens: Ints, per_cell: int) -> Floats:
    first = np.arange(0, len(tokens), per_cell)
    means: Floats = np.add.reduceat(tokens, first) / np.diff(first, append=len(tokens))
    return means


def _cells_by_length(tokens: Ints, lengths: Ints) -> sparse.csr_matrix:
    """Histogram of each cell of consecutive requests, shape (cells, distinct)."""
    from scipy import sparse

    n = len(tokens)
    per_cell = -(-n // MOST_CELLS)
    cell = np.arange(n) // per_cell
    column = np.searchsorted(lengths, tokens)
    shape = (-(-n // per_cell), len(lengths))
    return sparse.coo_matrix((np.ones(n), (cell, column)), shape=shape).tocsr()


def _gains(counts: Floats, lengths: Ints, batches: Sequence[int]) -> Floats:
    """`gain_bound` of many histograms on the same lengths, some counts being zero.

    Binomials by the log-gamma function: 1e-7 relative at worst, far below what resampling blurs,
    and a cost that does not grow with the batch.

    Args:
        counts: Shape (histograms, distinct).
        lengths: Ascending, shape (distinct,).
        batches: Batch sizes.

    Returns:
        Shape (histograms, batches).
    """
    from scipy import special

    up_to = np.cumsum(counts, axis=1)
    n = up_to[:, -1:]
    log_factorial = special.gammaln(up_to + 1)
    means = counts @ lengths / n[:, 0]
    steps = np.diff(lengths)
    gains = np.empty((len(counts), len(batches)))
    for column, batch in enumerate(batches):
        # log of C(F, B), but for the 1 / B! that the ratio of two of them does not need
        log_draws = log_factorial - special.gammaln(np.maximum(up_to - batch, 0) + 1)
        none_beyond = np.exp(log_draws - log_draws[:, -1:])
        none_beyond[up_to < batch] = 0
        longest = lengths[-1] - none_beyond[:, :-1] @ steps
        gains[:, column] = longest / means
    return gains
