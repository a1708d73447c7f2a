"""Servers that are simulated each by itself, because no request hangs on another.

A request arrives whatever becomes of those before it, at a server known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

import numpy as np

from slotwise_sim.costs import Cost, PerToken, Step, by_batch
from slotwise_sim.handed import (
    Rows,
    Served,
    bin_edges,
    bins_of,
    busy_per_token_s,
    records,
    rules_of,
    served_between_iterations,
    served_in_batches,
)
from slotwise_sim.kernels.records import BATCHED, REFILLING
from slotwise_sim.memory import Memory
from slotwise_sim.policies import BatchPolicy, Binned, Continuous, Dynamic, Policy, Static
from slotwise_sim.watching import watched
from slotwise_sim.workload import Floats, Ints, Workload


def serve_apart(
    workload: Workload,
    policy: Policy,
    cost: Cost,
    slots: int,
    replicas: int,
    memory: Memory | None,
    on_progress: Callable[[int, int], None] | None,
) -> Served:
    """Requests that arrive whatever becomes of others, dealt like cards: each server by itself."""
    edges = bin_edges(workload, policy)
    times: dict[str, Floats] = {}
    busy_slot_s, preemptions, done = 0.0, 0, 0

    def further(of_this_replica: int) -> None:
        if on_progress is not None:
            on_progress(done + of_this_replica, len(workload))

    for rows in _rows_by_replica(workload.arrival_s, replicas):
        served = _serve(workload, rows, policy, cost, slots, memory, edges, further)
        for name, own in served.times.items():
            times.setdefault(name, np.empty(len(workload)))[rows] = own
        busy_slot_s += served.busy_slot_s
        preemptions += served.preemptions
        done += len(served.times["start_s"])
    return Served(times, busy_slot_s, preemptions)


def _rows_by_replica(arrival_s: Floats, replicas: int) -> list[slice] | list[Ints]:
    """The rows that each replica serves, in order of arrival; none is left without a row."""
    served = range(min(replicas, len(arrival_s)))
    if bool((arrival_s[1:] >= arrival_s[:-1]).all()):
        return [slice(replica, None, replicas) for replica in served]
    order = np.argsort(arrival_s, kind="stable")
    return [order[replica::replicas] for replica in served]


def _serve(
    workload: Workload,
    rows: Rows,
    policy: Policy,
    cost: Cost,
    slots: int,
    memory: Memory | None,
    edges: Floats,
    on_progress: Callable[[int], None],
) -> Served:
    """One server's requests, in order of arrival."""
    # Further slots would stay empty; the one beyond n keeps a batch of all requests a short batch.
    slots = min(slots, len(workload.arrival_s[rows]) + 1)
    match policy:
        case Static() | Dynamic() | Binned():
            return _serve_batches(workload, rows, policy, cost, slots, edges, on_progress)
        case Continuous():
            if isinstance(cost, PerToken):
                return _refill_slots(workload, rows, cost, slots, on_progress)
            return _refill_between_iterations(
                workload, rows, policy, cost, slots, memory, on_progress
            )
        case _:
            assert_never(policy)


def _refill_slots(
    workload: Workload,
    rows: Rows,
    cost: PerToken,
    slots: int,
    on_progress: Callable[[int], None],
) -> Served:
    """Continuous batching where a request takes the same time in a slot whatever runs beside it."""
    from slotwise_sim.kernels import slots as kernel  # Numba, which many callers never need

    # The loops are compiled for one kind of array: contiguous and writeable.
    arrival_s = np.require(workload.arrival_s[rows], np.float64, ["C", "W"])
    tokens = workload.output_tokens[rows]
    service_s: Floats = np.multiply(tokens, cost.ms_per_token, dtype=np.float64)
    service_s /= 1000
    start_s, end_s = np.empty(len(tokens)), np.empty(len(tokens))
    watched(
        lambda control: kernel.continuous_slots(
            arrival_s, service_s, slots, start_s, end_s, control
        ),
        len(tokens),
        on_progress,
    )
    first_token_s = start_s + cost.ms_per_token / 1000
    times = {"start_s": start_s, "first_token_s": first_token_s, "own_end_s": end_s}
    return Served(times, busy_per_token_s(tokens, cost))


def _refill_between_iterations(
    workload: Workload,
    rows: Rows,
    policy: Continuous,
    cost: Step,
    slots: int,
    memory: Memory | None,
    on_progress: Callable[[int], None],
) -> Served:
    """Continuous batching where the server works in iterations."""
    from slotwise_sim.kernels import iterations as kernel

    requests = records(workload, rows, REFILLING, memory)
    rules = rules_of(policy, memory)
    preemptions = watched(
        lambda control: kernel.continuous_iterations(
            requests, by_batch(cost, slots), rules, slots, control
        ),
        len(requests),
        on_progress,
    )
    return served_between_iterations(requests, memory, preemptions)


def _serve_batches(
    workload: Workload,
    rows: Rows,
    policy: BatchPolicy,
    cost: Cost,
    slots: int,
    edges: Floats,
    on_progress: Callable[[int], None],
) -> Served:
    """Batches that start together and give their slots back together; under either cost."""
    from slotwise_sim.kernels import batches as kernel

    requests = records(workload, rows, BATCHED)
    # Static batching never stops waiting. One bin needs no prediction.
    max_delay_ms = math.inf if isinstance(policy, Static) else policy.max_delay_ms
    if len(edges):
        bin_of = bins_of(workload, rows, edges)
        queues = np.argsort(bin_of, kind="stable")
        stops = np.cumsum(np.bincount(bin_of, minlength=len(edges) + 1))
        del bin_of
    else:
        queues, stops = np.arange(len(requests)), np.array([len(requests)])
    # Seen from a batch, a fixed time per token is an iteration with nothing but a base.
    step = Step(base_ms=cost.ms_per_token) if isinstance(cost, PerToken) else cost
    watched(
        lambda control: kernel.batches_at_once(
            requests,
            by_batch(step, slots),
            queues,
            stops,
            slots,
            max_delay_ms / 1000,
            policy.pad,
            control,
        ),
        len(requests),
        on_progress,
    )
    return served_in_batches(requests, cost)
