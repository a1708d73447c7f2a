"""Lengths spread anew: the mean stays, the variation is what was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from slotwise_sim.synthetic import lognormal, uniform
from slotwise_sim.variation import with_cv
from slotwise_sim.workload import Ints


def cv_of(tokens: Ints) -> float:
    return float(tokens.std(ddof=1) / tokens.mean())


samples = st.lists(st.integers(1, 5000), min_size=2, max_size=60).map(np.array)
cvs = st.floats(0.05, 2)


@pytest.mark.parametrize("n", [200, 20_000])
@pytest.mark.parametrize("mean", [20.0, 200.0, 2000.0])
@pytest.mark.parametrize("drawn_cv", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("cv", [0.05, 0.25, 0.5, 1.0, 2.0])
def test_the_mean_stays_and_the_variation_is_as_asked(
    n: int, mean: float, drawn_cv: float, cv: float
) -> None:
    tokens = lognormal(n, mean, drawn_cv, np.random.default_rng(n))
    spread = with_cv(tokens, cv)
    assert spread.mean() == pytest.approx(tokens.mean(), rel=0.005)
    assert cv_of(spread) == pytest.approx(cv, rel=0.01 if cv * mean >= 4 else 0.1)


@given(samples, cvs)
def test_no_whole_token_comes_nearer_by_far(tokens: Ints, cv: float) -> None:
    """Rounding moves a length by half a token, and the mean and the deviation by no more."""
    assume(len(set(tokens.tolist())) > 1)
    assume(cv < 0.5 * cv_of(with_most(tokens)))
    spread = with_cv(tokens, cv)
    assert spread.min() >= 1
    assert abs(spread.mean() - tokens.mean()) <= 0.5
    assert abs(cv_of(spread) - cv) * spread.mean() <= 1.5


def with_most(tokens: Ints) -> Ints:
    """All that can be had goes to the longest."""
    longest = tokens == tokens.max()
    left = tokens.sum() - (~longest).sum()
    return np.where(longest, left // longest.sum(), 1)


@given(samples, cvs)
def test_ranks_and_ties_are_kept(tokens: Ints, cv: float) -> None:
    assume(len(set(tokens.tolist())) > 1)
    assume(cv < 0.9 * cv_of(with_most(tokens)))
    spread = with_cv(tokens, cv)
    order = np.argsort(tokens, kind="stable")
    assert (np.diff(spread[order]) >= 0).all()
    assert (np.diff(spread[order])[np.diff(tokens[order]) == 0] == 0).all()


@given(samples)
def test_without_variation_all_are_the_rounded_mean(tokens: Ints) -> None:
    assert with_cv(tokens, 0.0).tolist() == [round(float(tokens.mean()))] * len(tokens)


@given(samples)
def test_its_own_variation_changes_nothing(tokens: Ints) -> None:
    assume(len(set(tokens.tolist())) > 1)
    assert np.abs(with_cv(tokens, cv_of(tokens)) - tokens).max() <= 1


def test_log_normal_lengths_stay_log_normal() -> None:
    """With the spread of the logarithm that belongs to the new variation."""
    tokens = lognormal(20_000, 5000, 0.5, np.random.default_rng(1))
    logs = np.log(with_cv(tokens, 1.5))
    assert logs.std() == pytest.approx(math.sqrt(math.log1p(1.5**2)), rel=0.05)
    assert abs(stats.skew(logs)) < 0.05
    assert abs(stats.kurtosis(logs)) < 0.1


def test_two_lengths_by_hand() -> None:
    """A pair 100 - d, 100 + d has a deviation of d sqrt(2)."""
    assert with_cv(np.array([90, 110]), 0.2 * math.sqrt(2)).tolist() == [80, 120]
    assert with_cv(np.array([1, 199]), 0.5 * math.sqrt(2)).tolist() == [50, 150]
    assert with_cv(np.array([60, 120, 120]), math.sqrt(3) / 10).tolist() == [80, 110, 110]


def test_rows_may_come_in_any_order() -> None:
    tokens = uniform(500, 40, 900, np.random.default_rng(2))
    order = np.random.default_rng(3).permutation(500)
    assert np.array_equal(with_cv(tokens[order], 0.8), with_cv(tokens, 0.8)[order])


def test_what_cannot_be_is_refused() -> None:
    for cv in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="cv must be finite"):
            with_cv(np.array([1, 2]), cv)
    for tokens in ([7], [7, 7, 7]):
        with pytest.raises(ValueError, match="all lengths are 7"):
            with_cv(np.array(tokens), 0.5)
    # Of four, one has it all: 1 + 1 + 1 + 37, a deviation of 18 about a mean of 10.
    assert with_cv(np.array([9, 10, 10, 11]), 1.8).tolist() == [1, 1, 1, 37]
    with pytest.raises(
        ValueError, match=r"4 lengths with a mean of 10 can have a cv of at most 1\.8 "
    ):
        with_cv(np.array([9, 10, 10, 11]), 1.9)
    with pytest.raises(ValueError, match="the most is 2147483647"):
        with_cv(np.array([2_000_000_000, 2_100_000_000]), 0.5)
