"""Servers that work in iterations, with every option, against the slow simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from slotwise_sim import (
    Binned,
    Continuous,
    Dynamic,
    Memory,
    Outcome,
    PerToken,
    Piece,
    Policy,
    Static,
    Step,
    Workload,
    simulate,
)
from slotwise_sim.memory import Reserve
from slotwise_sim.metrics import figures
from slotwise_sim.policies import BatchPolicy, Prefill, Release

TICKS_PER_S = 1024  # a power of two: whole ticks are exact in seconds, so times compare as equal
TIMES = ("start", "first_token", "own_end", "end", "held_until")


def milliseconds(ticks: float) -> float:
    return ticks * 1000 / TICKS_PER_S


Decoding = tuple[float, float, float]  # base, per_seq, per_kv


@dataclass(frozen=True)
class Request:
    """Arrival in ticks, everything else in tokens."""

    arrival: float
    output: int
    prompt: int
    cached: int
    cap: int
    predicted: float


@dataclass(frozen=True)
class Case:
    """A workload and a server; all times in ticks."""

    requests: list[Request]
    slots: int
    replicas: int
    decoding: Decoding
    prefilling: tuple[float, float]  # per_prefill, per_prefill2
    prefill_base: float | None
    pieces: tuple[tuple[int, Decoding], ...]


# No iteration may take no time: one of base and per_seq is above 0.
costs_of_decoding: st.SearchStrategy[Decoding] = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just(0), st.integers(1, 3), st.integers(0, 2)),
)
OUTPUTS = ([1], [1, 1, 2, 3], [1, 1, 20, 59, 60])
PROMPTS = ([0], [0, 0, 1, 2, 3], [0, 0, 1, 16, 31, 60])


@st.composite
def cases(draw: st.DrawFn, *, crowded: bool = False) -> Case:
    """Few instants and few lengths: ties in arrival, in ends, and between the two.

    A crowded server has slots enough, and most of its requests are long.
    """
    horizon = draw(st.sampled_from([0, 40] if crowded else [0, 5, 40, 400, 4_000]))
    outputs = [1, 30, 60] if crowded else draw(st.sampled_from(OUTPUTS))
    prompts = draw(st.sampled_from(PROMPTS))
    cached = draw(st.sampled_from([[0], [0, 0, 1, 15, 60]]))
    requests = st.builds(
        Request,
        arrival=st.integers(0, horizon),
        output=st.sampled_from(outputs) | st.integers(1, max(outputs)),
        prompt=st.sampled_from(prompts) | st.integers(0, max(prompts)),
        cached=st.sampled_from(cached),
        cap=st.integers(0, 9),
        predicted=st.integers(1, max(outputs)),
    )
    least, most = draw(st.sampled_from([(2, 12)] if crowded else [(1, 4), (5, 30)]))
    return Case(
        requests=draw(st.lists(requests, min_size=least, max_size=most).map(consistent)),
        slots=draw(st.integers(2 if crowded else 1, 9)),
        replicas=1 if crowded else draw(st.sampled_from([1, 1, 1, 2, 3])),
        decoding=draw(costs_of_decoding),
        prefilling=draw(st.tuples(st.integers(0, 3), st.integers(0, 1))),
        prefill_base=draw(st.none() | st.integers(0, 40)),
        pieces=draw(st.just(()) | pieces),
    )


pieces: st.SearchStrategy[tuple[tuple[int, Decoding], ...]] = st.dictionaries(
    st.integers(2, 9), costs_of_decoding, max_size=2
).map(lambda terms: tuple(sorted(terms.items())))


def consistent(requests: list[Request]) -> list[Request]:
    """No more of a prompt is cached than it has, and no output is longer than its cap."""
    return [
        replace(
            request, cached=min(request.cached, request.prompt), cap=request.output + request.cap
        )
        for request in requests
    ]


def off_the_beat(case: Case, seed: int) -> Case:
    """The same case with times that no two events share unless they are one."""
    rng = np.random.default_rng(seed)

    def bent(time: float) -> float:
        return time * (1 + rng.uniform(0, 0.1))

    def bent_terms(terms: Decoding) -> Decoding:
        base, per_seq, per_kv = terms
        return bent(base), bent(per_seq), bent(per_kv)

    per_prefill, per_prefill2 = case.prefilling
    instants = {request.arrival: bent(request.arrival) for request in case.requests}
    return replace(
        case,
        requests=[replace(request, arrival=instants[request.arrival]) for request in case.requests],
        decoding=bent_terms(case.decoding),
        prefilling=(bent(per_prefill), bent(per_prefill2)),
        prefill_base=case.prefill_base and bent(case.prefill_base),
        pieces=tuple((from_seqs, bent_terms(terms)) for from_seqs, terms in case.pieces),
    )


def column(case: Case, name: str) -> NDArray[np.int64]:
    return np.array([getattr(request, name) for request in case.requests], dtype=np.int64)


def workload_of(case: Case) -> Workload:
    return Workload(
        np.array([request.arrival for request in case.requests]) / TICKS_PER_S,
        column(case, "output"),
        column(case, "prompt"),
        max_tokens=column(case, "cap"),
        cached_tokens=column(case, "cached"),
        predicted_tokens=column(case, "predicted").astype(np.float64),
    )


def cost_of(case: Case) -> Step:
    base, per_seq, per_kv = map(milliseconds, case.decoding)
    per_prefill, per_prefill2 = map(milliseconds, case.prefilling)
    return Step(
        base_ms=base,
        per_seq_ms=per_seq,
        per_kv_token_ms=per_kv,
        per_prefill_token_ms=per_prefill,
        per_prefill_token2_ms=per_prefill2,
        prefill_base_ms=None if case.prefill_base is None else milliseconds(case.prefill_base),
        pieces=tuple(
            Piece(from_seqs, *map(milliseconds, terms)) for from_seqs, terms in case.pieces
        ),
    )


def outcome_of(case: Case, policy: Policy, memory: Memory | None = None) -> Outcome:
    return simulate(
        workload_of(case),
        policy,
        cost_of(case),
        slots=case.slots,
        replicas=case.replicas,
        memory=memory,
    )


def expected_of(
    reference: ModuleType, case: Case, policy: Policy, memory: Memory | None = None
) -> list[Any]:
    """The slow simulator's requests."""
    requests = [
        reference.Request(row, r.arrival, r.output, r.prompt, r.cached, r.cap)
        for row, r in enumerate(case.requests)
    ]
    step = reference.Step(*case.decoding, *case.prefilling, case.prefill_base, case.pieces)
    if isinstance(policy, Binned):
        reference.put_in_bins(requests, [r.predicted for r in case.requests], policy.bins)
    if isinstance(policy, Continuous):
        serve = reference.continuous_in_iterations(
            step,
            policy.prefill == "separate",
            policy.max_batched_tokens or math.inf,
            memory
            and reference.Memory(
                memory.kv_tokens, memory.block_tokens if memory.reserve == "paged" else None
            ),
        )
    else:
        run = reference.batch_in_iterations(step, policy.pad)
        serve = reference.batches(run, delay_of(policy), policy.release == "own")
    replayed: list[Any] = reference.replay(requests, serve, case.slots, case.replicas)
    return replayed


def delay_of(policy: BatchPolicy) -> float | None:
    """In ticks, None without end."""
    if isinstance(policy, Static) or policy.max_delay_ms == math.inf:
        return None
    return policy.max_delay_ms * TICKS_PER_S / 1000


def assert_same(outcome: Outcome, expected: list[Any], rel: float) -> None:
    """A ``rel`` of 0 is the same to the last bit."""
    for name in TIMES:
        seconds = [getattr(request, name) / TICKS_PER_S for request in expected]
        assert getattr(outcome, f"{name}_s").tolist() == pytest.approx(seconds, rel, abs=0), name
    busy = sum(request.busy for request in expected) / TICKS_PER_S
    assert outcome.busy_slot_s == pytest.approx(busy, rel, abs=0)
    assert outcome.preemptions == sum(request.preemptions for request in expected)
    if outcome.preempted_s is not None:
        own_s = (outcome.own_end_s - outcome.start_s - outcome.preempted_s).tolist()
        assert own_s == pytest.approx([r.busy / TICKS_PER_S for r in expected], rel, abs=rel)


def same_times(left: Outcome, right: Outcome) -> bool:
    return all(
        np.array_equal(getattr(left, f"{name}_s"), getattr(right, f"{name}_s")) for name in TIMES
    )


delays = st.just(math.inf) | st.integers(0, 200).map(milliseconds)
releases = st.sampled_from(get_args(Release))
prefills = st.sampled_from(get_args(Prefill))
batch_policies: st.SearchStrategy[Policy] = st.one_of(
    st.builds(Static, release=releases, pad=st.booleans()),
    st.builds(Dynamic, delays, release=releases, pad=st.booleans()),
    st.builds(Binned, st.integers(1, 5), delays, release=releases, pad=st.booleans()),
)
continuous_policies: st.SearchStrategy[Policy] = st.builds(
    Continuous,
    prefill=prefills,
    max_batched_tokens=st.none() | st.integers(1, 40),
)


@st.composite
def limited(draw: st.DrawFn, *, crowded: bool = False) -> tuple[Case, Memory]:
    """Room for the largest request, and for little more."""
    case = draw(cases(crowded=crowded))
    reserve: Reserve = "paged" if crowded else draw(st.sampled_from(["paged", "max_tokens"]))
    block = draw(st.integers(1, 16))
    if reserve == "max_tokens":
        least = max(request.prompt + request.cap for request in case.requests)
    else:
        most = max(request.prompt + request.output - 1 for request in case.requests)
        least = (math.ceil(most / block) + 1) * block
    room = draw(st.sampled_from([0, 1, 20, 40] if crowded else [0, 1, 40, 400]))
    return case, Memory(least + draw(st.integers(0, room)), block, reserve)


seeds = st.integers(0, 2**32)


# Against the slow simulator


@settings(max_examples=300)
@given(cases(), batch_policies)
def test_batches_are_the_slow_ones(reference: ModuleType, case: Case, policy: Policy) -> None:
    assert_same(outcome_of(case, policy), expected_of(reference, case, policy), rel=0)


@settings(max_examples=300)
@given(cases(), continuous_policies)
def test_continuous_is_the_slow_one(reference: ModuleType, case: Case, policy: Policy) -> None:
    assert_same(outcome_of(case, policy), expected_of(reference, case, policy), rel=0)


@settings(max_examples=300)
@given(limited() | limited(crowded=True), continuous_policies)
def test_limited_memory_is_the_slow_one(
    reference: ModuleType, limited: tuple[Case, Memory], policy: Policy
) -> None:
    expected = expected_of(reference, limited[0], policy, limited[1])
    event(f"preemptions: {min(sum(request.preemptions for request in expected), 10)}")
    assert_same(outcome_of(limited[0], policy, limited[1]), expected, rel=0)


@settings(max_examples=300)
@given(limited() | limited(crowded=True), batch_policies | continuous_policies, seeds)
def test_times_off_the_beat_agree_to_rounding(
    reference: ModuleType, limited: tuple[Case, Memory], policy: Policy, seed: int
) -> None:
    case, memory = off_the_beat(limited[0], seed), limited[1]
    expected = expected_of(reference, case, policy, memory)
    assert_same(outcome_of(case, policy, memory), expected, rel=1e-9)


# What must hold whatever the input


@given(cases(), st.booleans(), prefills)
def test_on_one_slot_greedy_batches_and_refilling_agree(
    case: Case, pad: bool, prefill: Prefill
) -> None:
    one = replace(case, slots=1)
    static, dynamic, continuous = (
        outcome_of(one, policy)
        for policy in (Static(pad=pad), Dynamic(0, pad=pad), Continuous(prefill))
    )
    assert same_times(static, dynamic)
    assert same_times(static, continuous)


@given(cases(), st.integers(1, 60), prefills)
def test_equal_lengths_leave_nothing_to_gain_under_backlog(
    case: Case, output: int, prefill: Prefill
) -> None:
    requests = [replace(request, arrival=0, output=output) for request in case.requests]
    even = replace(case, requests=requests)
    assert same_times(outcome_of(even, Static(pad=False)), outcome_of(even, Continuous(prefill)))


@given(cases(), batch_policies | continuous_policies)
def test_a_base_and_nothing_else_is_a_pace_per_token(case: Case, policy: Policy) -> None:
    """For batches always, for continuous where arrivals fall on the beat of the iterations."""
    beat = max(1, int(case.decoding[0]))
    on_the_beat = [replace(request, arrival=request.arrival * beat) for request in case.requests]
    bare = replace(
        case,
        requests=on_the_beat if isinstance(policy, Continuous) else case.requests,
        decoding=(beat, 0, 0),
        prefilling=(0, 0),
        prefill_base=None,
        pieces=(),
    )
    unchunked = Continuous() if isinstance(policy, Continuous) else policy
    per_token = simulate(
        workload_of(bare),
        unchunked,
        PerToken(milliseconds(beat)),
        slots=case.slots,
        replicas=case.replicas,
    )
    assert same_times(outcome_of(bare, unchunked), per_token)


@given(cases(), st.integers(1, 70), st.integers(1, 20))
def test_a_lone_prompt_is_prefilled_in_as_many_chunks_as_it_takes(
    case: Case, prompt: int, budget: int
) -> None:
    lone = replace(case.requests[0], arrival=0, prompt=prompt, cached=0)
    base = case.decoding[0] if case.prefill_base is None else case.prefill_base
    per_prefill, per_prefill2 = case.prefilling
    outcome = outcome_of(replace(case, requests=[lone]), Continuous(max_batched_tokens=budget))
    # However it is chunked, what its attention takes is the square of the whole.
    took = base * math.ceil(prompt / budget) + per_prefill * prompt + per_prefill2 * prompt**2
    assert outcome.first_token_s.tolist() == [took / TICKS_PER_S]


@given(cases(), prefills)
def test_limits_that_never_bind_change_nothing(case: Case, prefill: Prefill) -> None:
    free = outcome_of(case, Continuous(prefill))
    assert same_times(free, outcome_of(case, Continuous(prefill, max_batched_tokens=10_000)))
    for reserve in get_args(Reserve):
        assert same_times(free, outcome_of(case, Continuous(prefill), Memory(10_000, 7, reserve)))


@given(limited() | limited(crowded=True), batch_policies | continuous_policies)
def test_what_holds_for_every_outcome(limited: tuple[Case, Memory], policy: Policy) -> None:
    case, memory = limited
    outcome = outcome_of(case, policy, memory)
    assert (outcome.arrival_s <= outcome.start_s).all()
    assert (outcome.start_s <= outcome.first_token_s).all()
    assert (outcome.first_token_s <= outcome.own_end_s).all()
    assert (outcome.own_end_s <= outcome.end_s).all()
    assert (outcome.end_s <= outcome.held_until_s).all()
    in_slots_s = float((outcome.own_end_s - outcome.start_s).sum())
    if outcome.preemptions == 0:
        assert outcome.busy_slot_s == pytest.approx(in_slots_s)
        for instant in outcome.start_s:
            held = (outcome.start_s <= instant) & (instant < outcome.held_until_s)
            assert held.sum() <= case.slots * case.replicas
    assert outcome.busy_slot_s <= in_slots_s * (1 + 1e-12)
    slots_s = outcome.slots * float(outcome.end_s.max())
    assert outcome.busy_slot_s <= slots_s * (1 + 1e-12)
    if slots_s > 0:
        idle_share = 1 - outcome.busy_slot_s / slots_s
        assert figures(outcome)["idle_share"] == pytest.approx(idle_share, abs=1e-12)


@given(limited() | limited(crowded=True), st.just(Static()) | continuous_policies)
def test_first_come_first_served_in_every_replica(
    limited: tuple[Case, Memory], policy: Policy
) -> None:
    case, memory = limited
    start_s = outcome_of(case, policy, memory).start_s
    order = sorted(range(len(start_s)), key=lambda row: (case.requests[row].arrival, row))
    for replica in range(case.replicas):
        assert (np.diff(start_s[order[replica :: case.replicas]]) >= 0).all()


@given(limited() | limited(crowded=True), batch_policies | continuous_policies)
def test_a_slower_server_with_later_arrivals_only_stretches_time(
    limited: tuple[Case, Memory], policy: Policy
) -> None:
    case, memory = limited
    slow = replace(
        case,
        requests=[replace(request, arrival=4 * request.arrival) for request in case.requests],
        decoding=slower(case.decoding),
        prefilling=(4 * case.prefilling[0], 4 * case.prefilling[1]),
        prefill_base=None if case.prefill_base is None else 4 * case.prefill_base,
        pieces=tuple((from_seqs, slower(terms)) for from_seqs, terms in case.pieces),
    )
    slow_policy = (
        replace(policy, max_delay_ms=4 * policy.max_delay_ms)
        if isinstance(policy, Dynamic | Binned)
        else policy
    )
    quick, stretched = outcome_of(case, policy, memory), outcome_of(slow, slow_policy, memory)
    for name in TIMES:
        assert np.array_equal(getattr(stretched, f"{name}_s"), 4 * getattr(quick, f"{name}_s"))
    assert stretched.preemptions == quick.preemptions


def slower(terms: Decoding) -> Decoding:
    base, per_seq, per_kv = terms
    return 4 * base, 4 * per_seq, 4 * per_kv


@given(limited(), batch_policies | continuous_policies, st.randoms(use_true_random=False))
def test_rows_may_come_in_any_order(
    limited: tuple[Case, Memory], policy: Policy, random: Random
) -> None:
    case, memory = limited
    distinct = [replace(request, arrival=7 * row) for row, request in enumerate(case.requests)]
    rows = list(range(len(distinct)))
    random.shuffle(rows)
    shuffled = replace(case, requests=[distinct[row] for row in rows])
    straight = outcome_of(replace(case, requests=distinct), policy, memory).end_s
    assert np.array_equal(outcome_of(shuffled, policy, memory).end_s, straight[rows])
