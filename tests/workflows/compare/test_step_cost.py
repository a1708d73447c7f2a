"""Every comparison under a step cost: against a time per token, long runs and closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slotwise_sim import Cost, Memory, PerToken, Step, Workload, simulate
from slotwise_sim.backlog import Backlog, backlog
from slotwise_sim.policies import Binned, Continuous, Policy, Static
from slotwise_sim.workload import all_at_once
from slotwise_workflows.compare.attribution import split_of_gain
from slotwise_workflows.compare.capacity import (
    Capacity,
    capacity,
    capacity_per_s,
    gain_in_order,
)
from slotwise_workflows.compare.load import Load, busiest_hour, shared_batches
from slotwise_workflows.compare.pictures import timeline
from slotwise_workflows.compare.server import Server, stated_server
from slotwise_workflows.compare.sorting import sorted_by_length
from slotwise_workflows.compare.sustained import MOST_SIMULATED, as_served, sustained_per_s
from slotwise_workflows.compare.what_if import what_if
from slotwise_workflows.costs import StatedCost, find_preset
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.facts import Facts, gather
from slotwise_workflows.given import Given
from slotwise_workflows.record import Estimate
from slotwise_workflows.traffic.model import made_traffic

LLAMA = find_preset("llama-3.1-8b-a100").step
ALWAYS_8 = Step(base_ms=8.0)


def chat(n: int = 3000, rate: float = 2.0, seed: int = 0) -> Workload:
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1 / rate, n))
    tokens = np.maximum(1, np.rint(rng.lognormal(5, 0.8, n))).astype(np.int64)
    return Workload(arrival, tokens, rng.integers(0, 2000, n))


def told(workload: Workload, cost: Cost, **given: Any) -> tuple[Server, Facts]:
    known: dict[str, Any] = {"slots": 8, "replicas": 1, "mode": "online"}
    if isinstance(cost, PerToken):
        known["ms_per_token"] = cost.ms_per_token
    else:
        known["cost"] = by_the_user(cost, "step")
    said = Given(**(known | given))
    facts = gather(made_traffic(workload, format_id="made"), said)
    return stated_server(facts, said), facts


def gain_of(workload: Workload, cost: Cost, *, in_order: bool = True, **given: Any) -> Capacity:
    server, facts = told(workload, cost, **given)
    rng = np.random.default_rng(1)
    found = capacity(all_at_once(workload), server, facts, in_order=in_order, rng=rng)
    assert found is not None
    return found


def test_the_interval_of_the_gain_spans_the_ends_of_a_fitted_cost() -> None:
    """Simulated apart at either end, the gain lies within; by the log alone it did not."""
    middle, cheap, dear = Step(20, 1.5), Step(24, 0.1), Step(16, 3.0)
    requests = chat(400)
    exact, at_ends = gain_of(requests, middle).gain, [cheap, dear]
    found = _with_ends(requests, middle, *at_ends)
    assert found.estimate == exact.estimate
    for end in at_ends:
        at_end = gain_of(requests, end).gain.estimate
        assert found.low <= at_end <= found.high
        assert not exact.low <= at_end <= exact.high
    assert _with_ends(requests, middle, middle).high == pytest.approx(exact.high)


def _with_ends(workload: Workload, cost: Step, *ends: Step) -> Estimate:
    server, facts = told(workload, cost)
    facts = replace(facts, cost=replace(by_the_user(cost, "step"), ends=ends))
    rng = np.random.default_rng(1)
    found = capacity(all_at_once(workload), server, facts, in_order=True, rng=rng)
    assert found is not None
    return found.gain


def hour_of(workload: Workload, cost: Cost, **given: Any) -> Load:
    server, facts = told(workload, cost, **given)
    gains = gain_of(workload, cost, **given).by_slots
    return busiest_hour(workload, server, facts, gains, {}, 0.2, np.random.default_rng(3))


def test_what_is_told_reaches_the_server() -> None:
    given: dict[str, Any] = {
        "memory": Memory(50_000),
        "pad": True,
        "release": "own",
        "continuous": Continuous("separate", 512),
        "max_delay_ms": 20.0,
    }
    server, _ = told(chat(100), LLAMA, **given)
    assert server.cost == LLAMA
    assert server.memory == Memory(50_000)
    policies = server.policies()
    assert policies["static"] == Static("own", pad=True)
    assert policies["continuous"] == Continuous("separate", 512)
    unknown, facts = told(chat(100), LLAMA)
    assert unknown.pad is False  # the strongest batches there could be
    assert facts.padding.source == "assumed"
    assert told(chat(100), PerToken(8.0), memory=Memory(50_000))[0].memory is None


def test_an_iteration_that_always_lasts_the_same_is_a_time_per_token() -> None:
    fixed, stepped = (gain_of(chat(), cost) for cost in (PerToken(8.0), ALWAYS_8))
    assert stepped.gain.estimate == pytest.approx(fixed.gain.estimate, rel=0.01)
    assert stepped.gain.low == pytest.approx(fixed.gain.low, rel=0.03)
    assert stepped.gain.high == pytest.approx(fixed.gain.high, rel=0.03)
    assert stepped.by_lengths == fixed.gain
    assert stepped.bound == fixed.bound
    assert stepped.even == pytest.approx(1.0)
    assert stepped.idle["dynamic"].estimate == pytest.approx(
        fixed.idle["dynamic"].estimate, abs=0.01
    )
    fixed_hour, hour = (hour_of(chat(), cost) for cost in (PerToken(8.0), ALWAYS_8))
    for policy, per_s in fixed_hour.capacity_per_s.items():
        assert hour.capacity_per_s[policy] == pytest.approx(per_s, rel=0.01)
    # an arrival waits for the iteration that runs, 8 ms at most
    assert hour.latency_mean_s["continuous"] == pytest.approx(
        fixed_hour.latency_mean_s["continuous"], abs=0.009
    )
    assert hour.servers_needed == fixed_hour.servers_needed
    assert hour.waiting.estimate == pytest.approx(fixed_hour.waiting.estimate, abs=0.02)


def test_the_gain_is_that_of_a_long_backlog() -> None:
    own = chat()
    rounds = np.tile(np.arange(len(own)), 20)
    zeros = np.zeros(len(rounds))
    long = Workload(zeros, own.output_tokens[rounds], own.prompt_tokens[rounds])
    done_s = [
        simulate(long, policy, LLAMA, slots=8).end_s.max()
        for policy in (Static(pad=False), Continuous())
    ]
    found = gain_of(own, LLAMA)
    assert found.gain.estimate == pytest.approx(done_s[0] / done_s[1], rel=0.01)
    assert found.gain.low < found.gain.estimate < found.gain.high
    server, _ = told(own, LLAMA)
    per_s = capacity_per_s(own, server, found.gain.estimate)
    assert per_s["continuous"] == pytest.approx(len(rounds) / done_s[1], rel=0.01)
    assert per_s["dynamic"] == pytest.approx(len(rounds) / done_s[0], rel=0.01)
    alone = simulate(own, Continuous(), LLAMA, slots=1)
    service_s = float((alone.end_s - alone.start_s).mean())
    assert per_s["serial"] == pytest.approx(1 / service_s, rel=0.01)


def test_a_step_cost_takes_back_of_what_lengths_alone_would_gain() -> None:
    found = gain_of(chat(), LLAMA, slots=32)
    assert found.gain.high < found.by_lengths.estimate
    assert found.by_lengths.estimate == pytest.approx(found.bound.estimate, rel=0.05)


def test_padding_is_kept_apart() -> None:
    unpadded, padded = (gain_of(chat(), LLAMA, pad=pad) for pad in (False, True))
    assert padded.gain.estimate == pytest.approx(unpadded.by_padding[True])
    assert unpadded.gain.estimate == pytest.approx(padded.by_padding[False])
    assert padded.gain.estimate > 1.1 * unpadded.gain.estimate


def test_admissions_that_stop_the_others_can_make_refilling_slower() -> None:
    """Nearly equal lengths, and every prefill a long iteration of its own."""
    own = Workload(
        np.arange(2000.0),
        np.random.default_rng(1).integers(95, 106, 2000),
        np.full(2000, 100),
    )
    cost = Step(base_ms=10.0, prefill_base_ms=200.0)
    apart = gain_of(own, cost, continuous=Continuous(prefill="separate"))
    assert apart.gain.high < 1
    assert apart.even == pytest.approx(1.0)  # all end together and are admitted together
    beside = gain_of(own, cost, continuous=Continuous(prefill="mixed"))
    assert beside.gain.low > 1  # what decodes goes on, at the base of any iteration


def test_slots_that_are_assumed_widen_the_gain_and_the_idle_share() -> None:
    found = gain_of(chat(), LLAMA, slots=None)
    assert set(found.by_slots) == {4, 8, 64}
    assert found.gain.low <= min(gain.estimate for gain in found.by_slots.values())
    assert found.gain.high >= max(gain.estimate for gain in found.by_slots.values())
    assert found.idle["dynamic"].high - found.idle["dynamic"].low > 0.1


def test_without_an_order_batches_are_drawn_at_random() -> None:
    """A table sorted by length: its neighbours say nothing about batches."""
    own = chat()
    by_length = np.argsort(own.output_tokens)
    table = Workload(np.zeros(len(own)), own.output_tokens[by_length], own.prompt_tokens[by_length])
    ordered, random = (gain_of(table, LLAMA, in_order=order) for order in (True, False))
    assert ordered.gain.estimate < 1.05 < random.gain.estimate
    assert random.gain.estimate == pytest.approx(gain_of(own, LLAMA).gain.estimate, rel=0.05)


def test_replicas_form_batches_of_every_nth_request() -> None:
    """Short and long in turns: two servers behind round robin each see equal lengths."""
    own = Workload(np.arange(400.0), np.tile([10, 500], 200), np.zeros(400, dtype=np.int64))
    assert gain_of(own, LLAMA, replicas=2).gain.estimate == pytest.approx(1.0, abs=0.06)
    assert gain_of(own, LLAMA).gain.estimate > 1.5


def test_of_a_long_log_runs_from_all_over_it_are_simulated() -> None:
    n = 3 * MOST_SIMULATED
    long = Workload(np.zeros(n), np.arange(1, n + 1), np.zeros(n, dtype=np.int64))
    served = as_served(long, 1)
    assert len(served) == MOST_SIMULATED
    assert served.output_tokens.mean() == pytest.approx(n / 2, rel=0.01)
    steps = np.diff(served.output_tokens)
    assert (steps == 1).mean() > 0.99


def test_memory_limits_continuous_batching_everywhere() -> None:
    own = chat(rate=50.0)
    tight = Memory(6_000)
    free, limited = (gain_of(own, LLAMA, memory=memory) for memory in (None, tight))
    assert limited.gain.estimate < free.gain.estimate
    assert limited.idle["continuous"].estimate > free.idle["continuous"].estimate
    free_hour, hour = (hour_of(own, LLAMA, memory=memory) for memory in (None, tight))
    assert hour.latency_mean_s["continuous"] > free_hour.latency_mean_s["continuous"]
    assert hour.latency_mean_s["dynamic"] == free_hour.latency_mean_s["dynamic"]
    low, high = (
        hour.replications["latency_p95_s.continuous"],
        free_hour.replications["latency_p95_s.continuous"],
    )
    assert low.estimate > high.estimate
    server, _ = told(own, LLAMA, memory=tight)
    picture = timeline(own, server, assumed_pace=False)
    assert all(bar.slot < picture.slots for bar in picture.continuous)


def test_slots_whose_batches_would_not_fit_are_not_offered() -> None:
    """Memory limits continuous batching alone: it must not look worse than the impossible."""
    own = all_at_once(chat())
    held = float((own.prompt_tokens + own.output_tokens).mean())
    server, _ = told(own, LLAMA, memory=Memory(int(held * 20)))
    assert {point.slots for point in what_if(own, own, server, None)} == {4, 8, 16}
    assert {p.slots for p in what_if(own, own, replace(server, memory=None), None)} == {
        4,
        8,
        16,
        32,
    }


def test_other_slots_have_the_gain_of_this_cost() -> None:
    own = all_at_once(chat())
    server, _ = told(own, LLAMA)
    for point in what_if(own, own, server, None):
        expected = gain_in_order(own, replace(server, slots=point.slots))
        assert point.gain == pytest.approx(expected)


@pytest.mark.parametrize("policy", [Static(), Continuous(), Binned(2)])
@pytest.mark.parametrize("replicas", [1, 2])
def test_what_is_sustained_is_the_same_from_the_closed_form_and_by_simulation(
    policy: Policy, replicas: int
) -> None:
    own = chat()
    closed, simulated = (
        sustained_per_s(own, policy, cost, slots=8, replicas=replicas)
        for cost in (PerToken(8.0), ALWAYS_8)
    )
    assert simulated == pytest.approx(closed, rel=0.01)


def test_each_gain_is_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both policies, the other padding, and both of even lengths."""
    served: list[Policy] = []

    def counted(workload: Workload, policy: Policy, *args: Any, **options: Any) -> Backlog:
        served.append(policy)
        return backlog(workload, policy, *args, **options)

    monkeypatch.setattr("slotwise_workflows.compare.server.backlog", counted)
    monkeypatch.setattr("slotwise_workflows.compare.sustained.backlog", counted)
    own = gain_of(chat(500), LLAMA)
    assert len(served) == 5
    assert own.by_padding[False] == own.gain.estimate


def test_a_request_that_waits_to_come_back_is_idle_in_the_picture() -> None:
    """Two requests in memory for little more than one: the later one yields, and returns."""
    own = Workload(np.zeros(2), np.full(2, 9), np.full(2, 4))
    server = Server(2, 1, Step(base_ms=10.0), 0.0, memory=Memory(16, 4))
    outcome = server.run(own, "continuous")
    assert outcome.preemptions == 1
    picture = timeline(own, server, assumed_pace=False)
    assert picture.span_s == pytest.approx(0.130)
    # 40 ms until it returns, and 40 ms in which it runs alone
    assert picture.idle_slot_s["continuous"] == pytest.approx(0.080)


def test_sharing_a_batch_goes_by_the_step_cost() -> None:
    """One request every 5 s; its 100 iterations take 0.8 s, or 8 s."""
    own = Workload(np.arange(0.0, 500.0, 5.0), np.full(100, 100), np.zeros(100, dtype=np.int64))
    quick, slow = (told(own, Step(base_ms=ms))[1] for ms in (8.0, 80.0))
    assert shared_batches(own, quick, 1.0) == 0.0
    assert shared_batches(own, slow, 1.0) > 0.5


def test_the_split_is_the_gain_and_what_memory_adds() -> None:
    own = chat(400)
    server, _ = told(own, LLAMA, memory=Memory(60_000))
    split = split_of_gain(all_at_once(own), server)
    assert split is not None
    assert split.memory is not None
    assert split.larger_batch is not None
    assert split.total == pytest.approx(split.order * split.memory * split.larger_batch)
    free = gain_of(own, LLAMA)
    assert split.order == pytest.approx(free.gain.estimate, rel=0.02)
    assert split.running["paged"] > split.running["continuous"] == pytest.approx(8, rel=0.01)
    without = split_of_gain(all_at_once(own), replace(server, memory=None))
    assert without is not None
    assert (without.memory, without.total) == (None, without.order)
    assert split_of_gain(all_at_once(own), replace(server, cost=PerToken(8), memory=None)) is None


def test_the_published_case_is_split_as_it_should_be() -> None:
    """OPT-13B, prompts of 512: of the famous 23 times, refilling makes about two.

    Anyscale's benchmark of continuous batching (2023): outputs exponential, mean 128, cap 1536.
    """
    rng = np.random.default_rng(0)
    tokens = np.minimum(np.maximum(1, np.rint(rng.exponential(128, 1000))), 1536).astype(np.int64)
    own = Workload(np.zeros(1000), tokens, np.full(1000, 512))
    server, _ = told(own, find_preset("opt-13b-a100-vllm").step, slots=4, memory=Memory(12_300))
    split = split_of_gain(own, server)
    assert split is not None
    assert 1.8 < split.order < 2.1
    assert split.memory is not None
    assert split.memory > 2.5
    assert 4.5 < split.total < 6.5


@pytest.mark.parametrize("cost", [PerToken(8.0), LLAMA], ids=["per_token", "step"])
def test_sorting_a_job_is_the_cheaper_cure(cost: Cost) -> None:
    own = all_at_once(chat())
    server, _ = told(own, cost)
    found = sorted_by_length(own, server, np.random.default_rng(0))
    assert 1.0 < found.guessed < found.perfect
    # like lengths share a batch: about as if slots were refilled
    assert found.perfect == pytest.approx(gain_of(own, cost).gain.estimate, rel=0.1)
    even = replace(own, output_tokens=np.full(len(own), 150))
    if isinstance(cost, PerToken):
        assert sorted_by_length(even, server, np.random.default_rng(0)).guessed == pytest.approx(1)


def test_a_preset_says_who_it_is() -> None:
    stated: StatedCost = find_preset("llama-3.1-8b-a100").stated()
    facts = gather(made_traffic(chat(100), format_id="made"), Given(cost=stated))
    assert facts.cost == stated
