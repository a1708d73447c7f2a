"""Paired replications of resampled traffic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import Balancer, Continuous, PerToken, Policy, Static, Workload
from slotwise_sim.article import article_workload
from slotwise_sim.replicate import interval, replicate, resample, run_length

POLICIES: dict[str, Policy] = {"static": Static(), "continuous": Continuous()}


def numbered(n: int) -> Workload:
    """Requests whose columns all tell their row: gap before, output, prompt and cap."""
    row = np.arange(n, dtype=np.int64)
    return Workload(np.cumsum(row + 1.0), row + 1, row, max_tokens=row + 7)


@given(st.integers(2, 40), st.integers(1, 45), st.integers(0, 99))
def test_a_request_keeps_its_gap_its_prompt_and_its_cap(n: int, run: int, seed: int) -> None:
    drawn = resample(numbered(n), np.random.default_rng(seed), run=run)
    assert len(drawn) == n
    assert (drawn.prompt_tokens == drawn.output_tokens - 1).all()
    assert drawn.max_tokens is not None
    assert (drawn.max_tokens == drawn.output_tokens + 6).all()
    unseen = (n + 1) * n / 2 / (n - 1) - 1 / (n - 1)  # the mean gap stands before the first row
    gaps = np.where(drawn.output_tokens == 1, unseen, drawn.output_tokens)
    assert np.diff(drawn.arrival_s) == pytest.approx(gaps[1:])
    assert drawn.arrival_s[0] == 1.0


def test_rows_in_any_order_give_the_same_traffic() -> None:
    straight = numbered(30)
    backwards = Workload(
        straight.arrival_s[::-1],
        straight.output_tokens[::-1],
        straight.prompt_tokens[::-1],
        max_tokens=None,
    )
    one, other = (resample(w, np.random.default_rng(3), run=4) for w in (straight, backwards))
    assert one.arrival_s.tolist() == other.arrival_s.tolist()
    assert one.output_tokens.tolist() == other.output_tokens.tolist()


def test_one_request_can_only_come_again() -> None:
    only = Workload(np.array([5.0]), np.array([9]), np.array([2]))
    assert resample(only, np.random.default_rng(0)).arrival_s.tolist() == [5.0]


def test_runs_are_as_long_as_the_traffic_clusters() -> None:
    rng = np.random.default_rng(5)
    n = 2_000
    arrival_s = np.cumsum(rng.exponential(1, n))
    prompts = np.zeros(n, dtype=np.int64)
    lengths = rng.integers(1, 500, n)
    independent = run_length(Workload(arrival_s, lengths, prompts))
    by_length = run_length(Workload(arrival_s, np.sort(lengths), prompts))
    bursts = np.cumsum(np.repeat(rng.exponential(1, n // 50), 50))
    by_gap = run_length(Workload(bursts, lengths, prompts))
    assert independent <= 5
    assert min(by_length, by_gap) > 30


def test_resampling_keeps_the_rate_and_the_mean_length() -> None:
    article = article_workload()
    rng = np.random.default_rng(11)
    drawn = [resample(article, rng) for _ in range(400)]
    spans = [float(np.ptp(workload.arrival_s)) for workload in drawn]
    assert np.mean(spans) == pytest.approx(np.ptp(article.arrival_s), rel=0.02)
    means = [float(workload.output_tokens.mean()) for workload in drawn]
    assert np.mean(means) == pytest.approx(article.output_tokens.mean(), rel=0.02)


def test_replications_are_paired() -> None:
    """Both policies serve the same requests, so they work exactly as much."""
    told: list[tuple[int, int]] = []
    found = replicate(
        article_workload(),
        POLICIES,
        PerToken(8),
        slots=8,
        rng=np.random.default_rng(1),
        replications=20,
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(done, 20) for done in range(1, 21)]
    for run in found:
        assert run["static"]["busy_slot_s"] == run["continuous"]["busy_slot_s"]
        assert run["static"]["makespan_s"] > run["continuous"]["makespan_s"]
    assert len({run["static"]["busy_slot_s"] for run in found}) > 15


def test_replications_go_through_the_balancer() -> None:
    """Every other request is long: in turn, one of two servers gets all of them."""
    uneven = Workload(np.arange(40.0), np.tile([50, 350], 20), np.zeros(40, np.int64))

    def waits_s(balancer: Balancer) -> float:
        [run] = replicate(
            uneven,
            {"continuous": Continuous()},
            PerToken(10.0),
            slots=1,
            replicas=2,
            balancer=balancer,
            rng=np.random.default_rng(0),
            replications=1,
        )
        return run["continuous"]["queue_delay_s"]["mean"]

    assert waits_s("least_busy") < waits_s("round_robin")


def test_the_first_of_many_replications_are_those_of_few() -> None:
    few, many = (
        replicate(
            article_workload(),
            POLICIES,
            PerToken(8),
            slots=8,
            rng=np.random.default_rng(1),
            replications=replications,
        )
        for replications in (3, 6)
    )
    assert many[:3] == few


def test_replications_of_one_trace_spread_about_as_much_as_fresh_traces_do() -> None:
    """20,000 fresh traces spread the makespans' ratio over 2.635 to 3.006, a width of 0.371."""
    found = replicate(
        article_workload(),
        POLICIES,
        PerToken(8),
        slots=8,
        rng=np.random.default_rng(2),
        replications=300,
    )
    low, high = interval([r["static"]["makespan_s"] / r["continuous"]["makespan_s"] for r in found])
    assert high - low == pytest.approx(0.371, rel=0.25)


def test_interval_is_the_middle_of_the_values() -> None:
    assert interval(list(range(1001))) == (25, 975)
    assert interval([4.0]) == (4, 4)
    with pytest.raises(ValueError, match="at least one"):
        interval([])
