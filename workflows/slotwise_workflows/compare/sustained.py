"""How many requests a second servers sustain while work always waits, under any policy and cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slotwise_sim import Binned, Continuous, Cost, Memory, Policy, Step, Workload
from slotwise_sim.backlog import backlog
from slotwise_sim.lengths import in_order_gain
from slotwise_sim.workload import Ints, rows_of

# Of more requests, as many are simulated, in runs of consecutive ones from all over the log.
MOST_SIMULATED = 1_000_000
RUNS = 1000


def sustained_per_s(
    workload: Workload,
    policy: Policy,
    cost: Cost,
    *,
    slots: int,
    replicas: int = 1,
    memory: Memory | None = None,
) -> float:
    """Requests per second that a policy serves while work always waits, all replicas together.

    At a fixed time per token continuous batching keeps every slot busy, slots / E[service], and
    batches in order of arrival hold every slot for the longest of its batch: `in_order_gain` times
    as long. What has no such form is simulated: `slotwise_sim.backlog`.

    Args:
        workload: The requests, in the order in which they are batched; their times do not matter.
        policy: The order of filling.
        cost: How long tokens or iterations take.
        slots: Of one replica.
        replicas: Servers behind the balancer.
        memory: KV memory of one replica.

    Raises:
        ValueError: There are too few requests for one batch.
    """
    if isinstance(cost, Step) or isinstance(policy, Binned):
        served = as_served(workload, replicas)
        return replicas * backlog(served, policy, cost, slots=slots, memory=memory).per_s
    service_s = float(workload.output_tokens.mean()) * cost.ms_per_token / 1000
    busy_per_s = replicas * slots / service_s
    if isinstance(policy, Continuous):
        return busy_per_s
    return busy_per_s / in_order_gain(in_order_of_service(workload.output_tokens, replicas), slots)


def as_served(workload: Workload, replicas: int) -> Workload:
    """Requests as they are simulated: in the order in which servers meet them, all waiting.

    Args:
        workload: In order of arrival. Of more than `MOST_SIMULATED` requests, runs of consecutive
            ones from all over the log are taken.
        replicas: Servers behind the balancer.
    """
    rows = in_order_of_service(np.arange(len(workload)), replicas)
    if len(rows) > MOST_SIMULATED:
        rows = np.concatenate([run[: MOST_SIMULATED // RUNS] for run in np.array_split(rows, RUNS)])
    return replace(rows_of(workload, rows), arrival_s=np.zeros(len(rows)))


def in_order_of_service(values: Ints, replicas: int) -> Ints:
    """Values of requests in the order in which replicas meet them, one replica after another.

    Round robin gives each replica every n-th request. The few batches that would reach from one
    replica's requests into the next one's do not matter.

    Args:
        values: One a request, in order of arrival: its length, or its row; shape (n,).
        replicas: Servers behind the balancer.
    """
    return np.concatenate([values[replica::replicas] for replica in range(replicas)])
