"""Servers on one clock, because requests hang on one another.

With users, an answer lets another request be sent; with a balancer that looks, all requests in
flight decide where one goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from slotwise_sim.costs import Cost, PerToken, Step, by_batch
from slotwise_sim.handed import (
    Served,
    bin_edges,
    bins_of,
    records,
    rules_of,
    served_between_iterations,
    served_in_batches,
    served_in_slots,
)
from slotwise_sim.kernels.records import COUPLED, Records
from slotwise_sim.memory import Memory
from slotwise_sim.policies import Continuous, Policy, Static, answers_together
from slotwise_sim.users import Balancer, Users
from slotwise_sim.watching import watched
from slotwise_sim.workload import Floats, Ints, Workload


def serve_coupled(
    workload: Workload,
    policy: Policy,
    cost: Cost,
    slots: int,
    replicas: int,
    memory: Memory | None,
    balancer: Balancer,
    users: Users | None,
    on_progress: Callable[[int, int], None] | None,
) -> Served:
    """Serves all requests, in order of arrival or as users send them."""
    from slotwise_sim.kernels import coupled as kernel  # Numba, which many callers never need

    if not isinstance(policy, Continuous):
        memory = None  # batches are assumed to fit
    n = len(workload)
    rows = np.argsort(workload.arrival_s, kind="stable")
    requests = records(workload, rows, COUPLED, memory)
    # In an open loop every request has a user of its own, who sends it when it is to arrive.
    requests["think_s"] = requests["arrival_s"] if users is None else users.think_s
    edges = bin_edges(workload, policy)
    if len(edges):
        requests["bin"] = bins_of(workload, rows, edges)
    slots = min(slots, n + 1)  # further ones would stay empty, as would further servers
    way = _way(policy, cost, slots, n if users is None else min(users.count, n), balancer)
    rules = rules_of(policy if isinstance(policy, Continuous) else Continuous(), memory)
    # Seen from a batch, a fixed time per token is an iteration with nothing but a base.
    step = Step(base_ms=cost.ms_per_token) if isinstance(cost, PerToken) else cost
    preemptions = watched(
        lambda control: kernel.coupled_servers(
            requests,
            by_batch(step, slots),
            way,
            rules,
            min(replicas, n),
            len(edges) + 1,
            control,
        ),
        n,
        lambda done: None if on_progress is None else on_progress(done, n),
    )
    if not isinstance(policy, Continuous):
        served = served_in_batches(requests, cost)
    elif isinstance(cost, PerToken):
        served = served_in_slots(requests, cost)
    else:
        served = served_between_iterations(requests, memory, preemptions)
    return served._replace(
        times=_as_given(served.times | {"arrival_s": requests["arrival_s"]}, rows)
    )


def _way(policy: Policy, cost: Cost, slots: int, users: int, balancer: Balancer) -> Records:
    """How the servers work, as the loop takes it."""
    from slotwise_sim.kernels import traffic as kernel

    way = np.zeros(1, kernel.WAY)
    way["slots"], way["users"] = slots, users
    way["least_busy"] = balancer == "least_busy"
    if not isinstance(policy, Continuous):
        way["kind"] = kernel.BATCHES
        # Static batching never stops waiting.
        delay_ms = math.inf if isinstance(policy, Static) else policy.max_delay_ms
        way["max_delay_s"] = delay_ms / 1000
        way["pad"], way["together"] = policy.pad, answers_together(policy)
    elif isinstance(cost, PerToken):
        way["kind"], way["ms_per_token"] = kernel.SLOTS, cost.ms_per_token
    else:
        way["kind"] = kernel.ITERATIONS
    return way


def _as_given(columns: dict[str, Floats], rows: Ints) -> dict[str, Floats]:
    """Columns in order of arrival, put into the order of the workload."""
    given: dict[str, Floats] = {}
    for name, column in columns.items():
        given[name] = np.empty(len(rows))
        given[name][rows] = column
    return given
