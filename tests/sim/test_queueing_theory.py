"""Closed forms of queueing theory, within the simulation's own error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slotwise_sim import Continuous, Dynamic, PerToken, Static, Workload, simulate
from slotwise_sim.synthetic import poisson_arrivals

MS_PER_TOKEN = 0.001  # a million tokens a second: lengths are as good as continuous


def erlang_c_mean_wait(rate: float, service_rate: float, slots: int) -> float:
    """Mean queue delay of M/M/c: Erlang's C / (c mu - lambda)."""
    offered = rate / service_rate
    terms = [offered**k / math.factorial(k) for k in range(slots)]
    last = offered**slots / math.factorial(slots) * slots / (slots - offered)
    return last / (sum(terms) + last) / (slots * service_rate - rate)


def exponential_workload(n: int, rate: float, rng: np.random.Generator) -> Workload:
    tokens = np.ceil(rng.exponential(1e6, n)).astype(np.int64)  # mean service: one second
    return Workload(poisson_arrivals(n, rate, rng), tokens, np.zeros(n, dtype=np.int64))


@pytest.mark.parametrize(("slots", "utilisation"), [(1, 0.5), (4, 0.7), (8, 0.8), (32, 0.9)])
def test_continuous_batching_is_an_m_m_c_queue(slots: int, utilisation: float) -> None:
    rng = np.random.default_rng(20260818 + slots)
    rate = utilisation * slots
    means = []
    for _ in range(30):
        workload = exponential_workload(40_000, rate, rng)
        outcome = simulate(workload, Continuous(), PerToken(MS_PER_TOKEN), slots=slots)
        # The first part fills an empty system and is left out.
        means.append(float((outcome.start_s - outcome.arrival_s)[8_000:].mean()))
    error = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    assert abs(np.mean(means) - erlang_c_mean_wait(rate, 1.0, slots)) < 3.5 * error


@pytest.mark.parametrize("slots", [2, 8, 32])
def test_backlogged_static_batches_of_exponential_lengths_take_a_harmonic_number(
    slots: int,
) -> None:
    """E[max of B] = H_B times the mean: the makespans' ratio, as n grows."""
    rng = np.random.default_rng(slots)
    n = 20_000 * slots
    tokens = np.ceil(rng.exponential(1e6, n)).astype(np.int64)
    workload = Workload(np.zeros(n), tokens, np.zeros(n, dtype=np.int64))
    static = simulate(workload, Static(), PerToken(MS_PER_TOKEN), slots=slots).end_s.max()
    greedy = simulate(workload, Dynamic(0), PerToken(MS_PER_TOKEN), slots=slots).end_s.max()
    continuous = simulate(workload, Continuous(), PerToken(MS_PER_TOKEN), slots=slots).end_s.max()
    harmonic = sum(1 / k for k in range(1, slots + 1))
    # 20,000 batches: the mean of the longest is known to sqrt(sum 1/k^2 / 20000) of it.
    assert static / continuous == pytest.approx(harmonic, rel=0.02)
    assert greedy == static
