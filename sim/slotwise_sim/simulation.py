"""Replays a workload under a policy: who starts when, and when each is done.

Static, dynamic and continuous batching run the same requests on the same slots at the same cost.
Only the order of filling differs. Serial serving is any of them with one slot.

A new policy is one more case in `_fill`; a new cost model is one more case in `_serve`.
"""

from __future__ import annotations

import math
from typing import NamedTuple, assert_never

import numpy as np

from slotwise_sim.outcome import Outcome
from slotwise_sim.policies import Continuous, Cost, Dynamic, PerToken, Policy, Static
from slotwise_sim.workload import Floats, Ints, Workload


class _Served(NamedTuple):
    """The times of some requests in order of arrival; see `Outcome`."""

    start_s: Floats
    first_token_s: Floats
    own_end_s: Floats
    end_s: Floats
    held_until_s: Floats
    busy_slot_s: float


def simulate(
    workload: Workload, policy: Policy, cost: Cost, *, slots: int, replicas: int = 1
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

    Returns:
        The times of every request, in the order of the workload.

    Raises:
        ValueError: ``slots`` or ``replicas`` is below 1.
    """
    if slots < 1:
        raise ValueError(f"slots must be >= 1, got {slots}")
    if replicas < 1:
        raise ValueError(f"replicas must be >= 1, got {replicas}")
    columns = np.empty((5, len(workload)))
    busy_slot_s = 0.0
    for rows in _rows_by_replica(workload.arrival_s, replicas):
        served = _serve(workload.arrival_s[rows], workload.output_tokens[rows], policy, cost, slots)
        columns[:, rows] = served[:5]
        busy_slot_s += served.busy_slot_s
    start_s, first_token_s, own_end_s, end_s, held_until_s = columns
    return Outcome(
        arrival_s=workload.arrival_s,
        output_tokens=workload.output_tokens,
        start_s=start_s,
        first_token_s=first_token_s,
        own_end_s=own_end_s,
        end_s=end_s,
        held_until_s=held_until_s,
        slots=slots * replicas,
        busy_slot_s=busy_slot_s,
    )


def _rows_by_replica(arrival_s: Floats, replicas: int) -> list[slice] | list[Ints]:
    """The rows that each replica serves, in order of arrival; none is left without a row."""
    served = range(min(replicas, len(arrival_s)))
    if bool((arrival_s[1:] >= arrival_s[:-1]).all()):
        return [slice(replica, None, replicas) for replica in served]
    order = np.argsort(arrival_s, kind="stable")
    return [order[replica::replicas] for replica in served]


def _serve(
    arrival_s: Floats, output_tokens: Ints, policy: Policy, cost: Cost, slots: int
) -> _Served:
    """One server's requests, in order of arrival."""
    match cost:
        case PerToken(ms_per_token=ms_per_token):
            return _serve_per_token(arrival_s, output_tokens, policy, ms_per_token, slots)
        case _:
            assert_never(cost)


def _serve_per_token(
    arrival_s: Floats, output_tokens: Ints, policy: Policy, ms_per_token: float, slots: int
) -> _Served:
    """Requests that take the same time in a slot whatever runs beside them."""
    service_s: Floats = np.multiply(output_tokens, ms_per_token, dtype=np.float64)
    service_s /= 1000
    start_s, held_until_s = _fill(arrival_s, service_s, policy, slots)
    own_end_s = start_s + service_s
    together = not isinstance(policy, Continuous) and policy.release == "batch"
    return _Served(
        start_s=start_s,
        first_token_s=start_s + ms_per_token / 1000,
        own_end_s=own_end_s,
        end_s=held_until_s if together else own_end_s,
        held_until_s=held_until_s,
        busy_slot_s=float(int(output_tokens.sum()) * ms_per_token / 1000),
    )


def _fill(
    arrival_s: Floats, service_s: Floats, policy: Policy, slots: int
) -> tuple[Floats, Floats]:
    """Start of each request and the instant its slot is free again, by the policy's loop."""
    from slotwise_sim import kernels  # loads Numba, which many callers of this package never need

    # The loops are compiled for one kind of array: contiguous and writeable.
    arrival_s = np.require(arrival_s, np.float64, ["C", "W"])
    # Further slots would stay empty; the one beyond n keeps a batch of all requests a short batch.
    slots = min(slots, len(arrival_s) + 1)
    start_s, held_until_s = np.empty(len(arrival_s)), np.empty(len(arrival_s))
    match policy:
        case Continuous():
            kernels.continuous_slots(arrival_s, service_s, slots, start_s, held_until_s)
        case Dynamic(max_delay_ms=max_delay_ms) if max_delay_ms < math.inf:
            kernels.dynamic_batches(
                arrival_s, service_s, slots, max_delay_ms / 1000, start_s, held_until_s
            )
        case Static() | Dynamic():
            kernels.static_batches(arrival_s, service_s, slots, start_s, held_until_s)
        case _:
            assert_never(policy)
    return start_s, held_until_s
