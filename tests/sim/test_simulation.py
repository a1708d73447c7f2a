"""Every policy against a slow second implementation, and what must hold whatever the input."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from slotwise_sim import (
    Continuous,
    Dynamic,
    Outcome,
    PerToken,
    Policy,
    Static,
    Workload,
    simulate,
)
from slotwise_sim.kernels import slots as slots_kernel
from slotwise_sim.policies import Release

TICKS_PER_S = 1024  # a power of two: whole ticks are exact in seconds, so times compare as equal


class Case(NamedTuple):
    """A workload and a server in whole ticks."""

    arrivals: list[int]
    tokens: list[int]
    slots: int
    replicas: int
    pace: int  # ticks per token


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 30))
    # Few instants and few lengths: ties in arrival, in ends, and between the two.
    horizon = draw(st.sampled_from([0, 5, 40, 400]))
    longest = draw(st.sampled_from([1, 3, 40]))
    return Case(
        draw(st.lists(st.integers(0, horizon), min_size=n, max_size=n)),
        draw(st.lists(st.integers(1, longest), min_size=n, max_size=n)),
        slots=draw(st.integers(1, 9)),
        replicas=draw(st.integers(1, 3)),
        pace=draw(st.integers(1, 4)),
    )


releases: st.SearchStrategy[Release] = st.sampled_from(["batch", "own"])
delays = st.one_of(st.none(), st.integers(0, 60))


def milliseconds(ticks: int) -> float:
    return ticks * 1000 / TICKS_PER_S


def workload_of(case: Case) -> Workload:
    return Workload(
        np.array(case.arrivals) / TICKS_PER_S,
        np.array(case.tokens, dtype=np.int64),
        np.zeros(len(case.tokens), dtype=np.int64),
    )


def outcome_of(case: Case, policy: Policy) -> Outcome:
    cost = PerToken(milliseconds(case.pace))
    return simulate(workload_of(case), policy, cost, slots=case.slots, replicas=case.replicas)


def ticks(seconds: NDArray[np.float64]) -> list[float]:
    return [float(second) for second in seconds * TICKS_PER_S]


def assert_same(outcome: Outcome, requests: list[object]) -> None:
    for name in ("start", "first_token", "own_end", "end", "held_until"):
        expected = [getattr(request, name) for request in requests]
        assert ticks(getattr(outcome, f"{name}_s")) == expected, name


def replayed(reference: ModuleType, case: Case, serve: object) -> list[object]:
    """The slow simulator's requests."""
    rows = enumerate(zip(case.arrivals, case.tokens, strict=True))
    requests = [reference.Request(row, *both) for row, both in rows]
    return list(reference.replay(requests, serve, case.slots, case.replicas))


@given(cases())
def test_continuous_is_the_slow_one(reference: ModuleType, case: Case) -> None:
    expected = replayed(reference, case, reference.continuous_per_token(case.pace))
    assert_same(outcome_of(case, Continuous()), expected)


@given(cases(), delays, st.booleans())
def test_batches_are_the_slow_ones(
    reference: ModuleType, case: Case, delay: int | None, own: bool
) -> None:
    run = reference.batch_per_token(case.pace)
    expected = replayed(reference, case, reference.batches(run, delay, own))
    release: Release = "own" if own else "batch"
    policy: Policy = (
        Static(release=release) if delay is None else Dynamic(milliseconds(delay), release=release)
    )
    assert_same(outcome_of(case, policy), expected)


@given(cases(), releases, st.booleans())
def test_endless_delay_is_static_to_the_last_bit(case: Case, release: Release, pad: bool) -> None:
    static = outcome_of(case, Static(release, pad))
    dynamic = outcome_of(case, Dynamic(math.inf, release, pad))
    for field in dataclasses.fields(Outcome):
        left, right = getattr(static, field.name), getattr(dynamic, field.name)
        assert np.array_equal(left, right), field.name


@given(cases())
def test_on_one_slot_greedy_batches_and_refilling_agree(case: Case) -> None:
    one = case._replace(slots=1)
    static, dynamic, continuous = (
        outcome_of(one, policy) for policy in (Static(), Dynamic(0), Continuous())
    )
    assert ticks(static.end_s) == ticks(dynamic.end_s) == ticks(continuous.end_s)


@given(cases(), st.sampled_from([Static(), Dynamic(0), Dynamic(20), Continuous()]))
def test_what_holds_for_every_outcome(case: Case, policy: Policy) -> None:
    outcome = outcome_of(case, policy)
    assert (outcome.arrival_s <= outcome.start_s).all()
    assert (outcome.start_s < outcome.first_token_s).all()
    assert (outcome.first_token_s <= outcome.own_end_s).all()
    assert (outcome.own_end_s <= outcome.end_s).all()
    assert (outcome.own_end_s <= outcome.held_until_s).all()
    # Work is conserved: what the slots did is what the requests asked for.
    assert outcome.busy_slot_s == pytest.approx(case.pace * sum(case.tokens) / TICKS_PER_S)
    assert outcome.busy_slot_s == pytest.approx((outcome.own_end_s - outcome.start_s).sum())
    # At no instant do requests hold more slots than there are.
    for instant in outcome.start_s:
        held = (outcome.start_s <= instant) & (instant < outcome.held_until_s)
        assert held.sum() <= case.slots * case.replicas
    assert outcome.slots == case.slots * case.replicas
    assert len(outcome) == len(case.tokens)


@given(cases())
def test_first_come_first_served_in_every_replica(case: Case) -> None:
    order = sorted(range(len(case.tokens)), key=lambda row: (case.arrivals[row], row))
    for policy in (Static(), Dynamic(20), Continuous()):
        start_s = outcome_of(case, policy).start_s
        for replica in range(case.replicas):
            served = start_s[order[replica :: case.replicas]]
            assert (np.diff(served) >= 0).all()


@given(cases())
def test_equal_lengths_leave_nothing_to_gain_under_backlog(case: Case) -> None:
    even = case._replace(arrivals=[0] * len(case.tokens), tokens=[7] * len(case.tokens))
    static, continuous = outcome_of(even, Static()), outcome_of(even, Continuous())
    assert ticks(static.end_s) == ticks(continuous.end_s)


@given(cases())
def test_a_slower_pace_with_later_arrivals_only_stretches_time(case: Case) -> None:
    slow = case._replace(arrivals=[4 * a for a in case.arrivals], pace=4 * case.pace)
    for policy in (Static(), Continuous()):
        assert ticks(outcome_of(slow, policy).end_s) == [
            4 * end for end in ticks(outcome_of(case, policy).end_s)
        ]


@given(cases(), st.randoms(use_true_random=False))
def test_rows_may_come_in_any_order(case: Case, random: object) -> None:
    distinct = case._replace(arrivals=list(range(0, 3 * len(case.tokens), 3)))
    rows = list(range(len(case.tokens)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    shuffled = distinct._replace(
        arrivals=[distinct.arrivals[row] for row in rows],
        tokens=[distinct.tokens[row] for row in rows],
    )
    for policy in (Static(), Dynamic(5), Continuous()):
        straight = outcome_of(distinct, policy).end_s
        assert np.array_equal(outcome_of(shuffled, policy).end_s, straight[rows])


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 8, 255, 256, 257, 1000])
def test_the_sorted_row_and_the_heap_are_the_same_queue(slots: int) -> None:
    rng = np.random.default_rng(slots)
    arrival_s = np.cumsum(rng.exponential(1 / slots, 3_000))
    service_s = rng.integers(1, 20, 3_000) / 10  # many slots fall free at one instant
    served = []
    for fill in (
        slots_kernel.continuous_few_slots,
        slots_kernel.continuous_many_slots,
        slots_kernel.continuous_slots,
    ):
        start_s, held_until_s = np.empty(3_000), np.empty(3_000)
        fill(arrival_s, service_s, slots, start_s, held_until_s, np.zeros(2, dtype=np.int64))
        served.append((start_s, held_until_s))
    few, many, chosen = served
    assert np.array_equal(few, many)
    assert np.array_equal(few, chosen)


def test_a_request_that_arrives_as_the_batch_starts_is_in_it() -> None:
    """The server falls free at 4 s; who arrives at that very instant still gets in."""
    workload = Workload(
        np.array([0.0, 1.0, 4.0, 4.5]), np.array([4, 1, 1, 1]), np.zeros(4, dtype=np.int64)
    )
    outcome = simulate(workload, Dynamic(0), PerToken(1000), slots=3)
    assert outcome.start_s.tolist() == [0, 4, 4, 5]


def test_the_last_short_batch_waits_out_a_finite_delay_only() -> None:
    workload = Workload(np.array([0.0, 1.0]), np.array([1, 1]), np.zeros(2, dtype=np.int64))
    finite = simulate(workload, Dynamic(5000), PerToken(1000), slots=8)
    assert finite.start_s.tolist() == [5, 5]
    static = simulate(workload, Static(), PerToken(1000), slots=8)
    assert static.start_s.tolist() == [1, 1]


def test_replicas_without_requests_still_count_as_idle_slots() -> None:
    workload = Workload(np.zeros(1), np.array([10]), np.zeros(1, dtype=np.int64))
    outcome = simulate(workload, Continuous(), PerToken(100), slots=2, replicas=3)
    assert outcome.slots == 6
    assert outcome.end_s.tolist() == [1.0]


def test_more_slots_than_memory_could_hold_are_only_empty_slots() -> None:
    workload = Workload(np.zeros(3), np.array([1, 2, 3]), np.zeros(3, dtype=np.int64))
    outcome = simulate(workload, Continuous(), PerToken(1000), slots=10**12)
    assert outcome.end_s.tolist() == [1, 2, 3]


def test_arrays_that_cannot_be_written_to_are_served_and_left_alone() -> None:
    arrival_s, tokens = np.array([3.0, 0.0]), np.array([1, 2])
    arrival_s.flags.writeable = tokens.flags.writeable = False
    workload = Workload(arrival_s, tokens, np.zeros(2, dtype=np.int64))
    assert simulate(workload, Static(), PerToken(1000), slots=1).end_s.tolist() == [4, 2]
    ascending = Workload(arrival_s[::-1], tokens, np.zeros(2, dtype=np.int64))
    assert simulate(ascending, Continuous(), PerToken(1000), slots=1).end_s.tolist() == [1, 5]


@pytest.mark.parametrize(("slots", "replicas"), [(0, 1), (-1, 1), (1, 0)])
def test_servers_without_slots_are_refused(slots: int, replicas: int) -> None:
    workload = Workload(np.zeros(1), np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    with pytest.raises(ValueError, match="must be >= 1"):
        simulate(workload, Static(), PerToken(8), slots=slots, replicas=replicas)
