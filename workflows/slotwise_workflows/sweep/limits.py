"""Where each policy is just enough: found by search, one resampled traffic at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from slotwise_sim import Memory, Outcome, Workload
from slotwise_sim.memory import check_fits
from slotwise_sim.policies import fills_batches
from slotwise_sim.variation import with_cv
from slotwise_workflows.compare.enough import (
    Band,
    band,
    batches_of,
    fewest_servers,
    first,
    highest,
    lowest,
    meets,
)
from slotwise_workflows.sweep.points import SERVER, Point
from slotwise_workflows.sweep.rows import Limit
from slotwise_workflows.sweep.scenario import Bench, offered_per_s, ratio, seen_by, sustained

MOST_CV = 4.0
"""Lengths that vary more than this have not been seen."""

BEYOND = 2.0
"""Times the load that saturates the baseline: further on, its waits are those of the horizon."""

FARTHEST = 64.0
"""Likewise, where capacity is gained but not enough, and the wait falls far beyond saturation."""


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
    offered, per_s = offered_per_s(bench.traffic(point)), bench.sustained_per_s(policy, point)
    capacity = servers = variation = None
    pays = Band(None, None)
    if offered is not None and per_s is not None:
        capacity = _capacity_load(bench, policy, point, per_s / offered)
        servers = _servers_needed(bench, policy, point, offered / per_s)
    if policy != bench.scenario.baseline():
        if offered is not None:
            pays = _where_it_pays(bench, policy, point, offered)
        variation = _break_even_cv(bench, policy, point)
    return Limit(
        **{name: getattr(point.setting, name) for name in SERVER},
        policy=policy,
        replication=point.replication,
        seed=point.seed,
        gain=bench.gain(policy, point),
        capacity_load=capacity,
        capacity_per_s=None if capacity is None or offered is None else capacity * offered,
        servers_needed=servers,
        break_even_load=pays.low,
        break_even_until=pays.high,
        break_even_cv=variation,
    )


def _capacity_load(bench: Bench, policy: str, point: Point, saturated: float) -> float:
    """The highest load up to saturation at which every objective is met."""
    scenario, traffic = bench.scenario, bench.seen_by(policy, point)

    def enough(load: float) -> bool:
        outcome = scenario.serve(policy, traffic, point.setting, load=load)
        return meets(outcome, scenario.objectives)

    return highest(enough, saturated, closely=fills_batches(scenario.policies[policy]))


def _servers_needed(bench: Bench, policy: str, point: Point, utilisation: float) -> int | None:
    """Fewest servers that carry the traffic as it is and meet every objective."""
    scenario, traffic = bench.scenario, bench.seen_by(policy, point)

    def enough(servers: int) -> bool:
        at = replace(point.setting, replicas=servers)
        return meets(scenario.serve(policy, traffic, at, load=1.0), scenario.objectives)

    return fewest_servers(
        enough,
        math.floor(utilisation * point.setting.replicas) + 1,
        batches_of(len(traffic), point.setting.slots),
        closely=fills_batches(scenario.policies[policy]),
    )


def _where_it_pays(bench: Bench, policy: str, point: Point, offered: float) -> Band:
    """The loads at which a policy is worth having in place of the baseline.

    Where it gains enough capacity, the baseline's overload is worth it at the latest, and from
    there on there is no end. Else only the wait can fall: in a band that ends where both are
    overloaded.
    """
    scenario, base = bench.scenario, bench.scenario.baseline()
    per_s = bench.sustained_per_s(base, point)
    gain = ratio(bench.sustained_per_s(policy, point), per_s)
    if per_s is None or gain is None:
        return Band(None, None)
    seen = {name: bench.seen_by(name, point) for name in (base, policy)}

    def pays(load: float) -> bool:
        before, after = (
            _mean_latency_s(scenario.serve(name, own, point.setting, load=load))
            for name, own in seen.items()
        )
        return 1 - after / before >= scenario.waiting_adopt

    saturated = per_s / offered
    if gain >= scenario.gain_adopt:
        return Band(lowest(pays, saturated), None)
    return band(pays, _beyond(gain, scenario.waiting_adopt) * saturated)


def _beyond(gain: float, fall: float) -> float:
    """How far beyond the baseline's saturation the wait may still fall by so much.

    Under overload a queue grows evenly. At ``u`` times saturation the mean wait is in proportion to
    ``1 - 1/u``, and after the change to ``1/gain - 1/u``: it falls by ``(1 - 1/gain) / (1 - 1/u)``.
    Twice as far as that still suffices, since finite traffic is not all queue.
    """
    share = (1 - 1 / gain) / fall
    return FARTHEST if share >= 1 else min(max(BEYOND, 2 / (1 - share)), FARTHEST)


def _break_even_cv(bench: Bench, policy: str, point: Point) -> float | None:
    """The least variation at which the gain in capacity over the baseline is worth a change."""
    scenario, setting = bench.scenario, point.setting
    traffic = bench.traffic(point)
    if setting.length_cv is not None or np.ptp(traffic.output_tokens) == 0:
        return None

    def pays(cv: float) -> bool:
        respread = replace(traffic, output_tokens=with_cv(traffic.output_tokens, cv))
        per_s, base_per_s = (
            sustained(scenario, name, seen_by(scenario, name, respread, point.seed), setting)
            for name in (policy, scenario.baseline())
        )
        gain = ratio(per_s, base_per_s)
        return gain is not None and gain >= scenario.gain_adopt

    most = min(MOST_CV, math.sqrt(len(traffic)) / 2)
    while not can_have(traffic, most, scenario.memory_of(setting)):
        most /= 2
    return first(pays, most)


def can_have(traffic: Workload, cv: float, memory: Memory | None) -> bool:
    """Whether these lengths can vary so much, and the longest then still fits into the memory."""
    try:
        respread = replace(traffic, output_tokens=with_cv(traffic.output_tokens, cv))
        if memory is not None:
            check_fits(respread, memory)
    except ValueError:  # a request that never fits is one, too
        return False
    return True


def _mean_latency_s(outcome: Outcome) -> float:
    return float((outcome.end_s - outcome.arrival_s).mean())
