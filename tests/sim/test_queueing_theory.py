"""Closed forms that hold for a backlog and for one slot, under either cost.

Queues in the long run are held against their formulas in ``tests/validation``.
"""

from __future__ import annotations

import numpy as np
import pytest

from slotwise_sim import (
    Binned,
    Continuous,
    Cost,
    Dynamic,
    PerToken,
    Policy,
    Static,
    Step,
    Workload,
    simulate,
)
from slotwise_sim.synthetic import poisson_arrivals, uniform
from slotwise_sim.workload import Ints

COSTS: list[Cost] = [PerToken(1.0), Step(base_ms=1.0)]


def backlog(tokens: Ints) -> Workload:
    return Workload(np.zeros(len(tokens)), tokens, np.zeros(len(tokens), dtype=np.int64))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("slots", [2, 8, 32])
def test_backlogged_static_batches_of_exponential_lengths_take_a_harmonic_number(
    slots: int, cost: Cost
) -> None:
    """E[max of B] = H_B times the mean: the makespans' ratio, as n grows."""
    rng = np.random.default_rng(slots)
    workload = backlog(np.ceil(rng.exponential(1e6, 20_000 * slots)).astype(np.int64))
    static = simulate(workload, Static(), cost, slots=slots).end_s.max()
    greedy = simulate(workload, Dynamic(0), cost, slots=slots).end_s.max()
    continuous = simulate(workload, Continuous(), cost, slots=slots).end_s.max()
    harmonic = sum(1 / k for k in range(1, slots + 1))
    # 20,000 batches: the mean of the longest is known to sqrt(sum 1/k^2 / 20000) of it.
    assert static / continuous == pytest.approx(harmonic, rel=0.02)
    assert greedy == static


@pytest.mark.parametrize("batch", [2, 8])
@pytest.mark.parametrize("bins", [1, 4, 16])
def test_bins_of_uniform_lengths_waste_a_bins_share_of_what_one_bin_does(
    bins: int, batch: int
) -> None:
    """The longest of B in bin i of k is (i - 1)/k + B/(B + 1)/k of the range, on average."""
    rng = np.random.default_rng(bins)
    workload = backlog(uniform(100_000, 1, 10**6, rng))
    binned = simulate(workload, Binned(bins), PerToken(1.0), slots=batch).end_s.max()
    no_waste = float(workload.output_tokens.sum()) / batch / 1000
    assert binned / no_waste == pytest.approx(1 + (batch - 1) / (batch + 1) / bins, rel=0.01)


def test_on_one_slot_all_policies_agree_under_a_step_cost() -> None:
    rng = np.random.default_rng(1)
    n = 500
    workload = Workload(
        poisson_arrivals(n, 1.2, rng), uniform(n, 1, 90, rng), uniform(n, 0, 400, rng)
    )
    cost = Step(10.0, 0.5, 1e-3, 0.2, 1e-5, prefill_base_ms=8.0)
    greedy = simulate(workload, Dynamic(0), cost, slots=1).end_s
    for policy in (Static(), Static(pad=False), Continuous(), Continuous("separate")):
        ends = simulate(workload, policy, cost, slots=1).end_s
        np.testing.assert_allclose(ends, greedy, rtol=1e-9)


def test_under_a_backlog_a_bare_iteration_is_a_time_per_token() -> None:
    workload = backlog(uniform(3000, 1, 500, np.random.default_rng(2)))
    policies: list[Policy] = [
        Static(),
        Static(release="own"),
        Binned(4),
        Continuous(),
        Continuous(max_batched_tokens=64),
    ]
    for policy in policies:
        per_token, step = (simulate(workload, policy, cost, slots=8).end_s for cost in COSTS)
        np.testing.assert_allclose(step, per_token, rtol=1e-9)
