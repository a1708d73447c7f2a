from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import Workload
from slotwise_workflows.calibrate.file import CalibrationFile
from slotwise_workflows.errors import EndpointError, InputError, UsageError
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.findings import ReplayFigures
from slotwise_workflows.probe.load.cost import run_cost
from slotwise_workflows.probe.load.cost_fit import fit_cost, server_of
from slotwise_workflows.probe.load.cost_plan import article_lengths, plan_cost
from slotwise_workflows.probe.load.model import Sent
from slotwise_workflows.probe.load.replay import replay_figures, run_replay
from slotwise_workflows.probe.load.replay_plan import ReplayPlan, busiest, plan_replay
from slotwise_workflows.probe.model import Baseline, Batching
from slotwise_workflows.probe.prompts import Scale
from slotwise_workflows.traffic import Traffic
from slotwise_workflows.traffic.model import made_traffic

ROOMY = Budget(requests=1000, output_tokens=10**7, seconds=1e5)
WORDS = Scale(28.0, 1.0, measured=True)  # of the bench: a token a word


def log_of(n: int, rate: float = 2.0, seed: int = 3) -> Traffic:
    rng = np.random.default_rng(seed)
    return made_traffic(
        Workload(
            np.cumsum(rng.exponential(1 / rate, n)),
            article_lengths(n, rng) // 4,
            rng.integers(50, 600, n),
        ),
        format_id="made",
    )


def plan_of(traffic: Traffic, **how: Any) -> ReplayPlan:
    return plan_replay(traffic, rng=np.random.default_rng(1), **{"budget": ROOMY, **how})


def engine_of(bench: Any, batching: Batching, slots: int) -> Any:
    if batching == "continuous":
        return bench.costly(20.0, 1.0, 0.05, slots=slots)
    return bench.server.Engine(bench.server.Policy(batching, slots, "own", 20.0, 1.0))


def calibrated(bench: Any, engine: Any, batching: Batching, slots: int) -> CalibrationFile:
    baseline = Baseline(
        ttft_s=0.024, latency_s=0.7, output_tokens=32, seconds_per_token=0.02, streams=True
    )
    costs = plan_cost(
        batching=batching, slots=slots, baseline=baseline, rng=np.random.default_rng(1)
    )
    run = bench.run(
        bench.endpoint(engine, bench.server.Job),
        lambda client: run_cost(client, costs, np.random.default_rng(2)),
    )
    found = fit_cost(run, server_of(batching, slots, release="own")).calibration
    assert found is not None
    return found


def sent_to(bench: Any, engine: Any, plan: ReplayPlan, **endpoint: Any) -> Sent:
    there = bench.endpoint(engine, bench.server.Job, stage="replay", **endpoint)
    sent: Sent = bench.run(
        there, lambda client: run_replay(client, plan, WORDS, np.random.default_rng(3))
    )
    return sent


@pytest.mark.parametrize(
    ("batching", "slots", "rate", "busy"),
    [
        ("continuous", 8, 1.0, False),
        ("continuous", 8, 8.0, True),
        ("static", 8, 1.0, False),
        ("static", 2, 3.0, True),
    ],
)
def test_a_replay_on_a_known_server_is_predicted(
    bench: Any, batching: Batching, slots: int, rate: float, busy: bool
) -> None:
    """From other requests than those replayed, at loads that queue and loads that do not."""
    plan = plan_of(log_of(150, rate))
    figures = replay_figures(
        sent_to(bench, engine_of(bench, batching, slots), plan),
        plan,
        calibration=calibrated(bench, engine_of(bench, batching, slots), batching, slots),
        server=server_of(batching, slots, release="own"),
    )
    assert (figures.answered, figures.failed, figures.cut_short, figures.unsent) == (150, 0, 0, 0)
    assert figures.errors is not None
    assert abs(figures.errors.latency_mean) < 0.015
    assert abs(figures.errors.latency_p50) < 0.02
    assert figures.errors.latency_p95 is not None
    assert abs(figures.errors.latency_p95) < 0.02
    assert abs(figures.errors.makespan) < 0.01
    assert abs(figures.errors.ttft_mean) < 0.08
    assert figures.errors.each_p50 < 0.02
    assert (figures.measured.ttft_mean > 1) == busy
    assert figures.prompt_tokens_off == pytest.approx(0)
    assert not figures.client.client_bottleneck


def test_a_wrong_cost_is_seen_in_the_error(bench: Any) -> None:
    """The prediction is no copy of the measurement: twice the cost is twice the time."""
    plan = plan_of(log_of(80, 0.2))
    sent = sent_to(bench, engine_of(bench, "continuous", 8), plan)
    for factor in (1.0, 2.0, 0.5):
        other = bench.costly(20.0 * factor, factor, 0.05 * factor)
        found = replay_figures(
            sent,
            plan,
            calibration=calibrated(bench, other, "continuous", 8),
            server=server_of("continuous", 8),
        )
        assert found.errors is not None
        assert found.errors.latency_mean == pytest.approx(factor - 1, abs=0.06)


def test_without_a_cost_there_is_a_measurement_alone(bench: Any) -> None:
    plan = plan_of(log_of(20))
    sent = sent_to(bench, bench.costly(), plan)
    figures = replay_figures(sent, plan, calibration=None, server=None)
    assert (figures.simulated, figures.errors) == (None, None)
    assert figures.measured.latency_p95 is None  # of 20 requests
    latencies = sorted((s.last_token_ns or 0) - (s.scheduled_ns or 0) for s in sent.samples)
    assert figures.measured.latency_p50 == pytest.approx(latencies[10] / 1e9)
    assert figures.measured.latency_mean == pytest.approx(sum(latencies) / 20e9)
    assert ReplayFigures.model_validate_json(figures.model_dump_json()) == figures


def test_failed_requests_are_counted_and_end_it_in_time(bench: Any) -> None:
    plan = plan_of(log_of(100, 0.2))
    sent = sent_to(
        bench, bench.costly(), plan, fault=lambda number: "server_error" if number % 2 else None
    )
    figures = replay_figures(sent, plan, calibration=None, server=None)
    assert (figures.failed, figures.answered) == (20, 19)
    assert figures.unsent == 100 - 39
    nothing = replace(sent, samples=[s for s in sent.samples if not s.answered])
    with pytest.raises(EndpointError, match="server_error"):
        replay_figures(nothing, plan, calibration=None, server=None)


# --- the plan ------------------------------------------------------------------------------------


def test_the_first_requests_are_the_first_to_arrive() -> None:
    traffic = log_of(50)
    shuffled = replace(traffic, table=traffic.table.sample(fraction=1, shuffle=True, seed=4))
    plan = plan_of(shuffled, first=20)
    original = traffic.workload()
    assert plan.workload.arrival_s == pytest.approx(original.arrival_s[:20])
    assert plan.workload.output_tokens.tolist() == original.output_tokens[:20].tolist()
    assert plan.workload.prompt_tokens.tolist() == original.prompt_tokens[:20].tolist()
    assert (plan.window, plan.of_requests, plan.prompts_known) == ("the first 20", 50, True)
    assert plan_of(traffic, first=500).window == "the first 50"


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 50)), min_size=1, max_size=25),
    st.integers(1, 40),
)
def test_the_busiest_stretch_is_found(rows: list[tuple[int, int]], seconds: int) -> None:
    rows.sort()
    arrival_s = np.array([at for at, _ in rows], dtype=np.float64)
    tokens = np.array([count for _, count in rows])
    found = busiest(arrival_s, tokens, float(seconds))
    best = max(
        sum(count for at, count in rows if begin <= at < begin + seconds) for begin, _ in rows
    )
    assert tokens[found].sum() == best
    assert arrival_s[found][-1] - arrival_s[found][0] < seconds


def test_rate_and_lengths_are_scaled_as_told() -> None:
    traffic = log_of(2000)
    own, scaled = (
        plan_of(traffic, first=900),
        plan_of(traffic, first=900, rate_scale=4.0, length_scale=0.3),
    )
    assert scaled.workload.arrival_s == pytest.approx(own.workload.arrival_s / 4)
    mean = own.workload.output_tokens.mean()
    assert scaled.workload.output_tokens.mean() == pytest.approx(0.3 * mean, abs=0.05)
    assert np.abs(scaled.workload.output_tokens - 0.3 * own.workload.output_tokens).max() < 1
    assert scaled.workload.output_tokens.min() >= 1
    assert (scaled.rate_scale, scaled.length_scale) == (4.0, 0.3)


def test_without_a_window_as_many_as_are_allowed() -> None:
    traffic = log_of(500)
    workload = traffic.workload()
    by_tokens = plan_of(traffic, budget=Budget(requests=400, output_tokens=3000, seconds=1e5))
    n = len(by_tokens.workload)
    assert by_tokens.output_tokens <= 3000 < int(workload.output_tokens[: n + 1].sum())
    by_count = plan_of(traffic, budget=Budget(requests=7, output_tokens=10**6, seconds=1e5))
    assert len(by_count.workload) == 7
    by_time = plan_of(traffic, budget=Budget(requests=400, output_tokens=10**6, seconds=10))
    assert by_time.workload.arrival_s[-1] <= 10


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"first": 400, "budget": Budget(requests=10)}, "400 requests of 10 allowed"),
        ({"first": 400, "budget": Budget(requests=900, output_tokens=50)}, "of 50 allowed"),
        ({"busiest_s": 60.0, "budget": Budget(seconds=5.0)}, "seconds of 5 allowed"),
        ({"first": 5, "busiest_s": 60.0}, "one window"),
        ({"first": 0}, "window must be above 0"),
        ({"rate_scale": 0.0}, "rate scale must be above 0"),
        ({"length_scale": float("inf")}, "length scale must be above 0"),
        ({"context_tokens": 100}, "longer than the endpoint takes"),
    ],
)
def test_what_cannot_be_replayed_is_told(how: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        plan_of(log_of(500), **how)


def test_a_log_without_arrivals_cannot_be_replayed() -> None:
    with pytest.raises(InputError, match="arrival times are not known"):
        plan_of(replace(log_of(20), clock=None))
