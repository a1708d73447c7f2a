"""One point of a sweep: the same traffic under every policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slotwise_sim import simulate
from slotwise_sim.lengths import in_order_gain
from slotwise_sim.metrics import Figures, figures
from slotwise_sim.policies import Continuous, Cost, Policy
from slotwise_sim.replicate import resample
from slotwise_sim.workload import Workload, at_load
from slotwise_workflows.compare.capacity import in_order_of_service
from slotwise_workflows.sweep.points import Point


@dataclass(frozen=True, slots=True)
class Scenario:
    """What all points of a sweep share; it goes to every worker once.

    Attributes:
        workload: The traffic at load 1.
        cost: What a token costs; the same for all policies.
        replicas: Servers behind a round-robin balancer, each with the point's slots.
        run: Requests drawn together when the traffic is resampled, see
            `slotwise_sim.replicate.run_length`; found once, since it is the workload's.
    """

    workload: Workload
    cost: Cost
    replicas: int
    run: int


@dataclass(frozen=True, slots=True)
class Row:
    """One policy at one point; the columns of ``sweep.parquet``, in this order.

    Attributes:
        slots: Requests one server runs at once.
        load: Times the workload's own arrival rate.
        policy: The policy's name.
        replication: Which resampling of the traffic, from 0.
        seed: Of that resampling.
        requests: How many requests were replayed.
        latency_mean_s: Mean time from arrival to the whole answer.
        latency_p95_s: Its 95th percentile.
        queue_delay_mean_s: Mean time from arrival to start.
        ttft_p95_s: 95th percentile of the time from arrival to the first token.
        idle_share: Slot-time without a token being made, of all slot-time.
        requests_per_s: Requests completed per second, over the whole replay.
        output_tokens_per_s: Tokens likewise.
        makespan_s: When the last request ended.
        utilisation: Requests offered per second over what this policy can sustain on these slots;
            above 1 the server is overloaded, and its times grow with the length of the replay.
            None where all requests arrive at once.
        gain: What this policy can sustain over what a batch-at-once server can, same slots and
            cost; 1 for the batch-at-once policies. None with fewer requests than slots.
        latency_ratio: The baseline's mean latency over this one's; the baseline is the first
            batch-at-once policy, or the first policy where there is none.
    """

    slots: int
    load: float
    policy: str
    replication: int
    seed: int
    requests: int
    latency_mean_s: float
    latency_p95_s: float
    queue_delay_mean_s: float
    ttft_p95_s: float
    idle_share: float
    requests_per_s: float
    output_tokens_per_s: float
    makespan_s: float
    utilisation: float | None
    gain: float | None
    latency_ratio: float


def run_point(scenario: Scenario, point: Point) -> tuple[Row, ...]:
    """Resamples the traffic, sets its load, and replays it under every policy of the point.

    Args:
        scenario: The traffic at load 1, and what all points share.
        point: Slots, load, policies and the seed of the resampling.

    Returns:
        One row a policy, in the point's order.
    """
    rng = np.random.default_rng(point.seed)
    traffic = at_load(resample(scenario.workload, rng, run=scenario.run), point.load)
    cost, replicas = scenario.cost, scenario.replicas
    capacity_gain = _capacity_gain(traffic, point.slots, replicas)
    busy = _busy_share(traffic, cost, point.slots * replicas)
    measured = {
        name: figures(simulate(traffic, policy, cost, slots=point.slots, replicas=replicas))
        for name, policy in point.policies
    }
    base_latency_s = measured[baseline(point.policies)]["latency_s"]["mean"]
    return tuple(
        _row(
            point,
            name,
            len(traffic),
            measured[name],
            utilisation=_utilisation(policy, busy, capacity_gain),
            gain=capacity_gain if isinstance(policy, Continuous) else _one(capacity_gain),
            base_latency_s=base_latency_s,
        )
        for name, policy in point.policies
    )


def run_points(scenario: Scenario, batch: Sequence[Point]) -> list[Row]:
    """Several points, as one task of a worker."""
    return [row for point in batch for row in run_point(scenario, point)]


def _row(
    point: Point,
    policy: str,
    requests: int,
    measured: Figures,
    *,
    utilisation: float | None,
    gain: float | None,
    base_latency_s: float,
) -> Row:
    latency = measured["latency_s"]
    return Row(
        slots=point.slots,
        load=point.load,
        policy=policy,
        replication=point.replication,
        seed=point.seed,
        requests=requests,
        latency_mean_s=latency["mean"],
        latency_p95_s=latency["p95"],
        queue_delay_mean_s=measured["queue_delay_s"]["mean"],
        ttft_p95_s=measured["ttft_s"]["p95"],
        idle_share=measured["idle_share"],
        requests_per_s=measured["requests_per_s"],
        output_tokens_per_s=measured["output_tokens_per_s"],
        makespan_s=measured["makespan_s"],
        utilisation=utilisation,
        gain=gain,
        latency_ratio=base_latency_s / latency["mean"],
    )


def baseline(policies: Sequence[tuple[str, Policy]]) -> str:
    """What the others are compared with: the first batch-at-once policy, else the first."""
    batching = [name for name, policy in policies if not isinstance(policy, Continuous)]
    return (batching or [policies[0][0]])[0]


def _capacity_gain(workload: Workload, slots: int, replicas: int) -> float | None:
    """Sustained requests per second, continuous over batch-at-once, in order of arrival.

    Every replica sees every ``replicas``-th request and forms its batches of those.
    """
    if len(workload) < slots * replicas:
        return None
    tokens = workload.output_tokens[np.argsort(workload.arrival_s, kind="stable")]
    return in_order_gain(in_order_of_service(tokens, replicas), slots)


def _busy_share(workload: Workload, cost: Cost, slots: int) -> float | None:
    """Slot-seconds asked for per slot-second there is; None without a span of arrivals.

    n requests span n - 1 gaps, so the rate is (n - 1) over the span.
    """
    span_s = float(np.ptp(workload.arrival_s))
    if span_s == 0:
        return None
    rate_per_s = (len(workload) - 1) / span_s
    return rate_per_s * float(workload.output_tokens.mean()) * cost.ms_per_token / 1000 / slots


def _utilisation(policy: Policy, busy_share: float | None, gain: float | None) -> float | None:
    """Batch-at-once spends ``gain`` times the slot-time on the same requests."""
    if busy_share is None or isinstance(policy, Continuous):
        return busy_share
    return None if gain is None else busy_share * gain


def _one(gain: float | None) -> float | None:
    return None if gain is None else 1.0
