"""Figures against values worked out by hand, and slots for pictures."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import Continuous, PerToken, Static, Step, Workload, simulate
from slotwise_sim.metrics import distribution, figures, percentile, percentile_index, slot_of


def two_batches() -> Workload:
    """Lengths 1, 3 | 2, 2 on two slots at 1 s a token, all there from the start but the last."""
    return Workload(
        np.array([0.0, 0.0, 0.0, 1.0]), np.array([1, 3, 2, 2]), np.zeros(4, dtype=np.int64)
    )


def test_every_figure_of_a_case_worked_by_hand() -> None:
    """Batch one runs 0-3 s, batch two 3-5 s; of 2 x 5 slot-seconds 8 are worked."""
    assert figures(simulate(two_batches(), Static(), PerToken(1000), slots=2)) == {
        # Latencies 3, 3, 5, 4: positions of 50, 90, 95 and 99 % are ceil(1.5), then 3.
        "latency_s": {"mean": 3.75, "p50": 4, "p90": 5, "p95": 5, "p99": 5, "max": 5},
        "queue_delay_s": {"mean": 1.25, "p50": 2, "p90": 3, "p95": 3, "p99": 3, "max": 3},
        "ttft_s": {"mean": 2.25, "p50": 3, "p90": 4, "p95": 4, "p99": 4, "max": 4},
        # (3 - 1) / 2, (5 - 4) / 1, (5 - 4) / 1; the request of one token has none.
        "tpot_s": {"mean": 1, "p50": 1, "p90": 1, "p95": 1, "p99": 1, "max": 1},
        "makespan_s": 5,
        "requests_per_s": 0.8,
        "output_tokens_per_s": 1.6,
        "busy_slot_s": 8,
        "idle_share": pytest.approx(0.2),
        "preemptions": 0,
    }


def test_a_batch_released_together_spreads_its_wait_over_its_tokens() -> None:
    workload = Workload(np.zeros(2), np.array([2, 5]), np.zeros(2, dtype=np.int64))
    together = figures(simulate(workload, Static(), PerToken(1000), slots=2))
    apart = figures(simulate(workload, Static(release="own"), PerToken(1000), slots=2))
    assert together["tpot_s"] is not None
    assert apart["tpot_s"] is not None
    assert together["tpot_s"]["max"] == 4  # first token at 1 s, delivered at 5 s, one token more
    assert apart["tpot_s"]["max"] == 1


def test_no_time_per_token_where_every_request_has_one() -> None:
    workload = Workload(np.zeros(2), np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    assert figures(simulate(workload, Continuous(), PerToken(8), slots=1))["tpot_s"] is None


@given(st.integers(1, 10_000_000), st.integers(0, 100))
def test_percentile_positions_are_exact(n: int, percent: int) -> None:
    exact = Fraction(percent, 100) * (n - 1)
    assert percentile_index(percent, n) == -((-exact.numerator) // exact.denominator)


@pytest.mark.parametrize(
    ("percent", "n", "index"), [(95, 21, 19), (90, 11, 9), (50, 2, 1), (99, 101, 99), (95, 1, 0)]
)
def test_percentile_positions_that_floats_would_miss(percent: int, n: int, index: int) -> None:
    assert percentile_index(percent, n) == index


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_percentiles_are_observed_values_in_order(values: list[float]) -> None:
    found = distribution(np.array(values))
    ranked = sorted(values)
    for percent in (50, 90, 95, 99):
        expected = ranked[percentile_index(percent, len(values))]
        assert found[f"p{percent}"] == expected  # type: ignore[literal-required]
        assert percentile(np.array(values), percent) == expected
    assert found["max"] == ranked[-1]
    assert found["mean"] == pytest.approx(sum(values) / len(values))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), min_size=1, max_size=40))
def test_slots_hold_one_request_at_a_time_and_are_as_few_as_can_be(
    spans: list[tuple[int, int]],
) -> None:
    start = np.array([float(begin) for begin, _ in spans])
    stop = start + np.array([float(length) for _, length in spans])
    slot = slot_of(start, stop)
    for i in range(len(spans)):
        for j in range(i):
            overlap = start[i] < stop[j] and start[j] < stop[i]
            assert not (overlap and slot[i] == slot[j])
    most_at_once = max(int(((start <= t) & (t < stop)).sum()) for t in start)
    assert slot.max() + 1 == most_at_once


def test_a_slot_given_back_is_the_next_to_be_given() -> None:
    start, stop = np.array([0.0, 0.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0, 5.0])
    assert slot_of(start, stop).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("policy", [Static(), Static(release="own"), Continuous()])
def test_every_policy_fits_into_its_own_slots(policy: Static | Continuous) -> None:
    outcome = simulate(two_batches(), policy, PerToken(1000), slots=2)
    assert set(slot_of(outcome.start_s, outcome.held_until_s).tolist()) == {0, 1}


def test_a_replay_that_takes_no_time_has_no_figures() -> None:
    """An iteration that only prefills may be free, and here it is all there is."""
    workload = Workload(np.zeros(1), np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    outcome = simulate(workload, Continuous(), Step(base_ms=0, per_seq_ms=1), slots=1)
    with pytest.raises(ValueError, match="no request took any time"):
        figures(outcome)
