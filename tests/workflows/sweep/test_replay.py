from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slotwise_sim import (
    Binned,
    Continuous,
    Cost,
    Dynamic,
    Memory,
    PerToken,
    Policy,
    Static,
    Step,
    Workload,
    simulate,
)
from slotwise_sim.replicate import resample
from slotwise_sim.workload import at_load
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.sweep.points import Point, Setting, seed_of
from slotwise_workflows.sweep.replay import replay
from slotwise_workflows.sweep.rows import Row
from slotwise_workflows.sweep.scenario import Scenario, bench
from slotwise_workflows.thinking import Thinking

MS = PerToken(10.0)


def rows_in(setting: Setting, scenario: Scenario) -> dict[str, Row]:
    point = Point(setting, replication=0, seed=seed_of(3, 0))
    return {row.policy: row for row in replay(bench(scenario), point)}


def rows_by_policy(
    workload: Workload, policies: dict[str, Policy], *, slots: int, load: float, replicas: int = 1
) -> dict[str, Row]:
    scenario = Scenario(workload, policies, {"": MS}, run=1)
    return rows_in(Setting(slots, replicas, load=load), scenario)


def test_light_load_by_hand(even_workload: Workload, both_policies: dict[str, Policy]) -> None:
    """A token takes 10 ms, a request 1 s; a pair waits for its second member, 10 s later."""
    rows = rows_by_policy(even_workload, both_policies, slots=2, load=1)
    static, continuous = rows["static"], rows["continuous"]
    assert continuous.latency_mean_s == pytest.approx(1)
    assert static.latency_mean_s == pytest.approx((11 + 1) / 2)
    assert static.latency_p95_s == pytest.approx(11)
    assert static.queue_delay_mean_s == pytest.approx(5)
    assert static.ttft_p95_s == pytest.approx(10.01)
    assert continuous.latency_ratio == pytest.approx(6)
    assert static.latency_ratio == 1
    assert continuous.makespan_s == pytest.approx(71)
    assert continuous.requests_per_s == pytest.approx(8 / 71)
    assert continuous.output_tokens_per_s == pytest.approx(800 / 71)
    assert continuous.idle_share == pytest.approx(1 - 8 / (2 * 71))
    assert continuous.utilisation == pytest.approx(0.1 * 1 / 2)
    assert static.utilisation == pytest.approx(0.05)
    assert static.gain == 1
    assert continuous.gain == pytest.approx(1)
    assert (static.requests, static.slots, static.load, static.replication) == (8, 2, 1, 0)


def test_load_quickens_arrivals_alone(
    even_workload: Workload, both_policies: dict[str, Policy]
) -> None:
    rows = rows_by_policy(even_workload, both_policies, slots=2, load=10)
    assert rows["static"].latency_mean_s == pytest.approx((2 + 1) / 2)
    assert rows["continuous"].utilisation == pytest.approx(0.5)
    assert at_load(even_workload, 10).output_tokens is even_workload.output_tokens


def test_gain_and_utilisation_of_uneven_lengths(
    alternating: Workload, both_policies: dict[str, Policy]
) -> None:
    """Pairs of 100 and 300 tokens hold both slots for 300: half as much again as needed."""
    rows = rows_at(alternating, both_policies, MS)
    assert rows["continuous"].gain == pytest.approx(1.5)
    assert rows["continuous"].utilisation == pytest.approx(1.0 * 2.0 / 2)
    assert rows["static"].utilisation == pytest.approx(1.5)


def test_all_policies_meet_the_same_traffic(uneven_workload: Workload) -> None:
    """Dynamic batching that waits for ever is static batching, on any traffic that both meet."""
    rows = rows_by_policy(
        uneven_workload, {"static": Static(), "patient": Dynamic(math.inf)}, slots=4, load=2
    )
    assert replace(rows["patient"], policy="static") == rows["static"]


def test_the_seed_of_a_row_reproduces_it(
    uneven_workload: Workload, both_policies: dict[str, Policy]
) -> None:
    row = rows_by_policy(uneven_workload, both_policies, slots=4, load=2)["continuous"]
    traffic = at_load(resample(uneven_workload, np.random.default_rng(row.seed), run=1), 2)
    outcome = simulate(traffic, Continuous(), MS, slots=4)
    assert row.latency_mean_s == float((outcome.end_s - outcome.arrival_s).mean())


def test_replicas_share_the_load(even_workload: Workload, both_policies: dict[str, Policy]) -> None:
    rows = rows_by_policy(even_workload, both_policies, slots=2, load=1, replicas=2)
    assert rows["continuous"].utilisation == pytest.approx(0.1 / 4)
    assert rows["static"].latency_mean_s == pytest.approx((21 + 1) / 2)
    assert rows["continuous"].gain == pytest.approx(1)


def test_all_at_once_has_no_utilisation(
    even_workload: Workload, both_policies: dict[str, Policy]
) -> None:
    offline = replace(even_workload, arrival_s=np.zeros(8))
    rows = rows_by_policy(offline, both_policies, slots=2, load=4)
    assert {row.utilisation for row in rows.values()} == {None}
    assert rows["continuous"].makespan_s == pytest.approx(4)


def test_fewer_requests_than_slots_have_no_gain(
    even_workload: Workload, both_policies: dict[str, Policy]
) -> None:
    rows = rows_by_policy(even_workload, both_policies, slots=16, load=1)
    assert {row.gain for row in rows.values()} == {None}
    assert rows["static"].utilisation is None
    assert rows["continuous"].utilisation is not None


def rows_at(
    workload: Workload, policies: dict[str, Policy], cost: Cost, **others: Any
) -> dict[str, Row]:
    # Runs as long as the workload keep its order, wherever they begin.
    scenario = Scenario(workload, policies, {"": cost}, run=len(workload), **others)
    return rows_in(Setting(2, load=1.0), scenario)


@pytest.fixture
def alternating() -> Workload:
    """Forty requests of 100 and 300 tokens in turn, one a second."""
    return Workload(
        arrival_s=np.arange(0.0, 40.0),
        output_tokens=np.tile([100, 300], 20),
        prompt_tokens=np.zeros(40, np.int64),
    )


def test_an_iteration_that_always_lasts_the_same_is_a_fixed_time_per_token(
    alternating: Workload, both_policies: dict[str, Policy]
) -> None:
    """The closed form against the simulation, on every figure that does not hang on ticks."""
    per_token = rows_at(alternating, both_policies, MS)
    step = rows_at(alternating, both_policies, Step(base_ms=10))
    for name in both_policies:
        assert step[name].utilisation == pytest.approx(per_token[name].utilisation)
        assert step[name].gain == pytest.approx(per_token[name].gain)
    assert step["static"].latency_mean_s == pytest.approx(per_token["static"].latency_mean_s)


def test_a_larger_batch_that_steps_slower_lowers_what_is_sustained(
    alternating: Workload, both_policies: dict[str, Policy]
) -> None:
    """Two at once take 10 ms together for 300 tokens of each pair: 20 ms an iteration halve it."""
    fast = rows_at(alternating, both_policies, Step(base_ms=10))["static"]
    slow = rows_at(alternating, both_policies, Step(base_ms=10, per_seq_ms=5))["static"]
    assert fast.utilisation is not None
    assert slow.utilisation is not None
    # 299 of a batch's 300 iterations decode, padded, two sequences; the first only prefills.
    assert slow.utilisation / fast.utilisation == pytest.approx((10 + 299 * 20) / 3000)


def test_memory_limits_what_continuous_batching_sustains(
    alternating: Workload, both_policies: dict[str, Policy]
) -> None:
    """Room for one request at a time: 400 tokens of a pair take 400 iterations, not 300."""
    capped = replace(alternating, max_tokens=np.full(40, 300))
    memory = Memory(kv_tokens=300, reserve="max_tokens")
    rows = rows_at(capped, both_policies, Step(base_ms=10), memory=memory)
    assert rows["static"].gain == 1
    assert rows["continuous"].gain == pytest.approx(0.75)
    free = rows_at(alternating, both_policies, Step(base_ms=10))
    assert free["continuous"].gain == pytest.approx(1.5)


def test_bins_that_know_the_lengths_waste_nothing_of_two_kinds(alternating: Workload) -> None:
    policies: dict[str, Policy] = {"static": Static(), "binned": Binned(2), "noisy": Binned(2)}
    rows = rows_at(alternating, policies, MS, prediction_errors={"binned": 0.0, "noisy": 3.0})
    assert rows["binned"].gain == pytest.approx(1.5)
    assert rows["static"].gain == 1
    assert rows["noisy"].gain is not None
    assert 1 < rows["noisy"].gain < 1.5


def test_predictions_of_a_point_are_its_own(uneven_workload: Workload) -> None:
    """Other policies beside it change nothing for a binned one."""
    errors = {"binned": 0.5}
    alone: dict[str, Policy] = {"static": Static(), "binned": Binned(4)}
    among = {**alone, "c": Continuous(), "b": Binned(2)}
    few = rows_at(uneven_workload, alone, MS, prediction_errors=errors)
    many = rows_at(uneven_workload, among, MS, prediction_errors=errors)
    assert few["binned"] == many["binned"]


def test_a_point_that_takes_no_time_is_refused(both_policies: dict[str, Policy]) -> None:
    workload = Workload(np.zeros(4), np.ones(4, np.int64), np.zeros(4, np.int64))
    with pytest.raises(ConfigError, match=r"server\.cost makes no request take any time"):
        rows_at(workload, both_policies, Step(base_ms=0, per_seq_ms=1))


def test_users_take_turns(even_workload: Workload, both_policies: dict[str, Policy]) -> None:
    """Two users, 1 s of service and 3 s of thought: a request of each every 4 s, on two slots."""
    scenario = Scenario(even_workload, both_policies, {"": MS}, run=1, thinking=Thinking(3.0))
    rows = rows_in(Setting(2, users=2), scenario)
    for row in rows.values():
        assert (row.arrivals, row.users, row.load, row.utilisation) == ("closed", 2, None, None)
        assert row.latency_mean_s == pytest.approx(1)
        assert row.makespan_s == pytest.approx(4 * 4)


def test_an_offline_job_is_there_from_the_start(
    even_workload: Workload, both_policies: dict[str, Policy]
) -> None:
    rows = rows_in(Setting(2), Scenario(even_workload, both_policies, {"": MS}, run=1))
    for row in rows.values():
        assert (row.arrivals, row.load, row.users) == ("offline", None, None)
        assert row.makespan_s == pytest.approx(8 * 1 / 2)
        assert row.utilisation is None


def test_lengths_that_are_respread_gain_more(uneven_workload: Workload) -> None:
    policies: dict[str, Policy] = {"static": Static(), "continuous": Continuous()}
    scenario = Scenario(uneven_workload, policies, {"": MS}, run=3)
    gains = {
        cv: rows_in(Setting(4, length_cv=cv, load=1.0), scenario)["continuous"].gain
        for cv in (0.0, 0.5, 1.0, 2.0)
    }
    assert gains[0.0] == pytest.approx(1)
    assert list(gains.values()) == sorted(gains.values(), key=lambda gain: gain or 0)
    assert gains[2.0] is not None
    assert gains[2.0] > 2


def test_the_least_busy_server_is_found(even_workload: Workload) -> None:
    """Every other request is long: in turn, one of two servers gets all of them."""
    workload = replace(
        even_workload,
        arrival_s=np.arange(0.0, 8.0),
        output_tokens=np.tile([100, 300], 4),
    )
    policies: dict[str, Policy] = {"continuous": Continuous()}
    scenario = Scenario(workload, policies, {"": MS}, run=8)
    in_turn = rows_in(Setting(1, 2, "round_robin", load=1.0), scenario)["continuous"]
    least_busy = rows_in(Setting(1, 2, "least_busy", load=1.0), scenario)["continuous"]
    assert in_turn.queue_delay_mean_s > least_busy.queue_delay_mean_s


def test_each_cost_has_its_own_memory(uneven_workload: Workload) -> None:
    """A time per token knows no memory; beside it a step cost is limited by what there is."""
    policies: dict[str, Policy] = {"static": Static(), "continuous": Continuous()}
    costs: dict[str, Cost] = {"fixed": MS, "step": Step(base_ms=10)}
    scenario = Scenario(uneven_workload, policies, costs, run=3, memory=Memory(512))
    free = rows_in(Setting(4, cost="fixed", load=1.0), scenario)["continuous"]
    limited = rows_in(Setting(4, cost="step", load=1.0), scenario)["continuous"]
    assert free.gain is not None
    assert limited.gain is not None
    assert limited.gain < free.gain


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({"c": Continuous(), "d": Dynamic(0), "s": Static()}, "d"),
        ({"c": Continuous(), "c#2": Continuous()}, "c"),
    ],
)
def test_the_baseline(
    uneven_workload: Workload, policies: dict[str, Policy], expected: str
) -> None:
    assert Scenario(uneven_workload, policies, {"": MS}, run=1).baseline() == expected
