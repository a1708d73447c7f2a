"""Replays a workload under a policy: who starts when, and when each is done.

Static, dynamic, binned and continuous batching run the same requests on the same slots at the same
cost. Only the order of filling differs. Serial serving is any of them with one slot.

A new policy is one more case in `_serve`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from slotwise_sim.costs import Cost, PerToken, Step, by_batch
from slotwise_sim.kernels.records import BATCHED, REFILLING, Records
from slotwise_sim.memory import Memory, check_fits, reserved_tokens
from slotwise_sim.outcome import Outcome
from slotwise_sim.policies import BatchPolicy, Binned, Continuous, Dynamic, Policy, Static
from slotwise_sim.watching import watched
from slotwise_sim.workload import Floats, Ints, Workload

Rows = slice | Ints


def simulate(
    workload: Workload,
    policy: Policy,
    cost: Cost,
    *,
    slots: int,
    replicas: int = 1,
    memory: Memory | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Serves the workload first come, first served.

    Equal arrivals keep their order in the workload. Several replicas are served round robin in
    order of arrival, each simulated apart.

    Args:
        workload: The requests, in any order.
        policy: The order of filling.
        cost: How long tokens take.
        slots: Requests one replica can run at once, >= 1.
        replicas: Servers of ``slots`` slots each, >= 1.
        memory: KV memory of each replica. It limits continuous batching; batches are assumed to
            fit. None never limits.
        on_progress: Hears now and then how many requests of how many are done; of a replay that is
            over in a moment it hears nothing.

    Returns:
        The times of every request, in the order of the workload.

    Raises:
        ValueError: ``slots`` or ``replicas`` is below 1; memory is given beside a cost per token;
            caps that are to be reserved are not known.
        NeverFitsError: A request is larger than the memory.
    """
    if slots < 1:
        raise ValueError(f"slots must be >= 1, got {slots}")
    if replicas < 1:
        raise ValueError(f"replicas must be >= 1, got {replicas}")
    if memory is not None and isinstance(cost, PerToken):
        raise ValueError("KV memory limits a step cost only")
    if memory is not None and isinstance(policy, Continuous):
        check_fits(workload, memory)
    edges = _edges(workload, policy.bins) if isinstance(policy, Binned) else np.empty(0)
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
    held_until_s = times.get("held_until_s", times["own_end_s"])
    together = not isinstance(policy, Continuous) and policy.release == "batch"
    return Outcome(
        arrival_s=workload.arrival_s,
        output_tokens=workload.output_tokens,
        start_s=times["start_s"],
        first_token_s=times["first_token_s"],
        own_end_s=times["own_end_s"],
        end_s=held_until_s if together else times["own_end_s"],
        held_until_s=held_until_s,
        preempted_s=times.get("preempted_s"),
        slots=slots * replicas,
        busy_slot_s=busy_slot_s,
        preemptions=preemptions,
    )


class _Served(NamedTuple):
    """What one server made of its requests.

    ``times`` are columns of `Outcome` by name. Where ``held_until_s`` is not among them, a slot is
    given back at its request's own end.
    """

    times: dict[str, Floats]
    busy_slot_s: float
    preemptions: int = 0


def _rows_by_replica(arrival_s: Floats, replicas: int) -> list[slice] | list[Ints]:
    """The rows that each replica serves, in order of arrival; none is left without a row."""
    served = range(min(replicas, len(arrival_s)))
    if bool((arrival_s[1:] >= arrival_s[:-1]).all()):
        return [slice(replica, None, replicas) for replica in served]
    order = np.argsort(arrival_s, kind="stable")
    return [order[replica::replicas] for replica in served]


def _edges(workload: Workload, bins: int) -> Floats:
    """The predictions at which one bin ends and the next begins, shape (bins - 1,).

    Bins hold equally many of the workload's requests, but equal predictions share one.
    """
    predicted = np.sort(_predicted(workload))
    return predicted[np.arange(1, bins) * len(predicted) // bins]


def _predicted(workload: Workload) -> Floats:
    if workload.predicted_tokens is not None:
        return workload.predicted_tokens
    return workload.output_tokens.astype(np.float64)


def _serve(
    workload: Workload,
    rows: Rows,
    policy: Policy,
    cost: Cost,
    slots: int,
    memory: Memory | None,
    edges: Floats,
    on_progress: Callable[[int], None],
) -> _Served:
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
) -> _Served:
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
    return _Served(times, _busy_per_token_s(tokens, cost))


def _refill_between_iterations(
    workload: Workload,
    rows: Rows,
    policy: Continuous,
    cost: Step,
    slots: int,
    memory: Memory | None,
    on_progress: Callable[[int], None],
) -> _Served:
    """Continuous batching where the server works in iterations."""
    from slotwise_sim.kernels import iterations as kernel

    requests = _records(workload, rows, REFILLING)
    reserve, capacity, block = kernel.RESERVED, 0, 1  # nothing is reserved: memory never limits
    if memory is not None and memory.reserve == "paged":
        reserve, block = kernel.PAGED, memory.block_tokens
        capacity = memory.kv_tokens // block
    elif memory is not None:
        capacity = memory.kv_tokens
        requests["reserved"] = reserved_tokens(workload)[rows]
    preemptions = watched(
        lambda control: kernel.continuous_iterations(
            requests,
            by_batch(cost, slots),
            slots,
            control,
            prefill=kernel.MIXED if policy.prefill == "mixed" else kernel.SEPARATE,
            max_batched=policy.max_batched_tokens or kernel.ENDLESS,
            reserve=reserve,
            capacity=capacity,
            block=block,
        ),
        len(requests),
        on_progress,
    )
    names = ["start_s", "first_token_s", "own_end_s"]
    busy_slot_s = float((requests["own_end_s"] - requests["start_s"]).sum())
    if reserve == kernel.PAGED:
        names.append("preempted_s")
        busy_slot_s -= float(requests["preempted_s"].sum())
    return _Served({name: requests[name] for name in names}, busy_slot_s, preemptions)


def _serve_batches(
    workload: Workload,
    rows: Rows,
    policy: BatchPolicy,
    cost: Cost,
    slots: int,
    edges: Floats,
    on_progress: Callable[[int], None],
) -> _Served:
    """Batches that start together and give their slots back together; under either cost."""
    from slotwise_sim.kernels import batches as kernel

    requests = _records(workload, rows, BATCHED)
    # Static batching never stops waiting. One bin needs no prediction.
    max_delay_ms = math.inf if isinstance(policy, Static) else policy.max_delay_ms
    if len(edges):
        bin_of = np.searchsorted(edges, _predicted(workload)[rows], side="right")
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
    names = ("start_s", "first_token_s", "own_end_s", "held_until_s")
    busy_slot_s = (
        _busy_per_token_s(requests["output"], cost)
        if isinstance(cost, PerToken)
        else float((requests["own_end_s"] - requests["start_s"]).sum())
    )
    return _Served({name: requests[name] for name in names}, busy_slot_s)


def _busy_per_token_s(tokens: NDArray[np.integer], cost: PerToken) -> float:
    return float(int(tokens.sum(dtype=np.int64)) * cost.ms_per_token / 1000)


def _records(workload: Workload, rows: Rows, kind: np.dtype[np.void]) -> Records:
    """Some of the requests as the loops take them."""
    arrival_s = workload.arrival_s[rows]
    requests = np.zeros(len(arrival_s), kind)
    requests["arrival_s"] = arrival_s
    requests["prompt"] = workload.prompt_tokens[rows]
    requests["output"] = workload.output_tokens[rows]
    if workload.cached_tokens is not None:
        requests["cached"] = workload.cached_tokens[rows]
    return requests
