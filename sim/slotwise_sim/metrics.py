"""The figures of an outcome, and its slots for a picture."""

from __future__ import annotations

import heapq
from typing import TypedDict

import numpy as np

from slotwise_sim.outcome import Outcome
from slotwise_sim.workload import Floats, Ints


class Distribution(TypedDict):
    """A time over all requests, in seconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Figures(TypedDict):
    """What one policy did; the names are those of the machine-readable results."""

    latency_s: Distribution
    queue_delay_s: Distribution
    ttft_s: Distribution
    tpot_s: Distribution | None
    makespan_s: float
    requests_per_s: float
    output_tokens_per_s: float
    busy_slot_s: float
    idle_share: float
    preemptions: int


def figures(outcome: Outcome) -> Figures:
    """The figures that are reported for one policy.

    Times run from the arrival: ``latency_s`` to the delivered answer, ``queue_delay_s`` to the
    start, ``ttft_s`` to the first token. ``tpot_s`` is (end - first token) / (output tokens - 1)
    over the requests of more than one token. ``makespan_s`` counts from the origin, not from the
    first arrival. ``idle_share`` is 1 - busy slot-seconds / (slots * makespan).

    Args:
        outcome: What `simulate` returned.

    Returns:
        Plain numbers, ready for JSON; ``tpot_s`` is None where every request has one token.

    Raises:
        ValueError: Nothing took any time, as where an iteration that only prefills is free.
    """
    makespan_s = float(outcome.end_s.max())
    if makespan_s == 0:
        raise ValueError("no request took any time")
    several = outcome.output_tokens > 1
    tpot_s = (outcome.end_s - outcome.first_token_s)[several] / (outcome.output_tokens[several] - 1)
    return {
        "latency_s": distribution(outcome.end_s - outcome.arrival_s),
        "queue_delay_s": distribution(outcome.start_s - outcome.arrival_s),
        "ttft_s": distribution(outcome.first_token_s - outcome.arrival_s),
        "tpot_s": distribution(tpot_s) if len(tpot_s) else None,
        "makespan_s": makespan_s,
        "requests_per_s": len(outcome) / makespan_s,
        "output_tokens_per_s": int(outcome.output_tokens.sum()) / makespan_s,
        "busy_slot_s": outcome.busy_slot_s,
        # never below zero by rounding
        "idle_share": max(0.0, 1 - outcome.busy_slot_s / (outcome.slots * makespan_s)),
        "preemptions": outcome.preemptions,
    }


def distribution(values: Floats) -> Distribution:
    """Mean, percentiles and maximum of the values, shape (n,), n >= 1.

    Percentiles are observed values, never interpolated: see `percentile_index`.
    """
    n = len(values)
    index = {percent: percentile_index(percent, n) for percent in (50, 90, 95, 99, 100)}
    ranked = np.partition(values, sorted(set(index.values())))
    return {
        "mean": float(values.mean()),
        "p50": float(ranked[index[50]]),
        "p90": float(ranked[index[90]]),
        "p95": float(ranked[index[95]]),
        "p99": float(ranked[index[99]]),
        "max": float(ranked[index[100]]),
    }


def percentile(values: Floats, percent: int) -> float:
    """The observed value at `percentile_index`, never an interpolated one; shape (n,), n >= 1."""
    index = percentile_index(percent, len(values))
    return float(np.partition(values, index)[index])


def percentile_index(percent: int, n: int) -> int:
    """Position, from 0, of a percentile among n ascending values: ceil(percent/100 * (n - 1)).

    In whole numbers, because in floats 0.95 * 20 may pass 19 and be rounded up to 20.
    """
    return -(-percent * (n - 1) // 100)


def slot_of(start_s: Floats, held_until_s: Floats) -> Ints:
    """Gives every request a slot of its own while it holds one, so that slots can be drawn.

    Greedy colouring of intervals: in order of start, each takes the lowest slot that is free.
    This uses as few slots as any assignment can: the most requests ever held at once. A slot
    given back at an instant is free to a request that starts at that instant.

    Args:
        start_s: Seconds, shape (n,), in any order.
        held_until_s: Seconds, shape (n,), later than ``start_s``.

    Returns:
        Slots from 0, shape (n,).
    """
    slots = np.empty(len(start_s), dtype=np.int64)
    held: list[tuple[float, int]] = []
    given_back: list[int] = []
    for request in np.argsort(start_s, kind="stable").tolist():
        while held and held[0][0] <= start_s[request]:
            heapq.heappush(given_back, heapq.heappop(held)[1])
        slot = heapq.heappop(given_back) if given_back else len(held)
        slots[request] = slot
        heapq.heappush(held, (float(held_until_s[request]), slot))
    return slots
