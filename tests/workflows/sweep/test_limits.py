"""The limits, against a slow look at every load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slotwise_sim import (
    Binned,
    Continuous,
    Dynamic,
    PerToken,
    Policy,
    Static,
    Step,
    Workload,
    simulate,
)
from slotwise_sim.article import article_workload
from slotwise_sim.lengths import gain_bound, histogram
from slotwise_sim.metrics import percentile
from slotwise_sim.variation import with_cv
from slotwise_sim.workload import at_load
from slotwise_workflows.sweep.limits import find_limits
from slotwise_workflows.sweep.points import Point, Setting, seed_of
from slotwise_workflows.sweep.rows import Limit
from slotwise_workflows.sweep.scenario import Scenario, bench

MS = PerToken(10.0)
POLICIES: dict[str, Policy] = {"dynamic": Dynamic(0.0), "continuous": Continuous()}


@pytest.fixture
def poisson() -> Workload:
    """400 requests of 1 s on average, one a second."""
    rng = np.random.default_rng(5)
    return Workload(
        arrival_s=np.cumsum(rng.exponential(1.0, 400)),
        output_tokens=np.maximum(1, rng.geometric(0.01, 400)),
        prompt_tokens=np.zeros(400, np.int64),
    )


def limits(scenario: Scenario, setting: Setting) -> dict[str, Limit]:
    point = Point(setting, 0, seed_of(0, 0), search=True)
    return {own.policy: own for own in find_limits(bench(scenario), point)}


def whole(workload: Workload, policies: dict[str, Policy] = POLICIES, **others: object) -> Scenario:
    """Runs as long as the workload: every resampling is the workload, begun elsewhere."""
    return replace(Scenario(workload, policies, {"": MS}, run=len(workload)), **others)  # type: ignore[arg-type]


def p95_s(scenario: Scenario, policy: str, load: float, *, slots: int, replicas: int = 1) -> float:
    """The same resampled traffic, replayed by hand."""
    from slotwise_sim.replicate import resample

    rng = np.random.default_rng(seed_of(0, 0))
    traffic = at_load(resample(scenario.workload, rng, run=scenario.run), load)
    outcome = simulate(traffic, scenario.policies[policy], MS, slots=slots, replicas=replicas)
    return percentile(outcome.end_s - outcome.arrival_s, 95)


@pytest.mark.parametrize("policy", POLICIES)
def test_capacity_is_the_last_load_that_meets_the_objective(poisson: Workload, policy: str) -> None:
    scenario = whole(poisson, objectives={"latency": 6.0})
    found = limits(scenario, Setting(4))[policy].capacity_load
    assert found is not None
    loads = np.geomspace(0.2, 8, 400)
    met = [load for load in loads if p95_s(scenario, policy, load, slots=4) <= 6.0]
    assert found == pytest.approx(max(met), rel=0.03)


def test_capacity_without_objectives_is_what_is_sustained(poisson: Workload) -> None:
    """Four slots refilled at once: 4 / E[service]."""
    found = limits(whole(poisson), Setting(4))["continuous"]
    assert found.capacity_per_s == pytest.approx(4 / (poisson.output_tokens.mean() / 100))
    assert found.capacity_load is not None
    assert found.capacity_load * 399 / np.ptp(poisson.arrival_s) == pytest.approx(
        found.capacity_per_s, rel=0.02
    )


def test_the_article_s_two_servers() -> None:
    """8 slots / E[service] when refilled; 75 full batches in 326.4 s. 12 a second are offered."""
    article = article_workload()
    policies: dict[str, Policy] = {"static": Static(), "continuous": Continuous()}
    scenario = Scenario(article, policies, {"": PerToken(8.0)}, run=len(article))
    found = limits(scenario, Setting(8))
    assert found["continuous"].capacity_per_s == pytest.approx(8 / (0.008 * 196.06), rel=1e-3)
    assert found["static"].capacity_per_s == pytest.approx(600 / 326.4, rel=0.03)
    assert found["continuous"].servers_needed == 3
    assert found["continuous"].break_even_load == 0  # who waits for a full batch, waits


def test_an_objective_below_a_request_of_its_own_is_met_at_no_load(poisson: Workload) -> None:
    found = limits(whole(poisson, objectives={"latency": 0.5}), Setting(4))
    assert {own.capacity_load for own in found.values()} == {0.0}
    assert {own.servers_needed for own in found.values()} == {None}


def test_a_server_that_waits_for_full_batches_has_its_capacity_found(poisson: Workload) -> None:
    """At low loads it is too slow as well: what meets the objective is a band of loads."""
    scenario = whole(poisson, {"static": Static()}, objectives={"latency": 7.0})
    found = limits(scenario, Setting(4))["static"].capacity_load
    assert found is not None
    assert p95_s(scenario, "static", found, slots=4) <= 7.0
    assert p95_s(scenario, "static", 0.05, slots=4) > 7.0


@pytest.mark.parametrize("policy", POLICIES)
def test_servers_needed_are_the_fewest(poisson: Workload, policy: str) -> None:
    scenario = whole(poisson, objectives={"latency": 4.0})
    found = limits(scenario, Setting(1))[policy].servers_needed
    every = [n for n in range(1, 12) if p95_s(scenario, policy, 1.0, slots=1, replicas=n) <= 4.0]
    assert found == min(every)


def test_the_load_from_which_it_pays(poisson: Workload) -> None:
    """Just below the break-even load the mean latency falls by less than a fifth."""
    scenario = whole(poisson)
    found = limits(scenario, Setting(4))["continuous"].break_even_load
    assert found is not None

    def fall(load: float) -> float:
        from slotwise_sim.replicate import resample

        rng = np.random.default_rng(seed_of(0, 0))
        traffic = at_load(resample(poisson, rng, run=400), load)
        before, after = (
            float((own.end_s - own.arrival_s).mean())
            for own in (simulate(traffic, p, MS, slots=4) for p in POLICIES.values())
        )
        return 1 - after / before

    assert fall(found) >= 0.2
    assert fall(found * 0.98) < 0.2


def even_at(rate: float) -> Workload:
    """600 requests of almost the same length, 1.2 s of work each."""
    rng = np.random.default_rng(3)
    return Workload(
        arrival_s=np.cumsum(rng.exponential(1 / rate, 600)),
        output_tokens=rng.integers(118, 123, 600),
        prompt_tokens=np.zeros(600, np.int64),
    )


@pytest.mark.parametrize("rate", [0.5, 2.0, 20.0])
def test_where_only_the_wait_falls_that_has_an_end(rate: float) -> None:
    """Far into overload both policies wait as long: nothing is gained there."""
    scenario = whole(even_at(rate))
    found = limits(scenario, Setting(4))["continuous"]
    assert found.gain == pytest.approx(1, abs=0.02)
    assert found.break_even_load is not None
    assert found.break_even_until is not None
    assert found.break_even_load * rate < found.break_even_until * rate < 2 * 4 / 1.2

    def fall(load: float) -> float:
        traffic = bench(scenario).traffic(Point(Setting(4), 0, seed_of(0, 0), search=True))
        before, after = (
            float((own.end_s - own.arrival_s).mean())
            for own in (simulate(at_load(traffic, load), p, MS, slots=4) for p in POLICIES.values())
        )
        return 1 - after / before

    assert fall(found.break_even_load) >= 0.2 > fall(found.break_even_load * 0.98)
    assert fall(found.break_even_until) >= 0.2 > fall(found.break_even_until * 1.02)


def test_what_pays_is_held_against_the_baseline_itself() -> None:
    """Neither against batches that nobody runs, nor against those of another policy."""
    rng = np.random.default_rng(5)
    workload = Workload(
        np.cumsum(rng.exponential(1.0, 400)),
        np.maximum(1, rng.geometric(0.01, 400)),
        np.full(400, 500),
    )
    policies: dict[str, Policy] = {
        "continuous": Continuous("mixed"),
        "continuous#2": Continuous("separate"),
    }
    step = Step(base_ms=10, per_prefill_token_ms=0.2)
    found = limits(Scenario(workload, policies, {"": step}, run=400), Setting(8))
    assert found["continuous#2"].gain is not None
    assert found["continuous#2"].gain > 1.2  # over static batches, which are not among them
    assert (found["continuous#2"].break_even_load, found["continuous#2"].break_even_cv) == (
        None,
        None,
    )


@pytest.mark.parametrize("seed", range(6))
def test_servers_that_wait_for_full_batches(seed: int) -> None:
    """Tried one by one: too many of them are as bad as too few."""
    rng = np.random.default_rng(seed)
    workload = Workload(
        np.cumsum(rng.exponential(1 / rng.uniform(5, 30), 500)),
        np.maximum(1, rng.geometric(0.01, 500)),
        np.zeros(500, np.int64),
    )
    objective = float(rng.uniform(5, 10))
    scenario = whole(workload, {"static": Static()}, objectives={"latency": objective})
    found = limits(scenario, Setting(8))["static"].servers_needed
    carrying = limits(whole(workload, {"static": Static()}), Setting(8))["static"].servers_needed
    assert carrying is not None
    every = [
        n for n in range(carrying, 500 // 8 + 1)
        if p95_s(scenario, "static", 1.0, slots=8, replicas=n) <= objective
    ]  # fmt: skip
    assert found == (min(every) if every else None)


def test_bins_are_predicted_anew_at_every_variation(poisson: Workload) -> None:
    """The search for the variation and the axis of it tell the same of the same traffic."""
    policies: dict[str, Policy] = {"static": Static(), "binned": Binned(4)}
    scenario = whole(poisson, policies, prediction_errors={"binned": 0.3})
    found = limits(scenario, Setting(4))["binned"].break_even_cv
    assert found is not None
    for cv, pays in ((found * 1.03, True), (found * 0.97, False)):
        gain = limits(scenario, Setting(4, length_cv=cv))["binned"].gain
        assert gain is not None
        assert (gain >= 1.2) == pays


def test_the_baseline_has_nothing_to_break_even_with(poisson: Workload) -> None:
    found = limits(whole(poisson), Setting(4))["dynamic"]
    assert (found.break_even_load, found.break_even_cv) == (None, None)
    assert found.gain == 1


def test_the_variation_from_which_it_pays(poisson: Workload) -> None:
    """By lengths regrouped at random: the order of independent lengths does not matter much."""
    many = replace(
        poisson,
        arrival_s=np.arange(20_000.0),
        output_tokens=np.maximum(1, np.random.default_rng(1).geometric(0.01, 20_000)),
        prompt_tokens=np.zeros(20_000, np.int64),
    )
    found = limits(whole(many), Setting(8))["continuous"].break_even_cv
    assert found is not None
    at_break_even = with_cv(many.output_tokens, found)
    assert gain_bound(*histogram(at_break_even), 8) == pytest.approx(1.2, abs=0.01)


def test_lengths_that_are_equal_have_no_variation_to_find(poisson: Workload) -> None:
    even = replace(poisson, output_tokens=np.full(400, 100))
    found = limits(whole(even), Setting(4))["continuous"]
    assert found.break_even_cv is None
    assert found.gain == pytest.approx(1)


def test_a_traffic_without_times_has_no_loads(poisson: Workload) -> None:
    offline = replace(poisson, arrival_s=np.zeros(400))
    found = limits(whole(offline), Setting(4))["continuous"]
    assert (found.capacity_load, found.servers_needed, found.break_even_load) == (None, None, None)
    assert found.gain is not None
    assert found.break_even_cv is not None
