"""The busiest hour, replayed in time order: who waits how long, and who is overloaded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim import Dynamic, PerToken, Workload, simulate
from slotwise_sim.lengths import in_order_gain
from slotwise_sim.metrics import percentile
from slotwise_sim.replicate import interval, resample, run_length
from slotwise_sim.workload import at_load
from slotwise_workflows.compare.server import (
    BATCH_AT_ONCE,
    Server,
    possible_servers,
    stated_server,
)
from slotwise_workflows.facts import Facts
from slotwise_workflows.measure.arrivals import busiest_window, within
from slotwise_workflows.result import Estimate

REPLICATIONS = 40
# Beyond this many simulated requests a replication more changes nothing that is shown.
REPLICATED_REQUESTS = 4_000_000
MOST_SERVERS = 1024
# The search for a load or a number of servers ends within one per cent.
SEARCH_STEPS = 12


@dataclass(frozen=True, slots=True)
class Load:
    """What the busiest hour does to both servers; only where times can be replayed.

    Ranges run over the assumed slots and times per token and over replications.

    Attributes:
        waiting: Fall of the mean latency from batch-at-once to continuous, as a share.
        utilisation: Offered load over what batch-at-once can sustain.
        latency_p95_s: By policy, at the stated slots and time per token.
        ttft_p95_s: By policy, likewise.
        adopt_from_load: Times today's load at which a capacity gain becomes worth having:
            batch-at-once is overloaded, or waiting falls by `waiting_adopt`.
        servers_for_objective: Continuous servers that meet the objective; None without one.
    """

    waiting: Estimate
    utilisation: Estimate
    latency_p95_s: dict[str, float]
    ttft_p95_s: dict[str, float]
    adopt_from_load: float
    servers_for_objective: int | None


@dataclass(frozen=True, slots=True)
class BusiestHour:
    """The requests of the busiest hour and what both servers make of them."""

    workload: Workload
    rate_per_s: float
    load: Load
    latency_ratio: Estimate


def busiest_hour(
    workload: Workload,
    facts: Facts,
    objectives: dict[str, float],
    waiting_adopt: float,
    rng: np.random.Generator,
) -> BusiestHour:
    """Replay the busiest hour on the stated server and on every corner of what is assumed.

    Args:
        workload: Requests with their arrivals.
        facts: What is known of the server.
        objectives: p95 objectives in seconds by name (`latency`, `ttft`).
        waiting_adopt: Fall of the mean latency that makes a capacity gain worth having.
        rng: For the resampled traffic.
    """
    window = busiest_window(workload)
    busy = within(workload, window)
    rate = len(busy) / window.span_s if window.span_s > 0 else math.inf
    server = stated_server(facts)
    utilisations = [_utilisation(busy, rate, corner) for corner in possible_servers(facts)]
    utilisation = _utilisation(busy, rate, server)
    ratios = _replicated_ratios(busy, server, rng)
    corners = [_latency_ratio(busy, corner) for corner in possible_servers(facts)]
    ratio = _latency_ratio(busy, server)
    lowest, highest = min(*ratios, ratio, *corners), max(*ratios, ratio, *corners)
    continuous = server.run(busy, "continuous")
    dynamic = server.run(busy, BATCH_AT_ONCE)
    outcomes = {BATCH_AT_ONCE: dynamic, "continuous": continuous}
    latency = {p: percentile(o.end_s - o.arrival_s, 95) for p, o in outcomes.items()}
    ttft = {p: percentile(o.first_token_s - o.arrival_s, 95) for p, o in outcomes.items()}
    return BusiestHour(
        workload=busy,
        rate_per_s=rate,
        load=Load(
            waiting=Estimate(estimate=1 - 1 / ratio, low=1 - 1 / lowest, high=1 - 1 / highest),
            utilisation=Estimate(
                estimate=utilisation,
                low=min(utilisation, *utilisations),
                high=max(utilisation, *utilisations),
            ),
            latency_p95_s=latency,
            ttft_p95_s=ttft,
            adopt_from_load=_adopt_from_load(busy, server, utilisation, waiting_adopt),
            servers_for_objective=_servers_for(busy, server, objectives),
        ),
        latency_ratio=Estimate(estimate=ratio, low=lowest, high=highest),
    )


def shared_batches(workload: Workload, facts: Facts, load: float) -> float:
    """Share of requests that share a batch at `load` times today's arrivals.

    Greedy batch-at-once at the slowest pace assumed, on one of the replicas; where their number is
    unknown, on one server that gets everything: no number of servers shares more.
    """
    order = np.argsort(workload.arrival_s, kind="stable")[:: facts.replicas.value or 1]
    one = Workload(
        workload.arrival_s[order] / load,
        workload.output_tokens[order],
        workload.prompt_tokens[order],
    )
    outcome = simulate(
        one, Dynamic(0.0), PerToken(facts.ms_per_token.high), slots=int(facts.slots.high)
    )
    _, sizes = np.unique(outcome.start_s, return_counts=True)
    return float(sizes[sizes > 1].sum()) / len(one)


def utilisation_by_policy(rate_per_s: float, capacity_per_s: dict[str, float]) -> dict[str, float]:
    """Offered load over what each policy can sustain."""
    return {policy: rate_per_s / capacity for policy, capacity in capacity_per_s.items()}


def _utilisation(busy: Workload, rate_per_s: float, server: Server) -> float:
    order = np.argsort(busy.arrival_s, kind="stable")
    gain = in_order_gain(busy.output_tokens[order], min(server.slots, len(busy)))
    service_s = float(busy.output_tokens.mean()) * server.ms_per_token / 1000
    return rate_per_s * service_s * gain / (server.slots * server.replicas)


def _latency_ratio(workload: Workload, server: Server) -> float:
    """Mean latency of batch-at-once over that of continuous batching."""
    batch = server.mean_latency_s(workload, BATCH_AT_ONCE)
    return batch / server.mean_latency_s(workload, "continuous")


def _replicated_ratios(
    busy: Workload, server: Server, rng: np.random.Generator
) -> tuple[float, float]:
    """The 95 % interval of the latency ratio over resampled traffic, paired between policies."""
    replications = max(10, min(REPLICATIONS, REPLICATED_REQUESTS // len(busy)))
    run = run_length(busy)
    return interval(
        [_latency_ratio(resample(busy, rng, run=run), server) for _ in range(replications)]
    )


def _adopt_from_load(
    busy: Workload, server: Server, utilisation: float, waiting_adopt: float
) -> float:
    """Times today's load at which a capacity gain becomes worth having."""

    def worth_having(load: float) -> bool:
        ratio = _latency_ratio(at_load(busy, load), server)
        return utilisation * load >= 1 or 1 - 1 / ratio >= waiting_adopt

    if worth_having(1.0):
        return 1.0
    low, high = 1.0, 1 / utilisation
    for _ in range(SEARCH_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if worth_having(middle) else (middle, high)
    return high


def _servers_for(busy: Workload, server: Server, objectives: dict[str, float]) -> int | None:
    """Fewest continuous servers that meet every objective; None without one or where none do."""
    if not objectives:
        return None

    def enough(replicas: int) -> bool:
        outcome = replace(server, replicas=replicas).run(busy, "continuous")
        reached = {
            "latency": outcome.end_s - outcome.arrival_s,
            "ttft": outcome.first_token_s - outcome.arrival_s,
        }
        return all(percentile(reached[name], 95) <= limit for name, limit in objectives.items())

    most = 1
    while not enough(most):
        most *= 2
        if most > MOST_SERVERS:
            return None
    least = most // 2 + 1
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle + 1, most)
    return most
