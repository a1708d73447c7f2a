"""Made traffic has the distributions its parameters name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from slotwise_sim.synthetic import (
    Lengths,
    constant,
    constant_arrivals,
    empirical,
    exponential_times,
    gamma_arrivals,
    lognormal,
    mixture,
    poisson_arrivals,
    predicted_tokens,
    uniform,
    upfront_arrivals,
)

N = 200_000


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260818)


def test_constant_arrivals() -> None:
    assert constant_arrivals(4, 2.0).tolist() == [0, 0.5, 1, 1.5]


def test_poisson_gaps_are_exponential(rng: np.random.Generator) -> None:
    gaps = np.diff(poisson_arrivals(N, 12.0, rng), prepend=0.0)
    assert stats.kstest(gaps, "expon", args=(0, 1 / 12)).pvalue > 0.01


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.5])
def test_gamma_gaps_have_the_rate_and_the_variation(cv: float, rng: np.random.Generator) -> None:
    gaps = np.diff(gamma_arrivals(N, 12.0, cv, rng), prepend=0.0)
    if cv <= 1:  # burstier gaps are often too short to be told from zero late in the record
        assert stats.kstest(gaps, "gamma", args=(1 / cv**2, 0, cv**2 / 12)).pvalue > 0.01
    assert gaps.mean() == pytest.approx(1 / 12, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.02)


def test_exponential_times_have_the_mean(rng: np.random.Generator) -> None:
    times = exponential_times(N, 5.0, rng)
    assert stats.kstest(times, "expon", args=(0, 5.0)).pvalue > 0.01
    assert exponential_times(3, 0.0, rng).tolist() == [0, 0, 0]


def test_upfront_arrivals() -> None:
    assert upfront_arrivals(3).tolist() == [0, 0, 0]


def test_uniform_lengths_include_both_ends(rng: np.random.Generator) -> None:
    lengths, counts = np.unique(uniform(N, 40, 44, rng), return_counts=True)
    assert lengths.tolist() == [40, 41, 42, 43, 44]
    assert stats.chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize(("mean", "cv"), [(500.0, 1.2), (100.0, 0.5), (300.0, 0.0)])
def test_lognormal_lengths_have_the_mean_and_the_variation(
    mean: float, cv: float, rng: np.random.Generator
) -> None:
    lengths = lognormal(N, mean, cv, rng)
    assert lengths.min() >= 1
    assert lengths.mean() == pytest.approx(mean, rel=0.01)
    assert lengths.std() / lengths.mean() == pytest.approx(cv, rel=0.03, abs=1e-3)


def test_lognormal_lengths_are_never_zero(rng: np.random.Generator) -> None:
    assert lognormal(1000, 0.01, 1.0, rng).tolist() == [1] * 1000


def test_mixture_of_the_article_has_its_mean_and_its_gap(rng: np.random.Generator) -> None:
    """85 % of 40 to 199, 15 % of 400 to 999: a mean of 206.5, and nothing in between."""
    components: list[tuple[float, Lengths]] = [
        (85, lambda n, rng: uniform(n, 40, 199, rng)),
        (15, lambda n, rng: uniform(n, 400, 999, rng)),
    ]
    lengths = mixture(N, components, rng)
    assert lengths.mean() == pytest.approx(0.85 * 119.5 + 0.15 * 699.5, rel=0.01)
    assert (lengths >= 400).mean() == pytest.approx(0.15, rel=0.02)
    assert not ((lengths > 199) & (lengths < 400)).any()


def test_empirical_lengths_are_the_samples_own(rng: np.random.Generator) -> None:
    lengths, counts = np.unique(empirical(N, [7, 7, 9], rng), return_counts=True)
    assert lengths.tolist() == [7, 9]
    assert counts[0] / N == pytest.approx(2 / 3, rel=0.01)


def test_constant_lengths() -> None:
    assert constant(3, 150).tolist() == [150, 150, 150]


def test_predictions_are_off_by_log_normal_factors(rng: np.random.Generator) -> None:
    lengths = uniform(N, 40, 999, rng)
    off = np.log(predicted_tokens(lengths, 0.5, rng) / lengths)
    assert stats.kstest(off / 0.5, "norm").pvalue > 0.01
    assert abs(np.corrcoef(off, lengths)[0, 1]) < 0.01


def test_a_prediction_without_error_is_the_length(rng: np.random.Generator) -> None:
    assert predicted_tokens(constant(3, 150), 0.0, rng).tolist() == [150, 150, 150]


def test_the_same_seed_makes_the_same_traffic() -> None:
    one, other = (lognormal(50, 300, 1.0, np.random.default_rng(4)) for _ in range(2))
    assert one.tolist() == other.tolist()


def test_parameters_out_of_range_are_refused(rng: np.random.Generator) -> None:
    refused: list[Callable[[], object]] = [
        lambda: constant_arrivals(3, 0.0),
        lambda: poisson_arrivals(3, -1.0, rng),
        lambda: gamma_arrivals(3, 1.0, 0.0, rng),
        lambda: gamma_arrivals(3, 0.0, 1.0, rng),
        lambda: exponential_times(3, -1.0, rng),
        lambda: exponential_times(3, np.inf, rng),
        lambda: uniform(3, 5, 4, rng),
        lambda: lognormal(3, 0.0, 1.0, rng),
        lambda: lognormal(3, 1.0, -0.1, rng),
        lambda: lognormal(3, 1e30, 1.0, rng),
        lambda: empirical(3, [], rng),
        lambda: mixture(3, [], rng),
        lambda: predicted_tokens(constant(3, 1), -0.1, rng),
        lambda: mixture(3, [(0.0, lambda n, rng: uniform(n, 1, 2, rng))], rng),
    ]
    for call in refused:
        with pytest.raises(ValueError, match=r".+"):
            call()
