"""Servers on one clock again, slowly: every instant at which anything happens, one after another.

Written from the meaning alone, like ``reference.py``, of which it takes what one iteration and one
batch do. Who is in flight, who is free and who comes next is counted anew at every instant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

Time = float  # an int where the caller counts in ticks
Request = Any  # of ``reference.py``


class Server(Protocol):
    """One replica."""

    waiting: list[Request]

    def next_instants(self) -> list[Time]:
        """When it ends what it does, or would begin without anybody's help."""

    def end(self, now: Time) -> None:
        """Ends what ends at this instant."""

    def begin(self, now: Time, last_call: bool) -> None:
        """Begins what it can. A request's ``end`` is written as soon as it is known."""


def replay(
    requests: list[Request],
    servers: list[Server],
    *,
    least_busy: bool,
    users: int | None = None,
    think: list[Time] | None = None,
) -> list[Request]:
    """Serves requests as they arrive, or as users send them; gives them as they came.

    ``think`` belongs to the requests in order of arrival, as do the places on the users' list.
    """
    order = sorted(requests, key=lambda request: (request.arrival, request.row))
    place = {request.row: k for k, request in enumerate(order)}
    if users is None or think is None:
        users, think = len(order), [request.arrival for request in order]
    coming = [(think[k], k) for k in range(min(users, len(order)))]
    on_the_list = list(range(len(coming), len(order)))
    in_flight: list[list[Request]] = [[] for _ in servers]
    last = len(servers) - 1

    def known_ends() -> list[Time]:
        return [request.end for sent in in_flight for request in sent if request.end >= 0]

    while coming or any(in_flight):
        instants = [instant for server in servers for instant in server.next_instants()]
        now = min(instants + known_ends() + [instant for instant, _ in coming])
        for server in servers:
            server.end(now)

        answered = [request for sent in in_flight for request in sent if 0 <= request.end <= now]
        for request in sorted(answered, key=lambda request: place[request.row]):
            next(sent for sent in in_flight if request in sent).remove(request)
            if on_the_list:
                k = on_the_list.pop(0)
                coming.append((now + think[k], k))

        for instant, k in sorted(arrival for arrival in coming if arrival[0] <= now):
            coming.remove((instant, k))
            turns = [(last + 1 + step) % len(servers) for step in range(len(servers))]
            last = min(turns, key=lambda s: len(in_flight[s])) if least_busy else turns[0]
            order[k].arrival = instant
            in_flight[last].append(order[k])
            servers[last].waiting.append(order[k])

        _begin(servers, now, last_call=not coming and not on_the_list)
        if not coming and not known_ends():
            _begin(servers, now, last_call=True)
    return requests


def _begin(servers: list[Server], now: Time, *, last_call: bool) -> None:
    for server in servers:
        server.begin(now, last_call)


@dataclass
class PerToken:
    """Refills slots at once; every token takes ``pace``."""

    pace: Time
    slots: int
    waiting: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)

    def next_instants(self) -> list[Time]:
        return [request.end for request in self.running]

    def end(self, now: Time) -> None:
        self.running = [request for request in self.running if request.end > now]

    def begin(self, now: Time, last_call: bool) -> None:
        del last_call
        while self.waiting and len(self.running) < self.slots:
            request = self.waiting.pop(0)
            request.start, request.first_token = now, now + self.pace
            request.busy = self.pace * request.output
            request.own_end = request.end = request.held_until = now + request.busy
            self.running.append(request)


@dataclass
class Iterations:
    """Refills slots between iterations."""

    reference: ModuleType
    step: Any
    separate: bool
    budget: float
    memory: Any
    slots: int
    waiting: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)
    ends: list[Time] = field(default_factory=list)  # of the iteration, if one runs

    def next_instants(self) -> list[Time]:
        return self.ends

    def end(self, now: Time) -> None:
        self.ends = [end for end in self.ends if end > now]

    def begin(self, now: Time, last_call: bool) -> None:
        del last_call
        if self.ends:
            return
        self.reference._admit(self.waiting, self.running, self.slots, self.memory, now)
        if self.running:
            self.reference._grow(self.waiting, self.running, self.separate, self.memory, now)
            end = self.reference._execute(self.running, self.separate, self.budget, self.step, now)
            self.ends = [end]


@dataclass
class Batches:
    """Batches from one line a bin; ``delay`` None waits until no further request can come."""

    run: Any  # (members, now) -> the batch's end
    delay: Time | None
    release_own: bool
    slots: int
    waiting: list[Request] = field(default_factory=list)
    ends: list[Time] = field(default_factory=list)  # of the batch, if one runs

    def lines(self) -> list[list[Request]]:
        bins = sorted({request.bin for request in self.waiting})
        return [[request for request in self.waiting if request.bin == b] for b in bins]

    def late(self, line: list[Request]) -> Time:
        return math.inf if self.delay is None else line[0].arrival + self.delay

    def next_instants(self) -> list[Time]:
        return self.ends or [late for line in self.lines() if (late := self.late(line)) < math.inf]

    def end(self, now: Time) -> None:
        self.ends = [end for end in self.ends if end > now]

    def begin(self, now: Time, last_call: bool) -> None:
        ready = [
            line
            for line in self.lines()
            if len(line) >= self.slots
            or self.late(line) <= now
            or (self.delay is None and last_call)
        ]
        if self.ends or not ready:
            return
        # Who waits stands in order of arrival, whatever its bin.
        line = min(ready, key=lambda line: self.waiting.index(line[0]))
        members = line[: self.slots]
        end = self.run(members, now)
        self.ends = [end]
        for request in members:
            self.waiting.remove(request)
            request.start = now
            request.busy = request.own_end - now
            request.held_until = end
            request.end = request.own_end if self.release_own else end
