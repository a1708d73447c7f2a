"""Users who await answers and balancers that look, with every option, against a slow simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from slotwise_sim import (
    Balancer,
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
    Users,
    Workload,
    simulate,
)
from slotwise_sim.memory import Reserve
from slotwise_sim.policies import BatchPolicy, Prefill, Release

TICKS_PER_S = 1024  # a power of two: whole ticks are exact in seconds, so times compare as equal
TIMES = ("arrival", "start", "first_token", "own_end", "end", "held_until")


def milliseconds(ticks: float) -> float:
    return ticks * 1000 / TICKS_PER_S


@dataclass(frozen=True)
class Request:
    """Instants in ticks, everything else in tokens."""

    arrival: int
    think: int
    output: int
    prompt: int
    cached: int
    cap: int
    predicted: int


@dataclass(frozen=True)
class Terms:
    """A step cost in ticks."""

    decoding: tuple[int, int, int]  # base, per_seq, per_kv
    prefilling: tuple[int, int]  # per_prefill, per_prefill2
    prefill_base: int | None
    pieces: tuple[tuple[int, tuple[int, int, int]], ...]


@dataclass(frozen=True)
class Case:
    """Requests, servers and users; ``users`` None has requests arrive by themselves."""

    requests: list[Request]
    policy: Policy
    cost: int | Terms  # ticks per token, or per iteration
    slots: int
    replicas: int
    balancer: Balancer
    users: int | None
    memory: Memory | None = None


delays = st.just(math.inf) | st.integers(0, 200).map(milliseconds)
releases = st.sampled_from(get_args(Release))
policies: st.SearchStrategy[Policy] = st.one_of(
    st.builds(Static, releases, st.booleans()),
    st.builds(Dynamic, delays, releases, st.booleans()),
    st.builds(Binned, st.integers(1, 4), delays, releases, st.booleans()),
    st.builds(Continuous, st.sampled_from(get_args(Prefill)), st.none() | st.integers(1, 40)),
)
# An iteration that decodes takes some time: one of base and per_seq is above 0.
decoding = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just(0), st.integers(1, 3), st.integers(0, 2)),
)
terms = st.builds(
    Terms,
    decoding=decoding,
    prefilling=st.tuples(st.integers(0, 3), st.integers(0, 1)),
    prefill_base=st.none() | st.integers(0, 40),
    pieces=st.dictionaries(st.integers(2, 9), decoding, max_size=2).map(
        lambda pieces: tuple(sorted(pieces.items()))
    ),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few instants and few lengths: ties in arrivals, in answers, and between the two."""
    horizon = draw(st.sampled_from([0, 5, 40, 400, 4_000]))
    longest = draw(st.sampled_from([1, 3, 30, 60]))
    prompts = draw(st.sampled_from([[0], [0, 1, 2], [0, 1, 16, 40]]))
    requests = st.builds(
        Request,
        arrival=st.integers(0, horizon),
        think=st.sampled_from([0, 0, 0, 0, 1, horizon]) | st.integers(0, horizon),
        output=st.just(longest) | st.integers(1, longest),
        prompt=st.sampled_from(prompts),
        cached=st.sampled_from([0, 0, 1, 15]),
        cap=st.integers(0, 9),
        predicted=st.integers(1, longest),
    )
    least, most = draw(st.sampled_from([(1, 4), (8, 30), (8, 30)]))
    slots, replicas = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    case = Case(
        requests=draw(st.lists(requests, min_size=least, max_size=most).map(consistent)),
        policy=draw(policies),
        cost=draw(st.integers(1, 4) | terms),
        slots=slots,
        replicas=replicas,
        balancer=draw(st.sampled_from(get_args(Balancer))),
        # So many that some servers fill a batch and others do not.
        users=draw(st.none() | st.integers(1, slots * replicas + 2) | st.integers(1, 6)),
    )
    if case.users is None:  # where servers are simulated apart, other tests say what is right
        case = replace(case, balancer="least_busy", replicas=max(2, case.replicas))
    if isinstance(case.cost, int) or not isinstance(case.policy, Continuous):
        return case
    if draw(st.booleans()):
        case = crowded(case)
        return replace(case, memory=draw(memories(case.requests)))
    return replace(case, memory=draw(st.none() | memories(case.requests)))


def crowded(case: Case) -> Case:
    """Slots enough, and requests that come soon and last long: memory runs out."""
    requests = [
        replace(r, arrival=r.arrival % 40, think=r.think % 40, output=r.output + 20, cap=r.cap + 20)
        for r in case.requests
    ]
    users = None if case.users is None else case.users + 4
    return replace(
        case, requests=requests, slots=case.slots + 2, replicas=min(2, case.replicas), users=users
    )


def consistent(requests: list[Request]) -> list[Request]:
    """No more of a prompt is cached than it has, and no output is longer than its cap."""
    return [replace(r, cached=min(r.cached, r.prompt), cap=r.output + r.cap) for r in requests]


@st.composite
def memories(draw: st.DrawFn, requests: list[Request]) -> Memory:
    """Room for the largest request, and for little more."""
    block, spare = draw(st.integers(1, 16)), draw(st.sampled_from([0, 0, 10, 60]))
    reserve: Reserve = draw(st.sampled_from(["paged", "paged", "max_tokens"]))
    if reserve == "max_tokens":
        return Memory(max(r.prompt + r.cap for r in requests) + spare, block, reserve)
    most = max(r.prompt + r.output - 1 for r in requests)
    return Memory((math.ceil(most / block) + 1) * block + spare, block, reserve)


def outcome_of(case: Case, **changed: Any) -> Outcome:
    case = replace(case, **changed)

    def column(name: str) -> Any:
        return np.array([getattr(request, name) for request in case.requests], dtype=np.int64)

    # Times to think are in order of the list, which is that of arrival.
    order = sorted(range(len(case.requests)), key=lambda row: (case.requests[row].arrival, row))
    return simulate(
        Workload(
            column("arrival") / TICKS_PER_S,
            column("output"),
            column("prompt"),
            max_tokens=column("cap"),
            cached_tokens=column("cached"),
            predicted_tokens=column("predicted").astype(np.float64),
        ),
        case.policy,
        cost_of(case.cost),
        slots=case.slots,
        replicas=case.replicas,
        memory=case.memory,
        balancer=case.balancer,
        users=(
            None if case.users is None else Users(case.users, column("think")[order] / TICKS_PER_S)
        ),
    )


def cost_of(cost: int | Terms) -> PerToken | Step:
    if isinstance(cost, int):
        return PerToken(milliseconds(cost))
    base, per_seq, per_kv = map(milliseconds, cost.decoding)
    per_prefill, per_prefill2 = map(milliseconds, cost.prefilling)
    return Step(
        base,
        per_seq,
        per_kv,
        per_prefill,
        per_prefill2,
        prefill_base_ms=None if cost.prefill_base is None else milliseconds(cost.prefill_base),
        pieces=tuple(Piece(seqs, *map(milliseconds, piece)) for seqs, piece in cost.pieces),
    )


def expected_of(reference: ModuleType, coupled: ModuleType, case: Case) -> list[Any]:
    """The slow simulator's requests."""
    requests = [
        reference.Request(row, r.arrival, r.output, r.prompt, r.cached, r.cap)
        for row, r in enumerate(case.requests)
    ]
    if isinstance(case.policy, Binned):
        reference.put_in_bins(requests, [r.predicted for r in case.requests], case.policy.bins)
    by_arrival = sorted(enumerate(case.requests), key=lambda known: (known[1].arrival, known[0]))
    replayed: list[Any] = coupled.replay(
        requests,
        [server_of(reference, coupled, case) for _ in range(case.replicas)],
        least_busy=case.balancer == "least_busy",
        users=case.users,
        think=[request.think for _, request in by_arrival],
    )
    return replayed


def server_of(reference: ModuleType, coupled: ModuleType, case: Case) -> Any:
    policy, cost, memory = case.policy, case.cost, case.memory
    if isinstance(policy, Continuous):
        if isinstance(cost, int):
            return coupled.PerToken(cost, case.slots)
        limit = reference.Memory()
        if memory is not None:
            block = memory.block_tokens if memory.reserve == "paged" else None
            limit = reference.Memory(memory.kv_tokens, block)
        budget = policy.max_batched_tokens or math.inf
        separate = policy.prefill == "separate"
        return coupled.Iterations(
            reference, step_of(reference, cost), separate, budget, limit, case.slots
        )
    if isinstance(cost, int):
        run = reference.batch_per_token(cost)
    else:
        run = reference.batch_in_iterations(step_of(reference, cost), policy.pad)
    return coupled.Batches(run, delay_of(policy), policy.release == "own", case.slots)


def delay_of(policy: BatchPolicy) -> float | None:
    """In ticks, None without end."""
    if isinstance(policy, Static) or policy.max_delay_ms == math.inf:
        return None
    return policy.max_delay_ms * TICKS_PER_S / 1000


def step_of(reference: ModuleType, cost: Terms) -> Any:
    return reference.Step(*cost.decoding, *cost.prefilling, cost.prefill_base, cost.pieces)


@settings(max_examples=600)
@given(cases())
def test_coupled_servers_are_the_slow_ones(
    reference: ModuleType, coupled_reference: ModuleType, case: Case
) -> None:
    outcome, expected = outcome_of(case), expected_of(reference, coupled_reference, case)
    event(f"{type(case.policy).__name__}, {'per token' if isinstance(case.cost, int) else 'step'}")
    event(f"preempted: {outcome.preemptions > 0}")
    for name in TIMES:
        ticks = (getattr(outcome, f"{name}_s") * TICKS_PER_S).tolist()
        assert ticks == [getattr(request, name) for request in expected], name
    assert outcome.busy_slot_s * TICKS_PER_S == sum(request.busy for request in expected)
    assert outcome.preemptions == sum(request.preemptions for request in expected)
    if outcome.preempted_s is not None:
        own_s = outcome.own_end_s - outcome.start_s - outcome.preempted_s
        assert (own_s * TICKS_PER_S).tolist() == [request.busy for request in expected]


# Where a coupled run must be one that is simulated apart


def same_times(left: Outcome, right: Outcome) -> bool:
    return all(
        np.array_equal(getattr(left, f"{name}_s"), getattr(right, f"{name}_s")) for name in TIMES
    )


@given(cases())
def test_users_enough_for_all_requests_make_an_open_loop(case: Case) -> None:
    """Each sends one request, when it is to arrive; on one server nothing tells the two apart.

    But for bins that wait to be full: alone, a server knows of each which request is its last.
    """
    assume(not isinstance(case.policy, Binned) or case.policy.max_delay_ms < math.inf)
    on_time = [replace(request, think=request.arrival) for request in case.requests]
    closed = outcome_of(case, requests=on_time, users=len(on_time), replicas=1)
    assert same_times(closed, outcome_of(case, users=None, replicas=1))


@given(cases())
def test_servers_that_wait_for_nobody_are_dealt_to_like_cards(case: Case) -> None:
    """A batch that waits to be full starts short with the last request of all, not of its own."""
    assume(isinstance(case.policy, Continuous) or delay_of(case.policy) is not None)
    on_time = [replace(request, think=request.arrival) for request in case.requests]
    closed = outcome_of(case, requests=on_time, users=len(on_time), balancer="round_robin")
    assert same_times(closed, outcome_of(case, users=None, balancer="round_robin"))


@given(cases(), st.integers(0, 8))
def test_users_who_never_think_are_a_backlog(case: Case, more: int) -> None:
    """As long as there are as many as slots; requests take the same time whatever runs beside."""
    tireless = [replace(request, think=0) for request in case.requests]
    at_once = [replace(request, arrival=0) for request in case.requests]
    one = replace(case, policy=Continuous(), cost=3, memory=None, replicas=1)
    by_arrival = sorted(range(len(tireless)), key=lambda row: (tireless[row].arrival, row))
    closed = outcome_of(one, requests=tireless, users=case.slots + more).end_s[by_arrival]
    backlog = outcome_of(one, requests=[at_once[row] for row in by_arrival], users=None).end_s
    assert np.array_equal(closed, backlog)


# What must hold whatever the input


@given(cases(), st.integers(1, 12))
def test_users_are_never_more_than_they_are(case: Case, users: int) -> None:
    """Thinking and awaiting fill a user's time: the bound N / (Z + R) on what a closed loop does.

    With what one slot can do it makes the asymptotic bounds, min(N / (Z + S), c / S).
    """
    outcome = outcome_of(case, users=users)
    think_s = sum(request.think for request in case.requests) / TICKS_PER_S
    spent_s = think_s + float((outcome.end_s - outcome.arrival_s).sum())
    assert spent_s <= users * outcome.end_s.max()
    assert outcome.busy_slot_s <= outcome.slots * outcome.held_until_s.max()
    for instant in outcome.arrival_s:
        in_flight = (outcome.arrival_s <= instant) & (instant < outcome.end_s)
        assert in_flight.sum() <= users


@given(cases())
def test_one_server_is_sent_everything_by_any_balancer(case: Case) -> None:
    looked, dealt = (
        outcome_of(case, replicas=1, balancer=balancer) for balancer in get_args(Balancer)
    )
    assert same_times(looked, dealt)


# Worked by hand


def requests_at(arrivals: list[float], tokens: list[int]) -> Workload:
    return Workload(np.array(arrivals), np.array(tokens), np.zeros(len(tokens), dtype=np.int64))


SECOND = PerToken(1000.0)  # a token


def test_servers_that_are_all_idle_are_taken_in_turn() -> None:
    """Of three, the second is busy when the fourth and the fifth request come."""
    workload = requests_at([0, 1, 2, 6, 7, 8], [1, 9, 1, 1, 1, 1])
    outcome = simulate(workload, Continuous(), SECOND, slots=1, replicas=3, balancer="least_busy")
    assert outcome.start_s.tolist() == [0, 1, 2, 6, 7, 8]
    dealt = simulate(workload, Continuous(), SECOND, slots=1, replicas=3)
    assert dealt.start_s.tolist() == [0, 1, 2, 6, 10, 8]


def test_a_member_of_a_batch_is_in_flight_until_its_answer_is_out() -> None:
    """Rows 1 and 3 are the second server's batch, until 4 s; at 2 s row 1 is done.

    Released by itself it no longer counts, and the next request goes there. Else both servers have
    two, and it is the first one's turn, whose batch ends at 5 s.
    """
    workload = requests_at([0, 0, 0, 0, 2, 2], [5, 1, 4, 4, 1, 1])
    release_own, together = (
        simulate(
            workload,
            Dynamic(0, release=release),
            SECOND,
            slots=2,
            replicas=2,
            balancer="least_busy",
        )
        for release in ("own", "batch")
    )
    assert release_own.start_s.tolist() == [0, 0, 0, 0, 4, 5]
    assert together.start_s.tolist() == [0, 0, 0, 0, 5, 4]


def test_users_send_when_they_have_read_and_thought() -> None:
    """Two users, one slot; the third request is of the user who is answered first."""
    outcome = simulate(
        requests_at([5, 6, 7, 8], [2, 3, 1, 1]),
        Continuous(),
        SECOND,
        slots=1,
        users=Users(2, np.array([1.0, 0.0, 10.0, 0.5])),
    )
    assert outcome.arrival_s.tolist() == [1, 0, 13, 5.5]
    assert outcome.start_s.tolist() == [3, 0, 13, 5.5]
    assert outcome.end_s.tolist() == [5, 3, 14, 6.5]


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_batch_that_nobody_can_join_starts_short(replicas: int) -> None:
    """Three users never fill a batch of eight: it starts once all of them wait."""
    outcome = simulate(
        requests_at([0] * 6, [1, 2, 3, 1, 2, 3]),
        Static(),
        SECOND,
        slots=8,
        replicas=replicas,
        users=Users(3, np.arange(6.0)),
    )
    # The last of three arrives at 2 s. With one server all are answered at 5 s; with two, its
    # requests at 5 s and the other's at 4 s.
    assert outcome.start_s[:3].tolist() == [2, 2, 2]
    assert outcome.end_s[:3].tolist() == ([5, 5, 5] if replicas == 1 else [5, 4, 5])
    assert outcome.arrival_s[3:].tolist() == ([8, 9, 10] if replicas == 1 else [7, 9, 10])
    assert outcome.start_s[3:].tolist() == [10, 10, 10]


def test_a_short_batch_waits_while_another_server_answers() -> None:
    """Rows 0 and 2 fill the first server's; row 2's answer brings row 3, which joins row 1."""
    outcome = simulate(
        requests_at([0] * 4, [2, 1, 1, 1]),
        Static(release="own"),
        SECOND,
        slots=2,
        replicas=2,
        users=Users(3, np.zeros(4)),
    )
    assert outcome.start_s.tolist() == [0, 1, 0, 1]


def test_users_out_of_range_are_refused() -> None:
    for count, think_s in [(0, [1.0]), (1, [-1.0]), (1, [math.nan]), (1, [math.inf])]:
        with pytest.raises(ValueError, match=r"users must be|think_s must be"):
            Users(count, np.array(think_s))
    workload = requests_at([0, 0], [1, 1])
    with pytest.raises(ValueError, match="think_s needs 2 times, not 3"):
        simulate(workload, Static(), SECOND, slots=1, users=Users(1, np.zeros(3)))
    with pytest.raises(ValueError, match="balancer must be one of"):
        simulate(workload, Static(), SECOND, slots=1, balancer="random")  # type: ignore[arg-type]
