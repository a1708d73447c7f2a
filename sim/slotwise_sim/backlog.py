"""How long a server takes for its requests when more of them always wait, under any cost.

At a fixed time per token that follows from the lengths alone (`lengths`). Under a step cost it
depends on what runs beside a request, so the requests are simulated, all of them waiting. Begin and
end of such a run tell nothing of a server that never stops: the record is closed to a ring, and
what is counted is a whole turn in the middle of a longer run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slotwise_sim.costs import Cost
from slotwise_sim.lengths import gain_interval
from slotwise_sim.memory import Memory
from slotwise_sim.policies import Policy
from slotwise_sim.simulation import simulate
from slotwise_sim.workload import Floats, Workload, all_at_once, rows_of

# Before and after the turn that is counted, so many requests a slot, or another turn.
_AROUND = 16
# Where the first batch starts is an accident: of short records, so many requests are replayed in
# all, each time with the boundaries elsewhere.
_REPLAYED = 50_000
# What a request takes depends on the batches before and after its own.
_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class Backlog:
    """What each request takes of a server that always has work, in seconds, shape (n,).

    Attributes:
        server_s: Its share of the server's time; requests that run at once share an instant
            equally, so that the sum is the time that all of them take.
        busy_s: From its start to its own last token, less the time preempted.
        slots: Of the server.
    """

    server_s: Floats
    busy_s: Floats
    slots: int

    @property
    def per_s(self) -> float:
        """Requests per second that the server sustains."""
        return float(1 / self.server_s.mean())


def backlog(
    workload: Workload,
    policy: Policy,
    cost: Cost,
    *,
    slots: int,
    memory: Memory | None = None,
) -> Backlog:
    """Serves the requests in order of arrival on one server, all of them waiting.

    Args:
        workload: The requests; n of them.
        policy: The order of filling.
        cost: How long tokens take.
        slots: Requests the server can run at once.
        memory: KV memory, as in `simulate`.

    Returns:
        What each request takes, in order of arrival.

    Raises:
        ValueError: As `simulate`.
    """
    ring, n = all_at_once(workload), len(workload)
    around = min(n, _AROUND * slots)
    turns = min(slots, max(1, _REPLAYED // n))
    server_s, busy_s = np.zeros(n), np.zeros(n)
    for turn in range(turns):
        first = turn * slots // turns
        rows = np.arange(first - around, first + n + around) % n
        outcome = simulate(rows_of(ring, rows), policy, cost, slots=slots, memory=memory)
        counted = slice(around, around + n)
        shares = _shares(outcome.start_s, outcome.held_until_s)
        server_s[rows[counted]] += shares[counted] / turns
        busy = outcome.own_end_s - outcome.start_s
        if outcome.preempted_s is not None:
            busy -= outcome.preempted_s
        busy_s[rows[counted]] += busy[counted] / turns
    return Backlog(server_s, busy_s, slots)


def backlog_gain_interval(
    batch: Backlog, continuous: Backlog, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Requests per second that continuous batching sustains over batch-at-once, with its interval.

    As `lengths.in_order_gain_interval`, which it agrees with where an iteration always lasts the
    same; but it may be below 1, where refilling costs more than it saves. In seeded trials (200
    to 1000 requests, batches of 8, a step cost) the interval held the truth in 92 to 93 % where
    lengths were independent and long-tailed, in 95 to 97 % where they came in clusters of twenty.

    Args:
        batch: What the requests take in batches.
        continuous: What the same requests take when slots are refilled.
        rng: Source of randomness.

    Returns:
        ``(estimate, low, high)``, the interval holding 95 %.
    """
    return gain_interval(
        batch.server_s,
        continuous.server_s,
        batch.slots,
        rng,
        block=_TOGETHER * batch.slots,
        low=1 / batch.slots,
    )


def idle_share_interval(served: Backlog, rng: np.random.Generator) -> tuple[float, float, float]:
    """Share of the slots' time in which a slot computes nothing for a request of its own.

    Args:
        served: What requests take.
        rng: Source of randomness.

    Returns:
        ``(estimate, low, high)``, the interval holding 95 %.
    """
    slot_s = served.slots * served.server_s
    block = _TOGETHER * served.slots
    ratios = gain_interval(slot_s, served.busy_s, served.slots, rng, block=block, low=1.0)
    estimate, low, high = (max(0.0, 1 - 1 / ratio) for ratio in ratios)
    return estimate, low, high


def _shares(start_s: Floats, until_s: Floats) -> Floats:
    """The integral of 1 / (requests that run) over the time in which each runs, shape (n,)."""
    n = len(start_s)
    times = np.concatenate([start_s, until_s])
    order = np.argsort(times, kind="stable")
    running = np.cumsum(np.where(order < n, 1, -1))[:-1]
    elapsed = np.diff(times[order]) / np.maximum(running, 1)
    at = np.empty(2 * n)
    at[order] = np.concatenate([[0.0], np.cumsum(elapsed)])
    shares: Floats = at[n:] - at[:n]
    return shares
