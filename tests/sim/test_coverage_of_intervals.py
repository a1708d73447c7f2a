"""How often the 95 % intervals hold the truth, in seeded trials of traffic whose truth is known.

Lengths that are independent, and lengths whose mean switches between two regimes and stays for
twenty requests on average. The truth is a closed form, or the same figure of two million requests.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from slotwise_sim.lengths import (
    gain_bound,
    gain_bound_intervals,
    histogram,
    in_order_gain,
    in_order_gain_interval,
)

TRIALS = 200
BATCH = 8
Tokens = NDArray[np.int64]
Draw = Callable[[int, np.random.Generator], Tokens]


def independent(n: int, rng: np.random.Generator) -> Tokens:
    return np.ceil(rng.exponential(200, n)).astype(np.int64)


def clustered(n: int, rng: np.random.Generator) -> Tokens:
    regime = (np.cumsum(rng.random(n) < 0.05) + rng.integers(2)) % 2
    return np.ceil(rng.exponential(np.where(regime == 1, 400, 50))).astype(np.int64)


def coverage(
    truth: float,
    interval: Callable[[np.random.Generator], tuple[float, float, float]],
    trials: int = TRIALS,
) -> float:
    rng = np.random.default_rng(20260818)
    held = 0
    for _ in range(trials):
        _, low, high = interval(rng)
        held += low <= truth <= high
    return held / trials


@pytest.mark.parametrize(
    ("draw", "n", "least"),
    [
        (independent, 200, 0.92),
        (independent, 1000, 0.92),
        (clustered, 200, 0.84),  # about ten changes of regime: the record hardly shows them
        (clustered, 1000, 0.88),
    ],
)
def test_bounds(draw: Draw, n: int, least: float) -> None:
    if draw is independent:
        truth = sum(1 / k for k in range(1, BATCH + 1))
    else:
        truth = gain_bound(*histogram(draw(2_000_000, np.random.default_rng(1))), BATCH)

    def interval(rng: np.random.Generator) -> tuple[float, float, float]:
        return gain_bound_intervals(draw(n, rng), [BATCH], rng)[BATCH]

    assert least <= coverage(truth, interval) <= 0.995


@pytest.mark.parametrize(
    ("draw", "n", "least"),
    [
        (independent, 200, 0.90),
        (independent, 1000, 0.90),
        (clustered, 200, 0.86),
        (clustered, 1000, 0.88),
    ],
)
def test_gains_in_order(draw: Draw, n: int, least: float) -> None:
    truth = in_order_gain(draw(2_000_000, np.random.default_rng(1)), BATCH)

    def interval(rng: np.random.Generator) -> tuple[float, float, float]:
        return in_order_gain_interval(draw(n, rng), BATCH, rng)

    found = coverage(truth, interval)
    assert least <= found <= 0.995


def test_intervals_that_took_requests_one_by_one_would_not_hold_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why requests are resampled in runs: with runs of one, clusters are torn apart."""
    truth = gain_bound(*histogram(clustered(2_000_000, np.random.default_rng(1))), BATCH)

    def interval(rng: np.random.Generator) -> tuple[float, float, float]:
        return gain_bound_intervals(clustered(1000, rng), [BATCH], rng)[BATCH]

    monkeypatch.setattr("slotwise_sim.lengths.block_length", lambda series: 1)  # noqa: ARG005
    assert coverage(truth, interval, trials=100) < 0.8
