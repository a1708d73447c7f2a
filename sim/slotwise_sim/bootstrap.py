"""Resampling of records that depend on their neighbours in time.

Traffic is not a heap of independent requests: long answers come in clusters and arrivals in bursts.
Drawing single requests would tear those apart and make every interval too narrow. The circular
block bootstrap (Politis and Romano, 1992) draws runs of consecutive records instead; the record is
closed to a ring, so that every record is drawn equally often. How long the runs must be is read off
the record's own autocorrelation.

SciPy is imported where it is used: it is slow to import, and the workers of a sweep need none of
it.
"""

from __future__ import annotations

import math

import numpy as np

from slotwise_sim.workload import Floats, Ints


def block_length(series: Floats) -> int:
    """How long the runs must be for this series.

    The automatic rule of Politis and White, "Automatic block-length selection for the dependent
    bootstrap" (2004), with the correction of Patton, Politis and White (2009), for the circular
    bootstrap: the length that minimises the mean squared error of the variance of the mean.
    Autocovariances count up to twice the lag after which they are no longer told from noise, with a
    flat-top window. As the paper advises, the length is kept below ``min(3 sqrt(n), n / 3)``.

    Args:
        series: Values in order of time, shape (n,).

    Returns:
        A length from 1 (no dependence seen) to ``max(1, min(3 sqrt(n), n / 3))``.
    """
    n = len(series)
    longest = max(1, math.floor(min(3 * math.sqrt(n), n / 3)))
    quiet = max(5, math.ceil(math.sqrt(math.log10(max(n, 1)))))
    lags = math.ceil(math.sqrt(n)) + quiet
    if longest == 1 or np.ptp(series) == 0:
        return 1
    covariance = _autocovariances(series, min(lags, n - 1))
    noise = 2 * math.sqrt(math.log10(n) / n) * covariance[0]
    loud = np.flatnonzero(np.abs(covariance) >= noise)  # lag 0 always is
    # The lag before the first `quiet` lags in a row that are noise.
    silences = np.diff(np.append(loud, len(covariance) + quiet)) > quiet
    last = int(loud[np.argmax(silences)])
    window_end = min(2 * max(last, 1), len(covariance) - 1)
    lag = np.arange(1, window_end + 1)
    weight = np.minimum(1.0, 2 * (1 - lag / window_end)) if window_end > 1 else np.ones(1)
    weighted = weight * covariance[1 : window_end + 1]
    spectrum_at_zero = covariance[0] + 2 * weighted.sum()
    slope = 2 * (lag * weighted).sum()
    if spectrum_at_zero <= 0:  # strongly alternating: the mean is steadier than if independent
        return 1
    length = (2 * slope**2 / (4 / 3 * spectrum_at_zero**2)) ** (1 / 3) * n ** (1 / 3)
    return int(min(max(1, math.ceil(length)), longest))


def _autocovariances(series: Floats, lags: int) -> Floats:
    """Autocovariances at lags 0 to ``lags``, divided by n each; by FFT."""
    from scipy import fft

    n = len(series)
    size = fft.next_fast_len(n + lags, real=True)
    spectrum = fft.rfft(series - series.mean(), size)
    covariance: Floats = fft.irfft(np.abs(spectrum) ** 2, size)[: lags + 1] / n
    return covariance


def resampled_rows(n: int, block: int, rng: np.random.Generator) -> Ints:
    """One circular block resample of n rows.

    Args:
        n: Rows of the record, and of the resample.
        block: Rows of a run; the last run is cut off at n.
        rng: Source of randomness.

    Returns:
        Row numbers, shape (n,): runs of consecutive numbers modulo n.
    """
    starts = rng.integers(n, size=-(-n // block))
    rows: Ints = ((starts[:, None] + np.arange(block)) % n).reshape(-1)[:n]
    return rows


def resampled_counts(n: int, block: int, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each row is in each of many circular block resamples.

    A statistic of sums over rows needs no more than these counts: one matrix product gives it for
    every resample.

    Args:
        n: Rows of the record, and of every resample.
        block: Rows of a run, at most n; the last run is cut off at n.
        resamples: How many.
        rng: Source of randomness.

    Returns:
        Whole numbers, shape (resamples, n); each row of them adds up to n.
    """
    runs = -(-n // block)
    starts = rng.integers(n, size=(resamples, runs))
    lengths = np.full(runs, block)
    lengths[-1] = n - block * (runs - 1)
    # Runs raise the count at their start and lower it after their end, on a ring laid out twice.
    width = 2 * n + 1
    at = np.arange(resamples)[:, None] * width + starts
    raised = np.bincount(at.ravel(), minlength=resamples * width)
    lowered = np.bincount((at + lengths).ravel(), minlength=resamples * width)
    steps = (raised - lowered).reshape(resamples, width)
    counts = np.cumsum(steps, axis=1, dtype=np.float64)
    return counts[:, :n] + counts[:, n : 2 * n]


def interval(
    estimate: float, resampled: Floats, parts: float, low: float, high: float
) -> tuple[float, float]:
    """The 95 % interval of a positive estimate from its resampled values.

    Percentiles of the resampled values as ratios to the estimate (a factor errs by factors), with
    two corrections, because plain percentiles are too narrow where samples are small or skewed:

    - A sample that happens to miss the longest lengths estimates too little, and its resamples,
      which miss some more, fall short of it in turn. So the upper end lies above the estimate by
      the larger of two ratios: resamples above their own mean, or resamples below the estimate.
    - Both ends are stretched by what Student's t says a spread seen on so few independent parts is
      worth (Hesterberg, "What teachers should know about the bootstrap", 2015, section 3.3).

    Args:
        estimate: The statistic of the record itself, > 0.
        resampled: The statistic of each resample, > 0, shape (resamples,).
        parts: How many independent parts the record has for this statistic. Fewer than two say
            nothing about spread: the interval is then all of ``low`` to ``high``.
        low: The statistic cannot be lower.
        high: The statistic cannot be higher.

    Returns:
        Lower and upper end, with ``low <= lower <= estimate <= upper <= high``.
    """
    if parts < 2:
        return low, high
    from scipy import special

    ratio = np.log(resampled / estimate)
    below, above = np.quantile(ratio, [0.025, 0.975])
    stretch = special.stdtrit(parts - 1, 0.975) / special.ndtri(0.975)
    stretch *= math.sqrt(parts / (parts - 1))
    lower = estimate * math.exp(stretch * (below - ratio.mean()))
    upper = estimate * math.exp(min(stretch * max(above - ratio.mean(), -below), math.log(high)))
    return min(max(lower, low), estimate), max(min(upper, high), estimate)
