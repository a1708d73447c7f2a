"""The variation of lengths, where a closed form or plain enumeration can say what is right."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from slotwise_sim import Continuous, PerToken, Static, Workload, simulate
from slotwise_sim.lengths import (
    cv,
    expected_longest,
    gain_bound,
    gain_bound_intervals,
    histogram,
    in_order_gain,
    in_order_gain_interval,
    std,
    variance_between,
)

samples = st.lists(st.integers(1, 60), min_size=1, max_size=40)
few_lengths = st.lists(st.integers(1, 9), min_size=1, max_size=9)
Tokens = NDArray[np.int64]


def array(tokens: list[int]) -> Tokens:
    return np.array(tokens, dtype=np.int64)


def mean_longest_of_all_batches(tokens: list[int], batch: int) -> Fraction:
    """The mean over every way to choose a batch, one by one."""
    chosen = [max(members) for members in itertools.combinations(tokens, batch)]
    return Fraction(sum(chosen), len(chosen))


def exact_order_statistic(tokens: list[int], batch: int) -> Fraction:
    """The sum over x_i C(i-1, B-1) / C(n, B), in whole numbers."""
    ranked = sorted(tokens)
    total = sum(x * math.comb(below, batch - 1) for below, x in enumerate(ranked))
    return Fraction(total, math.comb(len(ranked), batch))


@given(samples)
def test_histogram_counts_what_is_there(tokens: list[int]) -> None:
    lengths, counts = histogram(array(tokens))
    assert dict(zip(lengths.tolist(), counts.tolist(), strict=True)) == {
        x: tokens.count(x) for x in tokens
    }
    assert lengths.tolist() == sorted(set(tokens))


def test_huge_lengths_cost_no_memory() -> None:
    lengths, counts = histogram(array([10**15, 1, 10**15]))
    assert (lengths.tolist(), counts.tolist()) == ([1, 10**15], [1, 2])


@given(few_lengths, st.data())
def test_expected_longest_is_the_mean_over_all_batches(
    tokens: list[int], data: st.DataObject
) -> None:
    batch = data.draw(st.integers(1, len(tokens)))
    found = expected_longest(*histogram(array(tokens)), batch)
    assert found == pytest.approx(float(mean_longest_of_all_batches(tokens, batch)), rel=1e-14)


@pytest.mark.parametrize(("n", "batch"), [(300, 8), (300, 299), (3000, 256), (20_000, 64)])
def test_expected_longest_keeps_its_digits(n: int, batch: int) -> None:
    tokens = np.ceil(np.random.default_rng(n).lognormal(5, 1.5, n)).astype(np.int64)
    exact = exact_order_statistic(tokens.tolist(), batch)
    assert expected_longest(*histogram(tokens), batch) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("batch", [1, 2, 8, 64, 256])
def test_expected_longest_keeps_its_digits_for_ten_million_requests(batch: int) -> None:
    """Lengths 1 to 1000, ten thousand of each: binomials of millions, in whole numbers."""
    n, each, longest = 10_000_000, 10_000, 1000
    exact = Fraction(0)
    all_draws = math.comb(n, batch)
    shorter = 0
    for length in range(1, longest + 1):
        up_to = math.comb(length * each, batch)
        exact += length * Fraction(up_to - shorter, all_draws)
        shorter = up_to
    lengths = np.arange(1, longest + 1)
    found = expected_longest(lengths, np.full(longest, each), batch)
    assert found == pytest.approx(float(exact), rel=1e-12)


def test_one_long_request_among_ten_million_costs_no_digits() -> None:
    """Its chance to be in a batch of B is B / n; a chance taken from one would lose nine digits."""
    lengths, counts = array([1, 10**9]), array([10**7 - 1, 1])
    for batch in (1, 8, 256):
        exact = 1 + (10**9 - 1) * Fraction(batch, 10**7)
        assert expected_longest(lengths, counts, batch) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("batch", [4, 8, 16, 32, 64, 128])
def test_exponential_lengths_gain_a_harmonic_number(batch: int) -> None:
    """Quantiles of the exponential distribution stand in for a sample without luck."""
    n = 400_000
    quantiles = -np.log1p(-(np.arange(n) + 0.5) / n)
    tokens = np.ceil(1e5 * quantiles).astype(np.int64)
    harmonic = sum(1 / k for k in range(1, batch + 1))
    assert gain_bound(*histogram(tokens), batch) == pytest.approx(harmonic, rel=1e-3)


@given(samples, st.data())
def test_gain_bound_lies_between_one_and_the_batch_and_grows_with_it(
    tokens: list[int], data: st.DataObject
) -> None:
    counted = histogram(array(tokens))
    bounds = [gain_bound(*counted, batch) for batch in range(1, len(tokens) + 1)]
    assert bounds[0] == pytest.approx(1, rel=1e-14)
    assert bounds[-1] == pytest.approx(max(tokens) * len(tokens) / sum(tokens), rel=1e-13)
    assert all(before <= after * (1 + 1e-14) for before, after in itertools.pairwise(bounds))
    scale = data.draw(st.integers(2, 50))
    scaled = histogram(array([scale * x for x in tokens]))
    assert [gain_bound(*scaled, b + 1) for b in range(len(tokens))] == pytest.approx(bounds)


@pytest.mark.parametrize("batch", [0, -3, 4])
def test_batches_that_cannot_be_drawn_are_refused(batch: int) -> None:
    with pytest.raises(ValueError, match="cannot be drawn"):
        expected_longest(*histogram(array([5, 6, 7])), batch)


@given(samples, st.data())
def test_in_order_gain_is_the_pooled_gain_of_every_run(
    tokens: list[int], data: st.DataObject
) -> None:
    slots = data.draw(st.integers(1, len(tokens)))
    runs = [tokens[first : first + slots] for first in range(len(tokens) - slots + 1)]
    expected = slots * sum(map(max, runs)) / sum(map(sum, runs))
    assert in_order_gain(array(tokens), slots) == pytest.approx(expected, rel=1e-13)


def test_in_order_gain_is_the_ratio_of_makespans_under_backlog() -> None:
    """Static batches of consecutive requests against refilled slots, simulated."""
    tokens = np.random.default_rng(3).integers(1, 500, size=80_000)
    workload = Workload(np.zeros(len(tokens)), tokens, np.zeros(len(tokens), dtype=np.int64))
    static = simulate(workload, Static(), PerToken(8), slots=8)
    continuous = simulate(workload, Continuous(), PerToken(8), slots=8)
    ratio = static.end_s.max() / continuous.end_s.max()
    assert in_order_gain(tokens, 8) == pytest.approx(ratio, rel=0.002)


def test_lengths_that_drift_gain_in_random_but_not_in_given_order() -> None:
    """An hour of 10s, then an hour of 500s: neighbours are alike, whatever the shuffle says."""
    tokens = np.repeat([10, 500], 3600)
    assert f"{gain_bound(*histogram(tokens), 8):.2f}" == "1.95"
    assert f"{in_order_gain(tokens, 8):.2f}" == "1.00"
    estimate, low, high = in_order_gain_interval(tokens, 8, np.random.default_rng(0))
    assert 1 <= low <= estimate <= high < 1.02


@pytest.mark.parametrize("slots", [0, 4])
def test_runs_that_fill_no_batch_are_refused(slots: int) -> None:
    with pytest.raises(ValueError, match="do not fill"):
        in_order_gain(array([5, 6, 7]), slots)


@given(samples, st.integers(0, 2**32 - 1))
def test_intervals_hold_their_estimate_within_what_is_possible(
    tokens: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    found = gain_bound_intervals(array(tokens), [1, 2, 8, 64], rng, resamples=20)
    assert set(found) == {batch for batch in (1, 2, 8, 64) if batch <= len(tokens)}
    for batch, (estimate, low, high) in found.items():
        assert estimate == gain_bound(*histogram(array(tokens)), batch)
        assert 1 <= low <= estimate <= high <= batch or batch == 1
    slots = min(8, len(tokens))
    estimate, low, high = in_order_gain_interval(array(tokens), slots, rng, resamples=20)
    assert estimate == in_order_gain(array(tokens), slots)
    assert low <= estimate <= high


def test_equal_lengths_are_even_without_doubt_and_two_batches_are_not_enough_to_know() -> None:
    tokens, rng = np.full(100, 150), np.random.default_rng(0)
    assert gain_bound_intervals(tokens, [8, 64], rng) == {8: (1, 1, 1), 64: (1, 1, 64)}
    assert in_order_gain_interval(tokens, 8, rng) == (1, 1, 1)
    assert in_order_gain_interval(tokens, 64, rng) == (1, 1, 64)


def test_the_same_seed_gives_the_same_interval() -> None:
    tokens = np.random.default_rng(1).integers(1, 300, size=9_000)  # more than are cells
    once, again = (
        gain_bound_intervals(tokens, [2, 32], np.random.default_rng(5)) for _ in range(2)
    )
    assert once == again


def test_cells_do_not_change_what_an_interval_says() -> None:
    """Five thousand requests are resampled in cells of two; four thousand, one by one."""
    tokens = np.random.default_rng(2).integers(1, 300, size=5_000)
    rng = np.random.default_rng(6)
    whole = gain_bound_intervals(tokens, [8], rng, resamples=1000)[8]
    part = gain_bound_intervals(tokens[:4_000], [8], rng, resamples=1000)[8]
    assert whole[2] - whole[1] == pytest.approx((part[2] - part[1]) * math.sqrt(0.8), rel=0.15)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(-3, 3)), min_size=1, max_size=40))
def test_variance_between_groups_is_what_is_left_after_the_variance_within(
    rows: list[tuple[int, int]],
) -> None:
    tokens = [length for length, _ in rows]
    mean = Fraction(sum(tokens), len(tokens))
    total = sum((x - mean) ** 2 for x in tokens)
    within = Fraction(0)
    for group in {group for _, group in rows}:
        own = [length for length, g in rows if g == group]
        own_mean = Fraction(sum(own), len(own))
        within += sum((x - own_mean) ** 2 for x in own)
    found = variance_between(array(tokens), array([group for _, group in rows]))
    if total == 0:
        assert found is None
    else:
        assert found == pytest.approx(float(1 - within / total), abs=1e-12)


def test_spread_of_a_sample() -> None:
    tokens = array([2, 4, 4, 4, 5, 5, 7, 9])  # squared deviations add up to 32, mean 5
    assert std(tokens) == pytest.approx(math.sqrt(32 / 7))
    assert cv(tokens) == pytest.approx(math.sqrt(32 / 7) / 5)
    assert std(array([5])) is None
    assert cv(array([5])) is None
    assert cv(array([0, 0])) is None
