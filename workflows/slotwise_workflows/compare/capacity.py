"""Capacity: what is gained by refilling slots at once, whatever the load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim import PerToken, Workload
from slotwise_sim.backlog import backlog_gain_interval, idle_share_interval
from slotwise_sim.lengths import gain_bound_intervals, in_order_gain_interval
from slotwise_sim.workload import all_at_once, rows_of
from slotwise_workflows.compare.server import BATCH_AT_ONCE, COMPARED, Server
from slotwise_workflows.compare.sustained import as_served, in_order_of_service
from slotwise_workflows.facts import Facts
from slotwise_workflows.record import Estimate


@dataclass(frozen=True, slots=True)
class Capacity:
    """Sustainable requests per second, continuous over batch-at-once.

    Attributes:
        by_slots: The gain at the fewest, the stated and the most slots assumed.
        gain: At the stated slots; its range runs over the assumed slots too, and where the cost was
            fitted over the intervals of its terms.
        by_lengths: The gain in order of arrival by lengths alone: at a fixed time per token the
            same as `gain`.
        bound: `gain_bound` at the stated slots: batches of requests regrouped at random.
        by_padding: The gain over batches that are padded, and over those that are not.
        even: What these requests would gain if all answers had the mean length.
        idle: Idle share of the slots under full load, by policy.
    """

    by_slots: Mapping[int, Estimate]
    gain: Estimate
    by_lengths: Estimate
    bound: Estimate
    by_padding: Mapping[bool, float]
    even: float
    idle: Mapping[str, Estimate]


def capacity(
    workload: Workload, server: Server, facts: Facts, *, in_order: bool, rng: np.random.Generator
) -> Capacity | None:
    """The capacity gain over the assumed slots; None where the sample fills no batch.

    Args:
        workload: All requests, in order of arrival where `in_order`.
        server: The stated setting.
        facts: The slots assumed.
        in_order: Whether batches are formed in the order given; else at random.
        rng: For the bootstrap.
    """
    low, value, high = (int(s) for s in (facts.slots.low, facts.slots.value, facts.slots.high))
    if high > len(workload) or len(workload) < 2:
        return None
    tokens = workload.output_tokens
    sizes = sorted({low, value, high})
    bounds = {b: _estimate(*v) for b, v in gain_bound_intervals(tokens, sizes, rng).items()}
    served = in_order_of_service(tokens, server.replicas)
    by_lengths = (
        {b: _estimate(*in_order_gain_interval(served, b, rng)) for b in sizes}
        if in_order
        else bounds
    )
    if isinstance(server.cost, PerToken):
        gain = _over_all(by_lengths, value)
        return Capacity(
            by_slots=by_lengths,
            gain=gain,
            by_lengths=gain,
            bound=bounds[value],
            by_padding=dict.fromkeys((True, False), gain.estimate),
            even=1.0,
            idle={BATCH_AT_ONCE: _idle_behind_the_longest(gain), "continuous": _estimate(0, 0, 0)},
        )
    order = np.arange(len(workload)) if in_order else rng.permutation(len(workload))
    batched = rows_of(workload, order)
    requests = as_served(batched, server.replicas)
    gains: dict[int, Estimate] = {}
    refilled_per_s: dict[int, float] = {}
    idle: dict[str, dict[int, Estimate]] = {policy: {} for policy in COMPARED}
    for slots in sizes:
        at = replace(server, slots=slots)
        batch, continuous = (at.backlog(requests, policy) for policy in COMPARED)
        gains[slots] = _estimate(*backlog_gain_interval(batch, continuous, rng))
        refilled_per_s[slots] = continuous.per_s
        for policy, own in zip(COMPARED, (batch, continuous), strict=True):
            idle[policy][slots] = _estimate(*idle_share_interval(own, rng))
    gains = _over_ends(gains, value, _at_ends(requests, server, facts))
    otherwise = replace(server, pad=not server.pad).backlog(requests, BATCH_AT_ONCE)
    return Capacity(
        by_slots=gains,
        gain=_over_all(gains, value),
        by_lengths=_over_all(by_lengths, value),
        bound=bounds[value],
        by_padding={
            server.pad: gains[value].estimate,
            not server.pad: refilled_per_s[value] / otherwise.per_s,
        },
        even=gain_in_order(_with_even_lengths(batched), server),
        idle={policy: _over_all(shares, value) for policy, shares in idle.items()},
    )


def gain_in_order(workload: Workload, server: Server) -> float:
    """The capacity gain of one setting.

    Args:
        workload: The requests, in the order in which they are batched.
        server: The setting.
    """
    batch, continuous = (server.sustained_per_s(workload, policy) for policy in COMPARED)
    return continuous / batch


def batch_tokens(workload: Workload, slots: int) -> float:
    """KV tokens that a batch of these requests holds at its end, on average."""
    return slots * float((workload.prompt_tokens + workload.output_tokens).mean())


def capacity_per_s(workload: Workload, server: Server, gain: float) -> dict[str, float]:
    """Requests per second each policy can sustain, all replicas together.

    Batch-at-once holds every slot for the longest of its batch, `gain` times as long on average.

    Args:
        workload: The requests, in any order.
        server: The setting.
        gain: Its capacity gain.
    """
    waiting = all_at_once(workload)
    serial, continuous = (server.sustained_per_s(waiting, p) for p in ("serial", "continuous"))
    return {"serial": serial, BATCH_AT_ONCE: continuous / gain, "continuous": continuous}


def _at_ends(requests: Workload, server: Server, facts: Facts) -> list[float]:
    """The gain at the ends of a fitted cost's intervals; none where it was not fitted."""
    ends = () if facts.cost is None else facts.cost.ends
    found = []
    for cost in ends:
        at = replace(server, cost=cost)
        batch, continuous = (at.backlog(requests, policy) for policy in COMPARED)
        found.append(continuous.per_s / batch.per_s)
    return found


def _over_ends(
    by_slots: Mapping[int, Estimate], slots: int, at_ends: list[float]
) -> dict[int, Estimate]:
    """The gains, each range wider by as much as the cost's ends move the gain at these slots."""
    moved = [gain / by_slots[slots].estimate for gain in at_ends]
    least, most = min([1.0, *moved]), max([1.0, *moved])
    return {
        b: _estimate(own.estimate, own.low * least, own.high * most) for b, own in by_slots.items()
    }


def _over_all(by_slots: Mapping[int, Estimate], slots: int) -> Estimate:
    """The figure at these slots, its range over all."""
    return Estimate(
        estimate=by_slots[slots].estimate,
        low=min(own.low for own in by_slots.values()),
        high=max(own.high for own in by_slots.values()),
    )


def _idle_behind_the_longest(gain: Estimate) -> Estimate:
    """At a fixed time per token: batches hold slots `gain` times as long as requests use them."""
    return _estimate(*(max(0.0, 1 - 1 / g) for g in (gain.estimate, gain.low, gain.high)))


def _with_even_lengths(workload: Workload) -> Workload:
    mean = max(1, round(float(workload.output_tokens.mean())))
    return replace(workload, output_tokens=np.full(len(workload), mean))


def _estimate(estimate: float, low: float, high: float) -> Estimate:
    return Estimate(estimate=estimate, low=low, high=high)
