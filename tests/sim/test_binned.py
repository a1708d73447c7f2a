"""Batches of requests that are expected to be alike."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import (
    Binned,
    Dynamic,
    Outcome,
    PerToken,
    Policy,
    Step,
    Workload,
    simulate,
)

TICKS_PER_S = 1024  # a power of two: whole ticks are exact in seconds, so times compare as equal


class Case(NamedTuple):
    """A workload and a server in whole ticks; one tick takes a token."""

    arrivals: list[int]
    outputs: list[int]
    predicted: list[int]
    slots: int
    replicas: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 30))
    horizon = draw(st.sampled_from([0, 5, 40, 400]))
    longest = draw(st.sampled_from([1, 3, 40]))
    return Case(
        draw(st.lists(st.integers(0, horizon), min_size=n, max_size=n)),
        draw(st.lists(st.integers(1, longest), min_size=n, max_size=n)),
        draw(st.lists(st.integers(1, longest), min_size=n, max_size=n)),
        slots=draw(st.integers(1, 9)),
        replicas=draw(st.integers(1, 3)),
    )


def milliseconds(ticks: float) -> float:
    return ticks * 1000 / TICKS_PER_S


def workload_of(case: Case, predicted: list[int] | None) -> Workload:
    return Workload(
        np.array(case.arrivals) / TICKS_PER_S,
        np.array(case.outputs),
        np.zeros(len(case.outputs), dtype=np.int64),
        predicted_tokens=None if predicted is None else np.array(predicted, dtype=np.float64),
    )


def outcome_of(case: Case, policy: Policy, predicted: list[int] | None) -> Outcome:
    workload, cost = workload_of(case, predicted), PerToken(milliseconds(1))
    return simulate(workload, policy, cost, slots=case.slots, replicas=case.replicas)


@given(cases(), st.integers(1, 6), st.none() | st.integers(0, 60), st.booleans(), st.booleans())
def test_bins_are_the_slow_ones(
    reference: ModuleType, case: Case, bins: int, delay: int | None, own: bool, oracle: bool
) -> None:
    rows = enumerate(zip(case.arrivals, case.outputs, strict=True))
    requests = [reference.Request(row, *both) for row, both in rows]
    reference.put_in_bins(requests, case.outputs if oracle else case.predicted, bins)
    serve = reference.batches(reference.batch_per_token(1), delay, own)
    reference.replay(requests, serve, case.slots, case.replicas)
    policy = Binned(
        bins,
        math.inf if delay is None else milliseconds(delay),
        release="own" if own else "batch",
    )
    outcome = outcome_of(case, policy, None if oracle else case.predicted)
    for name in ("start", "first_token", "own_end", "end", "held_until"):
        expected = [getattr(request, name) / TICKS_PER_S for request in requests]
        assert getattr(outcome, f"{name}_s").tolist() == expected, name
    assert outcome.busy_slot_s == sum(case.outputs) / TICKS_PER_S


@given(cases(), st.just(math.inf) | st.integers(0, 60).map(milliseconds), st.booleans())
def test_one_bin_is_dynamic_to_the_last_bit(case: Case, delay_ms: float, steps: bool) -> None:
    cost = Step(3.1, 0.7, 0.01) if steps else PerToken(3.1)
    binned, dynamic = (
        simulate(workload_of(case, case.predicted), policy, cost, slots=case.slots)
        for policy in (Binned(1, delay_ms), Dynamic(delay_ms))
    )
    for field in dataclasses.fields(Outcome):
        left, right = getattr(binned, field.name), getattr(dynamic, field.name)
        assert np.array_equal(left, right), field.name


def served(
    arrivals: list[float],
    outputs: list[int],
    policy: Binned,
    predicted: list[float] | None = None,
    slots: int = 2,
    replicas: int = 1,
) -> list[float]:
    """Starts, at a second per token."""
    workload = Workload(
        np.array(arrivals),
        np.array(outputs),
        np.zeros(len(outputs), dtype=np.int64),
        predicted_tokens=None if predicted is None else np.array(predicted),
    )
    outcome = simulate(workload, policy, PerToken(1000), slots=slots, replicas=replicas)
    starts: list[float] = outcome.start_s.tolist()
    return starts


def test_like_runs_with_like_and_the_oldest_goes_first() -> None:
    # Ascending 1 1 9 9: from 9 on a request is long.
    assert served([0, 0, 0, 0], [1, 9, 1, 9], Binned(2)) == [0, 1, 0, 1]
    assert served([0, 0, 0, 0], [9, 1, 1, 9], Binned(2)) == [0, 9, 9, 0]


def test_equal_predictions_share_a_bin() -> None:
    # Ascending 1 5 5 5: the upper half begins at 5, so all three are in it.
    assert served([0, 0, 0, 0], [5, 5, 5, 1], Binned(2), slots=3) == [0, 0, 0, 5]
    assert served([0, 0, 0], [5, 5, 5], Binned(4), slots=3) == [0, 0, 0]


def test_predictions_decide_where_there_are_any() -> None:
    assert served([0, 0, 0, 0], [1, 9, 1, 9], Binned(2), predicted=[7, 7, 30, 30]) == [0, 0, 9, 9]


def test_a_bin_that_is_not_ready_holds_up_no_other() -> None:
    # A long one waits alone for 5 s; two short ones fill a batch at 2 and are done at 3.
    starts = served([0, 1, 2, 20], [9, 1, 1, 9], Binned(2, max_delay_ms=5000))
    assert starts == [5, 2, 2, 25]


def test_of_two_ready_bins_the_one_whose_oldest_came_first_starts() -> None:
    # While the first runs to 9, a short one waits from 1 on and two long ones from 2 on.
    starts = served([0, 0, 1, 2, 2], [9, 9, 1, 9, 9], Binned(2, max_delay_ms=3000))
    assert starts == [0, 0, 9, 10, 10]


def test_without_end_a_bin_waits_for_its_own_last_request() -> None:
    # The last short one comes at 2, the last long one at 7.
    starts = served([0, 2, 1, 7], [1, 1, 9, 9], Binned(2, math.inf), slots=3)
    assert starts == [2, 2, 7, 7]


def test_replicas_share_the_edges() -> None:
    # One replica is dealt 1 and 2, the other 8 and 9: both of a replica are alike and run together.
    assert served([0, 0, 0, 0], [1, 8, 2, 9], Binned(2), replicas=2) == [0, 0, 0, 0]
    assert served([0, 0, 0, 0], [1, 2, 9, 8], Binned(2), replicas=2) == [0, 0, 1, 2]


def test_more_bins_than_requests_leave_some_empty() -> None:
    assert served([0, 0, 0], [3, 1, 2], Binned(50)) == [0, 3, 4]


@pytest.mark.parametrize(("bins", "delay_ms"), [(0, 0.0), (-1, 0.0), (1, -1.0), (1, math.nan)])
def test_no_bins_and_delays_below_zero_are_refused(bins: int, delay_ms: float) -> None:
    with pytest.raises(ValueError, match="must be >= "):
        Binned(bins, delay_ms)
