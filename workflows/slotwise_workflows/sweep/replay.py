"""One replay: a point's traffic under every policy, side by side."""

from __future__ import annotations

from slotwise_sim.metrics import Figures
from slotwise_workflows.outcome import measure
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.rows import Row
from slotwise_workflows.sweep.scenario import Bench, offered_per_s, ratio


def replay(bench: Bench, point: Point) -> tuple[Row, ...]:
    """Replays a point's traffic, as it arrives in its setting, under every policy.

    Args:
        bench: What all points share.
        point: Not a search.

    Returns:
        One row a policy, in the scenario's order.

    Raises:
        ConfigError: No request takes any time at this cost.
        ValueError: The lengths cannot be respread as the point asks.
    """
    scenario, setting = bench.scenario, point.setting
    requests = len(bench.traffic(point))
    users = (
        None
        if setting.users is None
        else scenario.thinking.users(setting.users, requests, point.seed)
    )
    figures = {
        name: measure(
            scenario.serve(
                name, bench.seen_by(name, point), setting, load=setting.load, users=users
            )
        )
        for name in scenario.policies
    }
    offered = None  # where users or a job replace the times, nothing is offered by itself
    own_per_s = offered_per_s(bench.traffic(point))
    if setting.load is not None and own_per_s is not None:
        offered = own_per_s * setting.load
    base_latency_s = figures[scenario.baseline()]["latency_s"]["mean"]
    return tuple(
        _row(
            point,
            name,
            requests,
            figures[name],
            utilisation=ratio(offered, bench.sustained_per_s(name, point)),
            gain=bench.gain(name, point),
            base_latency_s=base_latency_s,
        )
        for name in scenario.policies
    )


def _row(
    point: Point,
    policy: str,
    requests: int,
    figures: Figures,
    *,
    utilisation: float | None,
    gain: float | None,
    base_latency_s: float,
) -> Row:
    latency = figures["latency_s"]
    return Row(
        **point.setting.values,
        arrivals=point.setting.arrivals,
        policy=policy,
        replication=point.replication,
        seed=point.seed,
        requests=requests,
        latency_mean_s=latency["mean"],
        latency_p95_s=latency["p95"],
        queue_delay_mean_s=figures["queue_delay_s"]["mean"],
        ttft_p95_s=figures["ttft_s"]["p95"],
        idle_share=figures["idle_share"],
        requests_per_s=figures["requests_per_s"],
        output_tokens_per_s=figures["output_tokens_per_s"],
        makespan_s=figures["makespan_s"],
        preemptions=figures["preemptions"],
        utilisation=utilisation,
        gain=gain,
        latency_ratio=base_latency_s / latency["mean"],
    )
