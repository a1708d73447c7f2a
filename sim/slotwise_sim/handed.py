"""What the compiled loops are handed of a workload, and what comes back from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotwise_sim.costs import Cost, PerToken
from slotwise_sim.kernels.records import Records
from slotwise_sim.memory import Memory, reserved_tokens
from slotwise_sim.policies import Binned, Continuous, Policy
from slotwise_sim.workload import Floats, Ints, Workload

Rows = slice | Ints


class Served(NamedTuple):
    """What servers made of their requests.

    ``times`` are columns of `Outcome` by name. Where ``held_until_s`` is not among them, a slot is
    given back at its request's own end; where ``arrival_s`` is not, it is the workload's.
    """

    times: dict[str, Floats]
    busy_slot_s: float
    preemptions: int = 0


def bin_edges(workload: Workload, policy: Policy) -> Floats:
    """The predictions at which one bin ends and the next begins, shape (bins - 1,).

    Bins hold equally many of the workload's requests, but equal predictions share one.
    """
    if not isinstance(policy, Binned):
        return np.empty(0)
    predicted = np.sort(_predicted(workload))
    return predicted[np.arange(1, policy.bins) * len(predicted) // policy.bins]


def bins_of(workload: Workload, rows: Rows, edges: Floats) -> Ints:
    """The bin of some of the requests, by number."""
    return np.searchsorted(edges, _predicted(workload)[rows], side="right")


def _predicted(workload: Workload) -> Floats:
    if workload.predicted_tokens is not None:
        return workload.predicted_tokens
    return workload.output_tokens.astype(np.float64)


def records(
    workload: Workload, rows: Rows, kind: np.dtype[np.void], memory: Memory | None = None
) -> Records:
    """Some of the requests as the loops take them."""
    arrival_s = workload.arrival_s[rows]
    requests = np.zeros(len(arrival_s), kind)
    requests["arrival_s"] = arrival_s
    requests["prompt"] = workload.prompt_tokens[rows]
    requests["output"] = workload.output_tokens[rows]
    if workload.cached_tokens is not None:
        requests["cached"] = workload.cached_tokens[rows]
    if memory is not None and memory.reserve == "max_tokens":
        requests["reserved"] = reserved_tokens(workload)[rows]
    return requests


def rules_of(policy: Continuous, memory: Memory | None) -> Records:
    """How a server that works in iterations admits and prefills."""
    from slotwise_sim.kernels import server as kernel

    reserve, capacity, block = kernel.RESERVED, 0, 1  # nothing is reserved: memory never limits
    if memory is not None and memory.reserve == "paged":
        reserve, block = kernel.PAGED, memory.block_tokens
        capacity = memory.kv_tokens // block
    elif memory is not None:
        capacity = memory.kv_tokens
    prefill = kernel.MIXED if policy.prefill == "mixed" else kernel.SEPARATE
    max_batched = policy.max_batched_tokens or kernel.ENDLESS
    return np.array([(prefill, max_batched, reserve, capacity, block)], kernel.RULES)


def served_in_slots(requests: Records, cost: PerToken) -> Served:
    """Of slots that are refilled one by one."""
    times = {name: requests[name] for name in ("start_s", "first_token_s", "own_end_s")}
    return Served(times, busy_per_token_s(requests["output"], cost))


def served_between_iterations(requests: Records, memory: Memory | None, preemptions: int) -> Served:
    """Of slots that are refilled between iterations."""
    names = ["start_s", "first_token_s", "own_end_s"]
    busy_slot_s = float((requests["own_end_s"] - requests["start_s"]).sum())
    if memory is not None and memory.reserve == "paged":
        names.append("preempted_s")
        busy_slot_s -= float(requests["preempted_s"].sum())
    return Served({name: requests[name] for name in names}, busy_slot_s, preemptions)


def served_in_batches(requests: Records, cost: Cost) -> Served:
    """Of batches, under either cost."""
    names = ("start_s", "first_token_s", "own_end_s", "held_until_s")
    busy_slot_s = (
        busy_per_token_s(requests["output"], cost)
        if isinstance(cost, PerToken)
        else float((requests["own_end_s"] - requests["start_s"]).sum())
    )
    return Served({name: requests[name] for name in names}, busy_slot_s)


def busy_per_token_s(tokens: NDArray[np.integer], cost: PerToken) -> float:
    """Slot-seconds that tokens take, whatever else runs."""
    return float(int(tokens.sum(dtype=np.int64)) * cost.ms_per_token / 1000)
