"""One point of a sweep: the same traffic under every policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slotwise_sim import (
    Binned,
    Continuous,
    Cost,
    Dynamic,
    Memory,
    PerToken,
    Policy,
    Static,
    Workload,
    simulate,
)
from slotwise_sim.metrics import Figures
from slotwise_sim.replicate import resample
from slotwise_sim.workload import all_at_once, at_load
from slotwise_workflows.compare.sustained import sustained_per_s
from slotwise_workflows.simulation import measure, with_predictions
from slotwise_workflows.sweep.points import Point


@dataclass(frozen=True, slots=True)
class Scenario:
    """What all points of a sweep share; it goes to every worker once.

    Attributes:
        workload: The traffic at load 1.
        cost: What tokens or iterations cost; the same for all policies.
        replicas: Servers behind a round-robin balancer, each with the point's slots.
        run: Requests drawn together when the traffic is resampled, see
            `slotwise_sim.replicate.run_length`; found once, since it is the workload's.
        memory: KV memory of each server; None never limits.
        prediction_errors: How far the lengths that a binned policy goes by are off, by its name.
    """

    workload: Workload
    cost: Cost
    replicas: int
    run: int
    memory: Memory | None = None
    prediction_errors: Mapping[str, float] = field(default_factory=dict)


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
        gain: What this policy can sustain over what batches in order of arrival can, same slots
            and cost: the first static or dynamic policy. None with fewer requests than slots.
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
    seen = {
        name: with_predictions(traffic, scenario.prediction_errors.get(name, 0.0), point.seed)
        if isinstance(policy, Binned)
        else traffic
        for name, policy in point.policies
    }
    measured = {
        name: measure(
            simulate(
                seen[name],
                policy,
                scenario.cost,
                slots=point.slots,
                replicas=scenario.replicas,
                memory=scenario.memory,
            )
        )
        for name, policy in point.policies
    }
    sustained = {
        name: _sustained_per_s(seen[name], policy, scenario, point.slots)
        for name, policy in point.policies
    }
    in_batches = [name for name, p in point.policies if isinstance(p, Static | Dynamic)]
    reference_per_s = (
        sustained[in_batches[0]]
        if in_batches
        else _sustained_per_s(traffic, Static(), scenario, point.slots)
    )
    offered_per_s = _offered_per_s(traffic)
    base_latency_s = measured[baseline(point.policies)]["latency_s"]["mean"]
    return tuple(
        _row(
            point,
            name,
            len(traffic),
            measured[name],
            utilisation=_ratio(offered_per_s, sustained[name]),
            gain=_ratio(sustained[name], reference_per_s),
            base_latency_s=base_latency_s,
        )
        for name, _ in point.policies
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


def _sustained_per_s(
    traffic: Workload, policy: Policy, scenario: Scenario, slots: int
) -> float | None:
    """Requests per second that a policy serves while work always waits, all replicas together.

    Returns:
        None where there are fewer requests than slots, unless slots / service time needs none.
    """
    needs_none = isinstance(policy, Continuous) and isinstance(scenario.cost, PerToken)
    if len(traffic) < slots * scenario.replicas and not needs_none:
        return None
    return sustained_per_s(
        all_at_once(traffic),
        policy,
        scenario.cost,
        slots=slots,
        replicas=scenario.replicas,
        memory=scenario.memory,
    )


def _offered_per_s(traffic: Workload) -> float | None:
    """Requests that arrive per second; None without a span of arrivals.

    n requests span n - 1 gaps, so the rate is (n - 1) over the span.
    """
    span_s = float(np.ptp(traffic.arrival_s))
    return None if span_s == 0 else (len(traffic) - 1) / span_s


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or whole is None else part / whole
