"""The busiest hour, replayed in time order: who waits how long, and who is overloaded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim import Dynamic, PerToken, Workload, simulate
from slotwise_sim.metrics import Figures, figures
from slotwise_sim.policies import fills_batches
from slotwise_sim.replicate import interval, replicate
from slotwise_sim.workload import at_load, of_one_replica
from slotwise_workflows.compare.capacity import capacity_per_s
from slotwise_workflows.compare.enough import batches_of, edge, fewest_servers, meets
from slotwise_workflows.compare.server import (
    BATCH_AT_ONCE,
    COMPARED,
    Server,
    possible_servers,
)
from slotwise_workflows.facts import Facts
from slotwise_workflows.measure.arrivals import busiest_window, rate_per_s, within
from slotwise_workflows.record import Estimate

REPLICATIONS = 40
# Beyond this many simulated requests a replication more changes nothing that is shown.
REPLICATED_REQUESTS = 4_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """The busiest hour and what each policy makes of it; only where times can be replayed.

    Ranges run over the assumed slots and times per token and over replications. Everything else
    stands at the stated setting.

    Attributes:
        requests: The requests of that hour; of a shorter log, all.
        rate_per_s: How many arrive in a second.
        waiting: Fall of the mean latency from batch-at-once to continuous, as a share.
        latency_ratio: The same as mean latency of batch-at-once over that of continuous.
        replications: Figures at the stated server with their spread over resampled traffic, paired
            between policies: ``makespan_ratio``, and ``idle_share`` and ``latency_p95_s`` by policy
            as ``idle_share.dynamic``.
        overload: Offered load over what batch-at-once can sustain.
        capacity_per_s: Requests per second each policy can sustain, all replicas together.
        latency_mean_s: By policy.
        latency_p95_s: By policy.
        ttft_p95_s: By policy.
        adopt_from_load: Times today's load at which a capacity gain becomes worth having:
            batch-at-once is overloaded, or waiting falls by `waiting_adopt`.
        servers_needed: Fewest servers that carry the load and meet every objective, by policy;
            None where no number does.
    """

    requests: Workload
    rate_per_s: float
    waiting: Estimate
    latency_ratio: Estimate
    replications: dict[str, Estimate]
    overload: Estimate
    capacity_per_s: dict[str, float]
    latency_mean_s: dict[str, float]
    latency_p95_s: dict[str, float]
    ttft_p95_s: dict[str, float]
    adopt_from_load: float
    servers_needed: dict[str, int | None]


def busiest_hour(
    workload: Workload,
    server: Server,
    facts: Facts,
    gains: Mapping[int, Estimate],
    objectives: dict[str, float],
    waiting_adopt: float,
    rng: np.random.Generator,
) -> Load:
    """Replays the busiest hour on the stated server and on every corner of what is assumed.

    Args:
        workload: Requests whose arrivals span some time.
        server: The stated setting.
        facts: What is assumed of it.
        gains: Capacity gain at the slots assumed.
        objectives: p95 objectives in seconds by name (`latency`, `ttft`).
        waiting_adopt: Fall of the mean latency that makes a capacity gain worth having.
        rng: For the resampled traffic.
    """
    window = busiest_window(workload)
    busy = within(workload, window)
    rate = rate_per_s(len(busy), window)

    def sustainable(at: Server) -> dict[str, float]:
        return capacity_per_s(busy, at, gains[at.slots].estimate)

    capacity = sustainable(server)
    corners = list(possible_servers(server, facts))
    overload = rate / capacity[BATCH_AT_ONCE]
    replayed = {policy: figures(server.run(busy, policy)) for policy in COMPARED}
    ratio = _ratio(replayed)
    drawn = _replications(busy, server, rng)
    at_corners = [{policy: figures(at.run(busy, policy)) for policy in COMPARED} for at in corners]
    ratios = _range(
        ratio,
        [*interval([_ratio(run) for run in drawn]), *(_ratio(run) for run in at_corners)],
    )
    return Load(
        requests=busy,
        rate_per_s=rate,
        waiting=Estimate(estimate=1 - 1 / ratio, low=1 - 1 / ratios.low, high=1 - 1 / ratios.high),
        latency_ratio=ratios,
        replications=_spread(replayed, drawn, at_corners),
        overload=_range(overload, [rate / sustainable(at)[BATCH_AT_ONCE] for at in corners]),
        capacity_per_s=capacity,
        latency_mean_s={policy: own["latency_s"]["mean"] for policy, own in replayed.items()},
        latency_p95_s={policy: own["latency_s"]["p95"] for policy, own in replayed.items()},
        ttft_p95_s={policy: own["ttft_s"]["p95"] for policy, own in replayed.items()},
        adopt_from_load=_adopt_from_load(busy, server, overload, waiting_adopt),
        servers_needed={
            policy: _servers_needed(
                busy, server, policy, rate * server.replicas / capacity[policy], objectives
            )
            for policy in COMPARED
        },
    )


def _range(estimate: float, others: Sequence[float]) -> Estimate:
    return Estimate(estimate=estimate, low=min(estimate, *others), high=max(estimate, *others))


def shared_batches(workload: Workload, facts: Facts, load: float) -> float:
    """Share of requests that share a batch at `load` times today's arrivals.

    Greedy batch-at-once at the step cost told or the slowest pace assumed, on one of the replicas;
    where their number is unknown, on one server that gets everything: no number of servers shares
    more.
    """
    one = at_load(of_one_replica(workload, facts.replicas.value or 1), load)
    cost = PerToken(facts.ms_per_token.high) if facts.cost is None else facts.cost.cost
    outcome = simulate(one, Dynamic(0.0), cost, slots=int(facts.slots.high))
    _, sizes = np.unique(outcome.start_s, return_counts=True)
    return float(sizes[sizes > 1].sum()) / len(one)


def _latency_ratio(workload: Workload, server: Server) -> float:
    """Mean latency of batch-at-once over that of continuous batching."""
    batch = server.mean_latency_s(workload, BATCH_AT_ONCE)
    return batch / server.mean_latency_s(workload, "continuous")


def _replications(
    busy: Workload, server: Server, rng: np.random.Generator
) -> list[dict[str, Figures]]:
    """The busiest hour had it come again: resampled traffic, the same under both policies."""
    return replicate(
        busy,
        {policy: server.policies()[policy] for policy in COMPARED},
        server.cost,
        slots=server.slots,
        replicas=server.replicas,
        balancer=server.balancer,
        memory=server.memory,
        rng=rng,
        replications=max(10, min(REPLICATIONS, REPLICATED_REQUESTS // len(busy))),
    )


def _ratio(run: Mapping[str, Figures]) -> float:
    """Mean latency of batch-at-once over that of continuous batching."""
    return run[BATCH_AT_ONCE]["latency_s"]["mean"] / run["continuous"]["latency_s"]["mean"]


def _spread(
    replayed: Mapping[str, Figures],
    drawn: Sequence[Mapping[str, Figures]],
    at_corners: Sequence[Mapping[str, Figures]],
) -> dict[str, Estimate]:
    """The replay's figures, with the middle 95 % of the replications' and those of the corners."""
    again, corners = ([_shown(run) for run in runs] for runs in (drawn, at_corners))
    return {
        name: _range(
            value, [*interval([run[name] for run in again]), *(run[name] for run in corners)]
        )
        for name, value in _shown(replayed).items()
    }


def _shown(run: Mapping[str, Figures]) -> dict[str, float]:
    makespan = {policy: run[policy]["makespan_s"] for policy in COMPARED}
    return {
        "makespan_ratio": makespan[BATCH_AT_ONCE] / makespan["continuous"],
        **{f"idle_share.{policy}": run[policy]["idle_share"] for policy in COMPARED},
        **{f"latency_p95_s.{policy}": run[policy]["latency_s"]["p95"] for policy in COMPARED},
    }


def _adopt_from_load(
    busy: Workload, server: Server, overload: float, waiting_adopt: float
) -> float:
    """Times today's load at which a capacity gain becomes worth having."""

    def worth_having(load: float) -> bool:
        ratio = _latency_ratio(at_load(busy, load), server)
        return overload * load >= 1 or 1 - 1 / ratio >= waiting_adopt

    if worth_having(1.0):
        return 1.0
    return edge(worth_having, 1 / overload, 1.0)


def _servers_needed(
    busy: Workload, server: Server, policy: str, offered: float, objectives: dict[str, float]
) -> int | None:
    """Fewest servers that carry the load and meet every objective; None where none do.

    Args:
        busy: The requests of the busiest hour.
        server: One of the servers.
        policy: How they batch.
        offered: The load in servers: what one that is busy all the time can carry is 1.
        objectives: p95 objectives in seconds by name.
    """

    def enough(replicas: int) -> bool:
        return meets(replace(server, replicas=replicas).run(busy, policy), objectives)

    carrying = math.floor(offered) + 1
    fills = fills_batches(server.policies()[policy])
    return fewest_servers(enough, carrying, batches_of(len(busy), server.slots), closely=fills)
