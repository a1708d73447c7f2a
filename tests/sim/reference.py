"""The simulator again, slowly: lists, whole numbers, one event after another.

Written from the meaning of the policies alone, without the engine's arrays, heaps or formulas, and
in integer ticks so that no comparison depends on rounding. The tests hold the compiled loops
against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Request:
    """One request; times in ticks, None until they happen."""

    row: int
    arrival: int
    tokens: int
    start: int = -1
    first_token: int = -1
    own_end: int = -1
    end: int = -1
    held_until: int = -1


Serve = Callable[[list[Request], int, int], None]


def replay(
    arrivals: list[int], tokens: list[int], serve: Serve, slots: int, replicas: int, pace: int
) -> list[Request]:
    """Deals requests to replicas like cards, serves each replica, gives requests in row order."""
    requests = [Request(row, *both) for row, both in enumerate(zip(arrivals, tokens, strict=True))]
    queue = sorted(requests, key=lambda request: (request.arrival, request.row))
    for replica in range(replicas):
        serve([r for place, r in enumerate(queue) if place % replicas == replica], slots, pace)
    return requests


def continuous(queue: list[Request], slots: int, pace: int) -> None:
    """Steps from instant to instant; at each, waiting requests enter while a slot is empty."""
    waiting = list(queue)
    running: list[Request] = []
    now = 0
    while waiting or running:
        running = [request for request in running if request.own_end > now]
        while waiting and waiting[0].arrival <= now and len(running) < slots:
            request = waiting.pop(0)
            _run(request, now, pace)
            request.end = request.held_until = request.own_end
            running.append(request)
        instants = [request.own_end for request in running]
        if waiting and waiting[0].arrival > now:
            instants.append(waiting[0].arrival)
        now = min(instants, default=now)


def batches(delay: int | None, release_own: bool) -> Serve:
    """Batch-at-once serving; ``delay`` None waits for a full batch, or for the last request."""

    def serve(queue: list[Request], slots: int, pace: int) -> None:
        to_come = list(queue)
        waiting: list[Request] = []
        free_at = 0
        now = 0
        while to_come or waiting:
            while to_come and to_come[0].arrival <= now:
                waiting.append(to_come.pop(0))
            full = len(waiting) >= slots or (delay is None and not to_come)
            late = delay is not None and bool(waiting) and now - waiting[0].arrival >= delay
            if now >= free_at and waiting and (full or late):
                members, waiting = waiting[:slots], waiting[slots:]
                for request in members:
                    _run(request, now, pace)
                free_at = max(request.own_end for request in members)
                for request in members:
                    request.held_until = free_at
                    request.end = request.own_end if release_own else free_at
                continue
            instants = [free_at] if free_at > now else []
            if to_come:
                instants.append(to_come[0].arrival)
            if waiting and delay is not None:
                instants.append(waiting[0].arrival + delay)
            later = [instant for instant in instants if instant > now]
            now = min(later, default=now)

    return serve


def _run(request: Request, now: int, pace: int) -> None:
    request.start = now
    request.first_token = now + pace
    request.own_end = now + pace * request.tokens
