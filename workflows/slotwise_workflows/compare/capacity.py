"""Capacity: what is gained by refilling slots at once, whatever the load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slotwise_sim.lengths import gain_bound_intervals, in_order_gain_interval
from slotwise_sim.workload import Ints
from slotwise_workflows.compare.server import BATCH_AT_ONCE, Server
from slotwise_workflows.facts import Facts
from slotwise_workflows.result import Estimate


@dataclass(frozen=True, slots=True)
class Capacity:
    """Sustainable requests per second, continuous over batch-at-once.

    Attributes:
        by_slots: The gain at the fewest, the stated and the most slots assumed.
        gain: At the stated slots; its range runs over the assumed slots too.
        bound: `gain_bound` at the stated slots: batches of requests regrouped at random.
    """

    by_slots: Mapping[int, Estimate]
    gain: Estimate
    bound: Estimate


def capacity(
    tokens: Ints, facts: Facts, *, in_order: bool, rng: np.random.Generator
) -> Capacity | None:
    """The capacity gain over the assumed slots; None where the sample fills no batch.

    Args:
        tokens: Output lengths, in order of arrival where `in_order`.
        facts: The slots and replicas.
        in_order: Whether batches are formed in the order given; else at random.
        rng: For the bootstrap.
    """
    low, value, high = (int(s) for s in (facts.slots.low, facts.slots.value, facts.slots.high))
    if high > len(tokens) or len(tokens) < 2:
        return None
    served = in_order_of_service(tokens, facts.replicas.value or 1)
    sizes = sorted({low, value, high})
    bounds = {b: _estimate(*v) for b, v in gain_bound_intervals(tokens, sizes, rng).items()}
    gains = (
        {b: _estimate(*in_order_gain_interval(served, b, rng)) for b in sizes}
        if in_order
        else bounds
    )
    return Capacity(
        by_slots=gains,
        gain=Estimate(
            estimate=gains[value].estimate,
            low=min(gain.low for gain in gains.values()),
            high=max(gain.high for gain in gains.values()),
        ),
        bound=bounds[value],
    )


def in_order_of_service(tokens: Ints, replicas: int) -> Ints:
    """Lengths in the order in which batches of replicas meet them, one replica after another.

    Round robin gives each replica every n-th request. The few batches that would reach from one
    replica's requests into the next one's do not matter.

    Args:
        tokens: In order of arrival, shape (n,).
        replicas: Servers behind the balancer.
    """
    return np.concatenate([tokens[replica::replicas] for replica in range(replicas)])


def sustainable_per_s(tokens: Ints, server: Server, gain: float) -> dict[str, float]:
    """Requests per second each policy can sustain, all replicas together.

    Continuous keeps every slot busy: slots / E[service]. Batch-at-once holds every slot for the
    longest of its batch, `gain` times as long on average. Serial serves one at a time.
    """
    service_s = float(tokens.mean()) * server.ms_per_token / 1000
    continuous = server.replicas * server.slots / service_s
    return {
        "serial": server.replicas / service_s,
        BATCH_AT_ONCE: continuous / gain,
        "continuous": continuous,
    }


def _estimate(estimate: float, low: float, high: float) -> Estimate:
    return Estimate(estimate=estimate, low=low, high=high)
