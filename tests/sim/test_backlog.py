"""A server that always has work: against lengths alone, against long runs, against counting."""

from __future__ import annotations

import numpy as np
import pytest

from slotwise_sim import Continuous, Dynamic, Memory, PerToken, Policy, Static, Step, Workload
from slotwise_sim.backlog import backlog, backlog_gain_interval, idle_share_interval
from slotwise_sim.lengths import in_order_gain, in_order_gain_interval
from slotwise_sim.simulation import simulate

STEP = Step(11.564, 0.0331, 7.89e-5, 0.05369, 1.69e-6, prefill_base_ms=8.43)


def requests(n: int, seed: int = 0) -> Workload:
    rng = np.random.default_rng(seed)
    tokens = np.maximum(1, np.rint(rng.lognormal(5, 0.8, n))).astype(np.int64)
    return Workload(np.zeros(n), tokens, rng.integers(0, 3000, n))


@pytest.mark.parametrize("n", [72, 600, 5000])
def test_an_iteration_that_always_lasts_the_same_is_a_time_per_token(n: int) -> None:
    """Then the lengths are all there is, whatever the prompts."""
    own = requests(n)
    for cost in (Step(base_ms=8.0), PerToken(8.0)):
        batch = backlog(own, Dynamic(0.0), cost, slots=8)
        refilled = backlog(own, Continuous(), cost, slots=8)
        gain = batch.server_s.sum() / refilled.server_s.sum()
        assert gain == pytest.approx(in_order_gain(own.output_tokens, 8), rel=0.01)
        assert refilled.per_s == pytest.approx(8 / (own.output_tokens.mean() * 0.008))
        assert refilled.server_s == pytest.approx(own.output_tokens * 0.001)


@pytest.mark.parametrize("policy", [Static(), Static(pad=False), Continuous()])
def test_neither_begin_nor_end_counts(policy: Policy) -> None:
    """A run so long that they do not matter sustains the same, batch boundaries moving in it."""
    own = requests(401)
    rounds = np.tile(np.arange(401), 100)
    long = Workload(np.zeros(40_100), own.output_tokens[rounds], own.prompt_tokens[rounds])
    in_the_long_run = 40_100 / simulate(long, policy, STEP, slots=16).end_s.max()
    assert backlog(own, policy, STEP, slots=16).per_s == pytest.approx(in_the_long_run, rel=0.01)


def test_memory_that_binds_leaves_slots_empty() -> None:
    """Requests take 33 blocks and grow to 40: memory for 200 blocks runs five or six at once."""
    own = Workload(np.zeros(500), np.full(500, 128), np.full(500, 512))
    free = backlog(own, Continuous(), STEP, slots=16)
    bound = backlog(own, Continuous(), STEP, slots=16, memory=Memory(200 * 16))
    assert bound.per_s < free.per_s
    idle = idle_share_interval(bound, np.random.default_rng(0))[0]
    assert 1 - (200 / 33) / 16 < idle < 1 - (200 / 41) / 16
    assert idle_share_interval(free, np.random.default_rng(0))[0] == pytest.approx(0, abs=1e-9)


def test_a_preempted_request_leaves_its_slot_idle() -> None:
    """Memory so short that most requests are preempted: idle as in a run that is long enough."""
    rng = np.random.default_rng(3)
    own = Workload(np.zeros(2000), rng.integers(1, 800, 2000), rng.integers(1, 200, 2000))
    memory = Memory(3200)
    served = simulate(own, Continuous(), STEP, slots=16, memory=memory)
    assert served.preemptions > 1000
    in_the_long_run = 1 - served.busy_slot_s / (16 * served.end_s.max())
    bound = backlog(own, Continuous(), STEP, slots=16, memory=memory)
    idle = idle_share_interval(bound, np.random.default_rng(0))[0]
    assert idle == pytest.approx(in_the_long_run, abs=0.01)


def test_a_ratio_above_the_slots_is_not_cut_off() -> None:
    """Refilling may save more than slots do, where each batch pays for a long prefill alone."""
    own = requests(400)
    cost = Step(1.0, prefill_base_ms=1000.0)
    batch = backlog(own, Static(), cost, slots=2)
    refilled = backlog(own, Continuous(), cost, slots=2)
    gain, low, high = backlog_gain_interval(batch, refilled, np.random.default_rng(0))
    assert low < gain < high
    assert gain > 2


def test_idle_slots_are_those_behind_the_longest() -> None:
    """Lengths 10 and 90 in turns on two slots: each batch holds 180 tokens' time and uses 100."""
    own = Workload(np.zeros(400), np.tile([10, 90], 200), np.zeros(400, dtype=np.int64))
    held = backlog(own, Static(), Step(base_ms=1.0), slots=2)
    estimate, low, high = idle_share_interval(held, np.random.default_rng(0))
    assert estimate == pytest.approx(80 / 180)
    assert low <= estimate <= high


def test_refilling_can_lose() -> None:
    """Admissions that stop the others cost a long iteration each; a batch pays for one.

    In the long run a batch of 8 takes 200 + 10 (longest - 1) ms. Refilled one by one, 8 requests
    take 8 x 200 + 10 (mean - 1) ms; some end together and share an admission.
    """
    rng = np.random.default_rng(1)
    own = Workload(np.zeros(2000), rng.integers(95, 106, 2000), np.full(2000, 100))
    cost = Step(base_ms=10.0, prefill_base_ms=200.0)
    batch = backlog(own, Static(), cost, slots=8)
    refilled = backlog(own, Continuous(prefill="separate"), cost, slots=8)
    gain, low, high = backlog_gain_interval(batch, refilled, rng)
    one_by_one = (200 + 10 * 103.9) / (8 * 200 + 10 * 99)
    assert one_by_one < gain < 1
    assert low <= gain <= high < 1


def test_the_interval_agrees_with_that_of_lengths_alone() -> None:
    own = requests(2000)
    cost = Step(base_ms=8.0)
    batch, refilled = (backlog(own, p, cost, slots=8) for p in (Static(), Continuous()))
    found = backlog_gain_interval(batch, refilled, np.random.default_rng(1))
    expected = in_order_gain_interval(own.output_tokens, 8, np.random.default_rng(1))
    assert found == pytest.approx(expected, rel=0.03)


def test_too_few_requests_say_nothing() -> None:
    own = requests(20)
    batch, refilled = (backlog(own, p, STEP, slots=8) for p in (Static(), Continuous()))
    _, low, high = backlog_gain_interval(batch, refilled, np.random.default_rng(1))
    assert (low, high) == (1 / 8, 8)


def test_the_interval_holds_the_truth() -> None:
    """Seeded; of many more trials 92 to 97 % held it."""
    truth = _gain(requests(200_000, seed=99), np.random.default_rng(0))[0]
    held = 0
    for trial in range(5000, 5060):
        _, low, high = _gain(requests(300, seed=trial), np.random.default_rng(trial))
        held += low <= truth <= high
    assert held >= 51


def _gain(own: Workload, rng: np.random.Generator) -> tuple[float, float, float]:
    batch, refilled = (backlog(own, p, STEP, slots=8) for p in (Static(), Continuous()))
    return backlog_gain_interval(batch, refilled, rng)
