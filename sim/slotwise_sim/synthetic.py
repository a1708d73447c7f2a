"""Made traffic: instants of arrival, lengths and times, each ``(n, parameters, rng) -> array``.

Arrivals ascend, in seconds from the origin; lengths are whole tokens. What is drawn depends on the
parameters and on the state of the generator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from slotwise_sim.workload import Floats, Ints

Lengths = Callable[[int, np.random.Generator], Ints]
"""A source of lengths for `mixture`: ``lambda n, rng: uniform(n, 40, 199, rng)``."""


def constant_arrivals(n: int, rate: float) -> Floats:
    """One request every ``1 / rate`` seconds, the first at 0.

    Args:
        n: Requests.
        rate: Requests per second, > 0.

    Returns:
        Seconds, shape (n,).

    Raises:
        ValueError: The rate is not positive.
    """
    _require(rate > 0, f"rate must be > 0, got {rate}")
    return np.arange(n) / rate


def poisson_arrivals(n: int, rate: float, rng: np.random.Generator) -> Floats:
    """A Poisson process: independent exponential gaps, the first of them before the first request.

    Args:
        n: Requests.
        rate: Mean requests per second, > 0.
        rng: Source of randomness.

    Returns:
        Seconds, shape (n,).

    Raises:
        ValueError: The rate is not positive.
    """
    _require(rate > 0, f"rate must be > 0, got {rate}")
    return np.cumsum(rng.exponential(1 / rate, n))


def gamma_arrivals(n: int, rate: float, cv: float, rng: np.random.Generator) -> Floats:
    """Independent gamma gaps: burstier than Poisson for ``cv`` above 1, steadier below.

    Args:
        n: Requests.
        rate: Mean requests per second, > 0.
        cv: Coefficient of variation of the gaps, > 0; 1 is Poisson.
        rng: Source of randomness.

    Returns:
        Seconds, shape (n,).

    Raises:
        ValueError: The rate or the variation is not positive.
    """
    _require(rate > 0, f"rate must be > 0, got {rate}")
    _require(cv > 0, f"cv must be > 0, got {cv}")
    return np.cumsum(rng.gamma(1 / cv**2, cv**2 / rate, n))


def upfront_arrivals(n: int) -> Floats:
    """All requests at 0: an offline job."""
    return np.zeros(n)


def exponential_times(n: int, mean_s: float, rng: np.random.Generator) -> Floats:
    """Independent exponential times, such as what a user thinks before a request.

    Args:
        n: Times.
        mean_s: Mean seconds, finite and >= 0.
        rng: Source of randomness.

    Returns:
        Seconds, shape (n,).

    Raises:
        ValueError: The mean is out of range.
    """
    _require(0 <= mean_s < np.inf, f"mean_s must be finite and >= 0, got {mean_s}")
    return rng.exponential(mean_s, n)


def constant(n: int, value: int) -> Ints:
    """Every length the same.

    Args:
        n: Requests.
        value: Tokens.

    Returns:
        Tokens, shape (n,).
    """
    return np.full(n, value, dtype=np.int64)


def uniform(n: int, low: int, high: int, rng: np.random.Generator) -> Ints:
    """Every whole number from ``low`` to ``high``, both included, equally often.

    Args:
        n: Requests.
        low: Fewest tokens.
        high: Most tokens, >= low.
        rng: Source of randomness.

    Returns:
        Tokens, shape (n,).

    Raises:
        ValueError: ``high`` is below ``low``.
    """
    _require(high >= low, f"uniform needs low <= high, got [{low}, {high}]")
    return rng.integers(low, high, size=n, dtype=np.int64, endpoint=True)


def lognormal(n: int, mean: float, cv: float, rng: np.random.Generator) -> Ints:
    """Log-normal lengths of a given mean and variation, rounded to whole tokens, at least 1.

    With ``s^2 = ln(1 + cv^2)`` the logarithm is normal with variance ``s^2`` and mean
    ``ln(mean) - s^2 / 2``. Rounding up to 1 raises the mean where it is of a few tokens only.

    Args:
        n: Requests.
        mean: Mean tokens, > 0.
        cv: Coefficient of variation, >= 0.
        rng: Source of randomness.

    Returns:
        Tokens, shape (n,).

    Raises:
        ValueError: The mean is not positive, the variation is negative, or they are so large that
            lengths are no longer whole numbers.
    """
    _require(mean > 0, f"mean must be > 0, got {mean}")
    _require(cv >= 0, f"cv must be >= 0, got {cv}")
    variance = np.log1p(cv**2)
    drawn = rng.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), n)
    _require(
        n == 0 or float(drawn.max()) < 2**53, f"mean {mean} and cv {cv} give lengths beyond 2**53"
    )
    return np.maximum(1, np.rint(drawn)).astype(np.int64)


def empirical(n: int, values: ArrayLike, rng: np.random.Generator) -> Ints:
    """Lengths drawn from a sample, each independently and equally likely.

    Args:
        n: Requests.
        values: The sample, in tokens; at least one.
        rng: Source of randomness.

    Returns:
        Tokens, shape (n,).

    Raises:
        ValueError: The sample is empty.
    """
    sample = np.asarray(values, dtype=np.int64)
    _require(len(sample) > 0, "an empirical distribution needs at least one value")
    return sample[rng.integers(len(sample), size=n)]


def mixture(n: int, components: Sequence[tuple[float, Lengths]], rng: np.random.Generator) -> Ints:
    """Each request's length from one of several sources, chosen by weight.

    Args:
        n: Requests.
        components: ``(weight, source)`` each; weights are > 0 and need not add up to 1.
        rng: Source of randomness.

    Returns:
        Tokens, shape (n,).

    Raises:
        ValueError: There is no component, or a weight is not positive.
    """
    _require(len(components) > 0, "a mixture needs at least one component")
    weights = np.array([weight for weight, _ in components], dtype=np.float64)
    _require(bool((weights > 0).all()), "the weights of a mixture must be > 0")
    chosen = rng.choice(len(components), size=n, p=weights / weights.sum())
    lengths = np.empty(n, dtype=np.int64)
    for index, (_, source) in enumerate(components):
        here = chosen == index
        lengths[here] = source(int(here.sum()), rng)
    return lengths


def predicted_tokens(output_tokens: Ints, error: float, rng: np.random.Generator) -> Floats:
    """What a predictor of a given error would have said of each output length.

    The length times ``exp(error z)``, z standard normal and independent: of the predictions, 68 %
    lie within a factor ``exp(error)`` of the length.

    Args:
        output_tokens: The lengths, shape (n,).
        error: Standard deviation of the prediction's logarithm, >= 0; 0 knows the lengths.
        rng: Source of randomness; one draw a request, in order of the rows.

    Returns:
        Tokens, shape (n,); not rounded, so that equal lengths are told apart by luck alone.

    Raises:
        ValueError: The error is negative.
    """
    _require(error >= 0, f"error must be >= 0, got {error}")
    factors: Floats = np.exp(error * rng.standard_normal(len(output_tokens)))
    return factors * output_tokens


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
