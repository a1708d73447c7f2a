"""Resampling in runs: the counts, the choice of length, the interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from slotwise_sim.bootstrap import block_length, interval, resampled_counts, resampled_rows


@given(st.integers(1, 60), st.data())
def test_rows_are_runs_on_a_ring(n: int, data: st.DataObject) -> None:
    block = data.draw(st.integers(1, n))
    rows = resampled_rows(n, block, np.random.default_rng(data.draw(st.integers(0, 999))))
    assert len(rows) == n
    within_runs = np.arange(1, n) % block != 0
    assert ((np.diff(rows) % n)[within_runs] == 1 % n).all()


@given(st.integers(1, 60), st.data())
def test_counts_are_those_of_the_runs(n: int, data: st.DataObject) -> None:
    """Counted by steps up and down; here by writing every run out."""
    block = data.draw(st.integers(1, n))
    seed = data.draw(st.integers(0, 999))
    counts = resampled_counts(n, block, 5, np.random.default_rng(seed))
    starts = np.random.default_rng(seed).integers(n, size=(5, -(-n // block)))
    for row, of_row in zip(counts, starts, strict=True):
        members = [(start + step) % n for start in of_row for step in range(block)][:n]
        assert row.tolist() == np.bincount(members, minlength=n).tolist()


def test_every_row_is_drawn_equally_often() -> None:
    counts = resampled_counts(50, 7, 20_000, np.random.default_rng(0))
    assert counts.sum(axis=1).tolist() == [50] * 20_000
    assert counts.mean(axis=0) == pytest.approx(np.ones(50), abs=0.05)


def test_independent_values_need_no_runs_and_dependent_ones_the_longer_the_more() -> None:
    rng = np.random.default_rng(20260818)
    noise = rng.normal(size=20_000)
    chosen = {
        phi: block_length(np.asarray(lfilter([1], [1, -phi], noise), dtype=np.float64))
        for phi in (0.0, 0.5, 0.9)
    }
    assert chosen[0.0] <= 4
    # The best length for an AR(1) series in theory: G = 2 phi R0 / (1 - phi)^2, g0 = R0 (1 + phi) /
    # (1 - phi), so (2 G^2 / (4/3 g0^2) n)^(1/3) = (6 phi^2 n / (1 - phi^2)^2)^(1/3).
    for phi in (0.5, 0.9):
        ideal = (6 * phi**2 * 20_000 / (1 - phi**2) ** 2) ** (1 / 3)
        assert chosen[phi] == pytest.approx(ideal, rel=0.35)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 30])
def test_short_series_have_a_length_too(n: int) -> None:
    for series in (np.arange(n), np.ones(n), np.arange(n) % 2):
        assert 1 <= block_length(series.astype(np.float64)) <= max(1, n // 3)


def test_a_trend_takes_long_runs_but_not_beyond_what_is_allowed() -> None:
    for n in (30, 900, 10_000):
        longest = min(3 * n**0.5, n / 3)
        assert longest / 2 < block_length(np.arange(float(n))) <= longest


def test_an_interval_of_normal_values_is_that_of_students_t() -> None:
    rng = np.random.default_rng(1)
    resampled = 100 + rng.normal(size=200_000)
    for parts, t in ((5, 2.776), (30, 2.045), (10_000, 1.960)):
        low, high = interval(100, resampled, parts, 0, 1000)
        half = t * (parts / (parts - 1)) ** 0.5
        assert (100 - low, high - 100) == pytest.approx((half, half), rel=0.03)


def test_a_record_of_one_part_says_nothing_about_spread() -> None:
    assert interval(3, np.array([3.0, 3.0]), 1.9, 1, 8) == (1, 8)


def test_an_estimate_that_resamples_fall_short_of_may_itself_fall_short() -> None:
    resampled = np.linspace(1.8, 2.0, 1001)
    low, high = interval(2.0, resampled, 1e9, 1, 8)
    assert 2.0 - low == pytest.approx(0.1, abs=0.01)
    assert high - 2.0 == pytest.approx(0.2, abs=0.03)
