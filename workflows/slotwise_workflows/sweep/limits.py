"""Where each policy is just enough: found by search, one resampled traffic at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from slotwise_sim import Memory, Outcome, Workload, simulate
from slotwise_sim.memory import check_fits
from slotwise_sim.variation import with_cv
from slotwise_sim.workload import at_load
from slotwise_workflows.compare.enough import batches_of, fewest_servers, highest, lowest, meets
from slotwise_workflows.sweep.points import Point, Setting
from slotwise_workflows.sweep.rows import Limit
from slotwise_workflows.sweep.scenario import (
    IN_BATCHES,
    Bench,
    Scenario,
    offered_per_s,
    ratio,
    sustained,
)

MOST_CV = 4.0
"""Lengths that vary more than this have not been seen."""


def find_limits(bench: Bench, point: Point) -> tuple[Limit, ...]:
    """Searches a point's traffic for what each policy can carry, and where it begins to pay.

    Args:
        bench: What all points share.
        point: A search.

    Returns:
        One a policy, in the scenario's order.

    Raises:
        ValueError: The lengths cannot be respread as the point asks.
    """
    return tuple(_limit(bench, name, point) for name in bench.scenario.policies)


def _limit(bench: Bench, policy: str, point: Point) -> Limit:
    scenario, setting = bench.scenario, point.setting
    offered, per_s = offered_per_s(bench.traffic(point)), bench.sustained_per_s(policy, point)
    capacity = servers = break_even = variation = None
    if offered is not None and per_s is not None:
        capacity = _capacity_load(bench, policy, point, per_s / offered)
        servers = _servers_needed(bench, policy, point, offered / per_s)
    if policy != scenario.baseline():
        break_even = None if offered is None else _break_even_load(bench, policy, point, offered)
        variation = _break_even_cv(bench, policy, point)
    return Limit(
        cost=setting.cost,
        slots=setting.slots,
        replicas=setting.replicas,
        balancer=setting.balancer,
        length_cv=setting.length_cv,
        policy=policy,
        replication=point.replication,
        seed=point.seed,
        gain=bench.gain(policy, point),
        capacity_load=capacity,
        capacity_per_s=None if capacity is None or offered is None else capacity * offered,
        servers_needed=servers,
        break_even_load=break_even,
        break_even_cv=variation,
    )


def _capacity_load(bench: Bench, policy: str, point: Point, saturated: float) -> float:
    """The highest load up to saturation at which every objective is met."""
    traffic, objectives = bench.seen_by(policy, point), bench.scenario.objectives

    def enough(load: float) -> bool:
        return meets(_serve(bench.scenario, policy, traffic, point.setting, load), objectives)

    return highest(enough, saturated)


def _servers_needed(bench: Bench, policy: str, point: Point, utilisation: float) -> int | None:
    """Fewest servers that carry the traffic as it is and meet every objective."""
    traffic, objectives = bench.seen_by(policy, point), bench.scenario.objectives

    def enough(servers: int) -> bool:
        at = replace(point.setting, replicas=servers)
        return meets(_serve(bench.scenario, policy, traffic, at, 1.0), objectives)

    carrying = math.floor(utilisation * point.setting.replicas) + 1
    return fewest_servers(enough, carrying, batches_of(len(traffic), point.setting.slots))


def _break_even_load(bench: Bench, policy: str, point: Point, offered: float) -> float | None:
    """Where the baseline is overloaded at the latest, and by then the waiting may have fallen."""
    scenario, base = bench.scenario, bench.scenario.baseline()
    per_s, gain = bench.sustained_per_s(base, point), bench.gain(policy, point)
    if per_s is None or gain is None:
        return None
    seen = {name: bench.seen_by(name, point) for name in (base, policy)}

    def pays(load: float) -> bool:
        before, after = (
            _mean_latency_s(_serve(scenario, name, own, point.setting, load))
            for name, own in seen.items()
        )
        return 1 - after / before >= scenario.waiting_adopt

    saturated = per_s / offered
    if gain < scenario.gain_adopt and not pays(saturated):
        return None
    return lowest(pays, saturated)


def _break_even_cv(bench: Bench, policy: str, point: Point) -> float | None:
    """The gain in capacity grows with the variation, at whatever variation the traffic has."""
    scenario, setting = bench.scenario, point.setting
    traffic = bench.seen_by(policy, point)
    if setting.length_cv is not None or np.ptp(traffic.output_tokens) == 0:
        return None

    def respread(cv: float) -> Workload:
        return replace(traffic, output_tokens=with_cv(traffic.output_tokens, cv))

    def pays(cv: float) -> bool:
        refilled, batched = (
            sustained(scenario, name, respread(cv), setting) for name in (policy, IN_BATCHES)
        )
        gain = ratio(refilled, batched)
        return gain is not None and gain >= scenario.gain_adopt

    most = min(MOST_CV, math.sqrt(len(traffic)) / 2)
    while not _possible(traffic, most, scenario.memory_of(setting)):
        most /= 2
    return lowest(pays, most) if pays(most) else None


def _possible(traffic: Workload, cv: float, memory: Memory | None) -> bool:
    """Whether these lengths can vary so much, and the longest then still fits into the memory."""
    try:
        respread = replace(traffic, output_tokens=with_cv(traffic.output_tokens, cv))
        if memory is not None:
            check_fits(respread, memory)
    except ValueError:  # a request that never fits is one, too
        return False
    return True


def _serve(
    scenario: Scenario, policy: str, traffic: Workload, setting: Setting, load: float
) -> Outcome:
    return simulate(
        at_load(traffic, load),
        scenario.policies[policy],
        scenario.cost(setting),
        slots=setting.slots,
        replicas=setting.replicas,
        balancer=setting.balancer,
        memory=scenario.memory_of(setting),
    )


def _mean_latency_s(outcome: Outcome) -> float:
    return float((outcome.end_s - outcome.arrival_s).mean())
