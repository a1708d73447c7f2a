"""Paired replications: how far the figures would have moved had the same traffic come again.

One log is one draw. Each replication draws traffic of the same kind from it, in runs of consecutive
requests, and serves this traffic under every policy. Because the policies see the same requests,
the luck of the draw cancels in their ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from slotwise_sim.bootstrap import block_length, resampled_rows
from slotwise_sim.costs import Cost
from slotwise_sim.memory import Memory
from slotwise_sim.metrics import Figures, figures
from slotwise_sim.policies import Policy
from slotwise_sim.simulation import simulate
from slotwise_sim.users import Balancer
from slotwise_sim.workload import Workload, rows_of


def run_length(workload: Workload) -> int:
    """How many consecutive requests must be drawn together to keep what ties them.

    The longer of what `block_length` finds for the gaps between arrivals and for output lengths.
    """
    order = np.argsort(workload.arrival_s, kind="stable")
    gaps_s = np.diff(workload.arrival_s[order])
    lengths = workload.output_tokens[order].astype(np.float64)
    return max(block_length(gaps_s), block_length(lengths))


def resample(workload: Workload, rng: np.random.Generator, *, run: int | None = None) -> Workload:
    """Traffic of the same kind: as many requests, in runs of consecutive ones.

    What is drawn is a request with the gap before it, so that bursts of arrivals, clusters of long
    answers and what ties the two stay together within a run.

    Args:
        workload: The requests, in any order.
        rng: Source of randomness.
        run: Requests of a run; `run_length` by default.

    Returns:
        n requests in order of arrival, the first at the instant of the original's first.
    """
    n = len(workload)
    run = min(n, run_length(workload) if run is None else run)
    order = np.argsort(workload.arrival_s, kind="stable")
    arrival_s = workload.arrival_s[order]
    # On the ring the first request follows the last one; the gap between them was never seen.
    unseen_s = (arrival_s[-1] - arrival_s[0]) / max(n - 1, 1)
    gaps_s = np.diff(arrival_s, prepend=arrival_s[0] - unseen_s)
    drawn = resampled_rows(n, run, rng)
    elapsed_s = np.cumsum(gaps_s[drawn])
    rows = order[drawn]
    return replace(rows_of(workload, rows), arrival_s=arrival_s[0] + (elapsed_s - elapsed_s[0]))


def replicate(
    workload: Workload,
    policies: Mapping[str, Policy],
    cost: Cost,
    *,
    slots: int,
    replicas: int = 1,
    balancer: Balancer = "round_robin",
    memory: Memory | None = None,
    rng: np.random.Generator,
    replications: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Figures]]:
    """Serves resampled traffic under every policy.

    Every replication has a generator of its own, so the first k of a longer run are the run of k.

    Args:
        workload: The requests to draw from.
        policies: The policies by name.
        cost: How long tokens take.
        slots: Slots of one replica.
        replicas: Servers of ``slots`` slots each.
        balancer: Which of them a request is sent to.
        memory: KV memory of each server; None never limits.
        rng: Source of randomness.
        replications: How many, >= 0.
        on_progress: Called after each with (done, replications).

    Returns:
        One ``{name: figures}`` per replication.
    """
    run = run_length(workload)
    found = []
    for done, own_rng in enumerate(rng.spawn(replications), start=1):
        traffic = resample(workload, own_rng, run=run)
        found.append(
            {
                name: figures(
                    simulate(
                        traffic,
                        policy,
                        cost,
                        slots=slots,
                        replicas=replicas,
                        balancer=balancer,
                        memory=memory,
                    )
                )
                for name, policy in policies.items()
            }
        )
        if on_progress is not None:
            on_progress(done, replications)
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The middle 95 % of the values: their 2.5 % and 97.5 % points.

    Raises:
        ValueError: There is no value.
    """
    if len(values) == 0:
        raise ValueError("an interval needs at least one value")
    low, high = np.quantile(np.asarray(values, dtype=np.float64), [0.025, 0.975])
    return float(low), float(high)
