"""Capacity: what is gained by refilling slots at once, whatever the load."""

from __future__ import annotations

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
        gain: At the stated slots; its range runs over the assumed slots too.
        few: At the fewest slots assumed.
        many: At the most slots assumed.
        bound: `gain_bound` at the stated slots: batches of requests regrouped at random.
    """

    gain: Estimate
    few: Estimate
    many: Estimate
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
    # Each replica batches every n-th request; the few batches across two replicas do not matter.
    replicas = facts.replicas.value or 1
    served = np.concatenate([tokens[replica::replicas] for replica in range(replicas)])
    sizes = sorted({low, value, high})
    bounds = {b: _estimate(*v) for b, v in gain_bound_intervals(tokens, sizes, rng).items()}
    gains = (
        {b: _estimate(*in_order_gain_interval(served, b, rng)) for b in sizes}
        if in_order
        else bounds
    )
    return Capacity(
        gain=Estimate(
            estimate=gains[value].estimate,
            low=min(gain.low for gain in gains.values()),
            high=max(gain.high for gain in gains.values()),
        ),
        few=gains[low],
        many=gains[high],
        bound=bounds[value],
    )


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
