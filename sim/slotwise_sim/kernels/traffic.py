"""How requests come to servers that share a clock: users send them, a balancer deals them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from slotwise_sim.compiled import inlined
from slotwise_sim.kernels.heap import drop_first, expect
from slotwise_sim.kernels.records import Records
from slotwise_sim.workload import Ints

SLOTS, ITERATIONS, BATCHES = 0, 1, 2


class Way(Protocol):
    """How all servers work: the fields of a record of `WAY`.

    Attributes:
        kind: SLOTS are refilled one by one, or between ITERATIONS, or in BATCHES.
        ms_per_token: Of SLOTS.
        max_delay_s: Of BATCHES: the longest wait of a short one. Infinity waits until it is full
            or nobody can join it any more.
        pad: Of BATCHES: whether finished sequences cost until the batch ends.
        together: Of BATCHES: whether all are answered when the batch ends.
        slots: Of one server.
        users: Most requests on their way, waiting or being served; at most all there are.
        least_busy: Whether a request goes to the server with the fewest in flight, or to the next.
    """

    kind: int
    ms_per_token: float
    max_delay_s: float
    pad: bool
    together: bool
    slots: int
    users: int
    least_busy: bool


class Traffic(Protocol):
    """Where the requests are: the fields of a record of `TRAFFIC`.

    Attributes:
        now: Seconds.
        coming: Requests on their way, in a heap of their arrivals.
        sent: Requests that have arrived.
        due: Answers whose instant is known, in a heap.
        answered: Requests answered so far.
        chosen: The server of the request that came last.
        last_call: Whether nobody can join those who wait.
    """

    now: float
    coming: int
    sent: int
    due: int
    answered: int
    chosen: int
    last_call: bool


_DTYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_}
WAY, TRAFFIC = (
    np.dtype([(name, _DTYPES[kind]) for name, kind in record.__annotations__.items()])
    for record in (Way, Traffic)
)

SERVER = np.dtype(
    [
        ("next_s", np.float64),  # it ends what it does, or begins a short batch; infinity: neither
        ("busy", np.bool_),  # with an iteration or a batch
        ("in_flight", np.int64),  # requests sent to it and not answered
        # What its iteration does:
        ("batch", np.int64),  # sequences that decode
        ("completed", np.int64),  # these three as in `iterations.Prefill`
        ("chunk", np.int64),
        ("begun", np.int64),
    ]
)

LINE = np.dtype(
    [
        ("first", np.int64),  # row; as many as there are rows if nobody waits
        ("last", np.int64),
        ("waiting", np.int64),  # counted for slots and batches only
    ]
)


@inlined
def next_instant(traffic: Traffic, arrivals: Records, answers: Records, servers: Records) -> float:
    """When anything happens again by itself; infinity if nothing does."""
    now = np.inf
    if traffic.coming > 0:
        now = arrivals[0].at_s
    if traffic.due > 0:
        now = min(now, answers[0].at_s)
    for s in range(len(servers)):
        now = min(now, servers[s].next_s)
    return now


@inlined
def answer(
    requests: Records,
    way: Way,
    traffic: Traffic,
    arrivals: Records,
    answers: Records,
    servers: Records,
) -> None:
    """Whoever is answered takes the next request of the list."""
    while traffic.due > 0 and answers[0].at_s == traffic.now:
        servers[requests[answers[0].row].server].in_flight -= 1
        traffic.due = drop_first(answers, traffic.due)
        row = traffic.answered + way.users
        traffic.answered += 1
        if row < len(requests):
            think(requests, traffic, arrivals, row)


@inlined
def think(requests: Records, traffic: Traffic, arrivals: Records, row: int) -> None:
    """From now on a request is on its way."""
    arrival_s = traffic.now + requests[row].think_s
    traffic.coming = expect(arrivals, traffic.coming, arrival_s, row)


@inlined
def arrive(
    requests: Records,
    way: Way,
    traffic: Traffic,
    arrivals: Records,
    servers: Records,
    lines: Records,
    following: Ints,
) -> None:
    """Requests that arrive are dealt to the servers, and wait there."""
    while traffic.coming > 0 and arrivals[0].at_s == traffic.now:
        row = arrivals[0].row
        traffic.coming = drop_first(arrivals, traffic.coming)
        traffic.sent += 1
        traffic.chosen = _choose(servers, traffic.chosen, way.least_busy)
        servers[traffic.chosen].in_flight += 1
        requests[row].arrival_s = traffic.now
        requests[row].server = traffic.chosen
        _line_up(lines[traffic.chosen, requests[row].bin], following, row)


@inlined
def _choose(servers: Records, last: int, least_busy: bool) -> int:
    """The server of the next request: the one after the last, or the first from there as free."""
    chosen = (last + 1) % len(servers)
    if least_busy:
        for step in range(2, len(servers) + 1):
            s = (last + step) % len(servers)
            if servers[s].in_flight < servers[chosen].in_flight:
                chosen = s
    return chosen


@inlined
def _line_up(line: Any, following: Ints, row: int) -> None:
    """A request takes its place behind those who wait."""
    nobody = len(following)
    if line.first == nobody:
        line.first = row
    else:
        following[line.last] = row
    following[row] = nobody
    line.last = row
    line.waiting += 1
