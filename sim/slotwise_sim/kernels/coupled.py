"""Several servers on one clock, for requests that hang on one another.

Elsewhere each server is simulated apart, and the clock leaps over what can be foreseen. Here it
goes from instant to instant, and an iteration at a time. What a server does in an iteration or a
batch is in `iterations` and `batches`.

Rows are the list that users share. In an open loop every request has a user of its own, who thinks
until it is to arrive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slotwise_sim.compiled import compiled, inlined
from slotwise_sim.kernels.batches import serve_batch
from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.kernels.heap import EVENT, HEAP, expect
from slotwise_sim.kernels.iterations import (
    admit,
    decode,
    lasts,
    only_prefills,
    plan_prefill,
    preempt,
    yield_tokens,
)
from slotwise_sim.kernels.records import Records
from slotwise_sim.kernels.server import Rules, State, idle_servers
from slotwise_sim.kernels.traffic import (
    ITERATIONS,
    LINE,
    SERVER,
    SLOTS,
    TRAFFIC,
    Traffic,
    Way,
    answer,
    arrive,
    next_instant,
    think,
)
from slotwise_sim.workload import Ints


def coupled_servers(
    requests: Records,
    cost: Records,
    way: Records,
    rules: Records,
    servers: int,
    bins: int,
    control: Ints,
) -> int:
    """Serves a list of requests; O(servers + bins + log users) an instant, beside what is served.

    Args:
        requests: In the order of the list, shape (n,), dtype `COUPLED`.
        cost: What iterations take, shape (slots + 1,), dtype `slotwise_sim.costs.ITERATION`.
        way: Shape (1,), dtype `WAY`; 1 <= slots <= n + 1 and 1 <= users <= n.
        rules: Of servers that work in iterations, shape (1,), dtype `RULES`.
        servers: Their number, >= 1.
        bins: Lines of each server, >= 1.
        control: DONE is written, STOP is read.

    Returns:
        How often a request was preempted.
    """
    n, slots, users = len(requests), int(way["slots"][0]), int(way["users"][0])
    traffic = np.zeros(1, TRAFFIC)
    traffic["chosen"] = servers - 1  # after the last comes the first
    working = np.zeros(servers, SERVER)
    working["next_s"] = np.inf
    lines = np.zeros((servers, bins), LINE)
    lines["first"] = n
    states, places, crossings = idle_servers(rules, slots, servers)
    _serve(
        requests,
        cost,
        way[0],
        rules[0],
        traffic[0],
        np.empty(users, EVENT),
        np.empty(users, EVENT),
        working,
        lines,
        np.empty(n, np.int64),
        states,
        places,
        crossings,
        np.empty(slots, np.int64),
        np.empty(slots, HEAP),
        control,
    )
    return int(states["preemptions"].sum())


@compiled
def _serve(
    requests: Records,
    cost: Records,
    way: Way,
    rules: Rules,
    traffic: Traffic,
    arrivals: Records,
    answers: Records,
    servers: Records,
    lines: Records,
    following: Ints,
    states: Records,
    places: Records,
    crossings: Ints,
    members: Ints,
    heap: Records,
    control: Ints,
) -> None:
    for row in range(way.users):
        think(requests, traffic, arrivals, row)
    while traffic.answered < len(requests) and control[STOP] == 0:
        next_s = next_instant(traffic, arrivals, answers, servers)
        stuck = next_s == np.inf  # nobody is on the way or served: all who are left wait for others
        if not stuck:
            traffic.now = next_s
        for s in range(len(servers)):
            server = servers[s]
            if server.next_s == traffic.now:
                if server.busy and way.kind == ITERATIONS:
                    _end_iteration(
                        requests,
                        rules,
                        traffic,
                        answers,
                        server,
                        states[s],
                        places[s],
                        crossings[s],
                        control,
                    )
                server.busy = False
                server.next_s = np.inf
        answer(requests, way, traffic, arrivals, answers, servers)
        control[DONE] = traffic.answered
        arrive(requests, way, traffic, arrivals, servers, lines, following)
        traffic.last_call = stuck or traffic.sent == len(requests)
        for s in range(len(servers)):
            if way.kind == SLOTS:
                _fill_slots(requests, way, traffic, answers, servers[s], lines[s, 0], following)
            elif way.kind == ITERATIONS:
                _begin_iteration(
                    requests,
                    cost,
                    rules,
                    traffic,
                    servers[s],
                    lines[s, 0],
                    following,
                    states[s],
                    places[s],
                    crossings[s],
                )
            else:
                _begin_batch(
                    requests,
                    cost,
                    way,
                    traffic,
                    answers,
                    servers[s],
                    lines[s],
                    following,
                    members,
                    heap,
                )


@inlined
def _fill_slots(
    requests: Records,
    way: Way,
    traffic: Traffic,
    answers: Records,
    server: Any,
    line: Any,
    following: Ints,
) -> None:
    """Those in line take the slots that are free."""
    while line.waiting > 0 and server.in_flight - line.waiting < way.slots:
        row = line.first
        line.first = following[row]
        line.waiting -= 1
        end_s = traffic.now + requests[row].output * way.ms_per_token / 1000
        requests[row].start_s = traffic.now
        requests[row].first_token_s = traffic.now + way.ms_per_token / 1000
        requests[row].own_end_s = end_s
        traffic.due = expect(answers, traffic.due, end_s, row)


@inlined
def _begin_iteration(
    requests: Records,
    cost: Records,
    rules: Rules,
    traffic: Traffic,
    server: Any,
    line: Any,
    following: Ints,
    state: State,
    slots: Records,
    crossings: Ints,
) -> None:
    """A server that is free begins an iteration, if there is anything to do."""
    if server.busy:
        return
    state.now = traffic.now
    state.upcoming = line.first
    admit(requests, rules, state, slots, following)
    line.first = state.upcoming
    if state.waiting + state.decoding == 0:
        return
    preempt(requests, rules, state, slots, crossings)
    batch = 0 if only_prefills(rules, state) else state.decoding
    prefill = plan_prefill(requests, rules, state, slots, batch)
    linear, quadratic = lasts(cost[batch], state, batch, prefill)
    server.busy = True
    server.next_s = traffic.now + (linear + quadratic)
    server.batch = batch
    server.completed = prefill.completed
    server.chunk = prefill.chunk
    server.begun = prefill.begun


@inlined
def _end_iteration(
    requests: Records,
    rules: Rules,
    traffic: Traffic,
    answers: Records,
    server: Any,
    state: State,
    slots: Records,
    crossings: Ints,
    control: Ints,
) -> None:
    """What the iteration has decoded and prefilled is there; some are answered."""
    state.now = traffic.now
    vacancies = state.vacancies
    if server.batch > 0:
        decode(requests, rules, state, slots, crossings, 1, control)
    yield_tokens(requests, rules, state, slots, crossings, server.completed, control)
    if server.chunk > 0:
        state.prefilled = server.begun + server.chunk
    for place in range(vacancies, state.vacancies):
        row = slots[slots[place].vacant].row
        traffic.due = expect(answers, traffic.due, traffic.now, row)


@inlined
def _begin_batch(
    requests: Records,
    cost: Records,
    way: Way,
    traffic: Traffic,
    answers: Records,
    server: Any,
    lines: Records,
    following: Ints,
    members: Ints,
    heap: Records,
) -> None:
    """A server that is free makes a batch of a line that is ready, if there is one."""
    if server.busy:
        return
    ready = _ready(requests, way, traffic, server, lines)
    if ready < 0:
        return
    size = min(lines[ready].waiting, way.slots)
    for place in range(size):
        members[place] = lines[ready].first
        lines[ready].first = following[lines[ready].first]
    lines[ready].waiting -= size
    server.busy = True
    server.next_s = serve_batch(requests, cost, members[:size], traffic.now, way.pad, heap)
    for row in members[:size]:
        end_s = requests[row].held_until_s if way.together else requests[row].own_end_s
        traffic.due = expect(answers, traffic.due, end_s, row)


@inlined
def _ready(requests: Records, way: Way, traffic: Traffic, server: Any, lines: Records) -> int:
    """The line that is ready; of several, the one whose first came first; -1 without any."""
    ready = -1
    for b in range(len(lines)):
        if lines[b].waiting == 0:
            continue
        late_s = requests[lines[b].first].arrival_s + way.max_delay_s
        hopeless = traffic.last_call and late_s == np.inf
        if lines[b].waiting < way.slots and late_s > traffic.now and not hopeless:
            server.next_s = min(server.next_s, late_s)
        elif ready < 0 or _came_before(requests, lines[b].first, lines[ready].first):
            ready = b
    return ready


@inlined
def _came_before(requests: Records, row: int, other: int) -> bool:
    earlier = requests[row].arrival_s < requests[other].arrival_s
    return earlier or (requests[row].arrival_s == requests[other].arrival_s and row < other)
