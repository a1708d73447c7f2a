"""The simulator again, slowly: lists, one event and one iteration after another.

Written from the meaning of the policies alone, without the engine's arrays, heaps or formulas. The
tests hold the compiled loops against it. It reckons in the numbers it is given: in whole ticks no
comparison depends on rounding, and floats serve where ties are not the question.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Time = float  # an int where the caller counts in ticks


# Request, server, clock


@dataclass
class Request:
    """One request; times are -1 until they happen."""

    row: int
    arrival: Time
    output: int
    prompt: int = 0
    cached: int = 0
    cap: int = 0
    bin: int = 0

    start: Time = -1
    first_token: Time = -1
    own_end: Time = -1
    end: Time = -1
    held_until: Time = -1
    busy: Time = 0
    preemptions: int = 0

    # While it runs in iterations:
    entered: Time = -1
    prefilled: int = 0  # of its prompt and of what it had generated when it entered
    to_prefill: int = 0
    decodes: bool = False
    generated: int = 0
    held: int = 0  # blocks, or tokens where the cap is reserved


Serve = Callable[[list[Request], int], None]


def replay(requests: list[Request], serve: Serve, slots: int, replicas: int = 1) -> list[Request]:
    """Deals requests to replicas like cards and serves each replica; gives them as they came."""
    queue = sorted(requests, key=lambda request: (request.arrival, request.row))
    for replica in range(replicas):
        serve([r for place, r in enumerate(queue) if place % replicas == replica], slots)
    return requests


# Cost


@dataclass
class Step:
    """What an iteration takes; `pieces` are (from_seqs, (base, per_seq, per_kv)), ascending."""

    base: Time
    per_seq: Time = 0
    per_kv: Time = 0
    per_prefill: Time = 0
    per_prefill2: Time = 0
    prefill_base: Time | None = None
    pieces: tuple[tuple[int, tuple[Time, Time, Time]], ...] = ()

    def lasts(self, b: int, k: int, p: int, q: int) -> Time:
        base, per_seq, per_kv = self.base, self.per_seq, self.per_kv
        for from_seqs, terms in self.pieces:
            if b >= from_seqs:
                base, per_seq, per_kv = terms
        if b == 0 and self.prefill_base is not None:
            base = self.prefill_base
        return base + per_seq * b + per_kv * k + self.per_prefill * p + self.per_prefill2 * q


# Static, dynamic, binned

RunBatch = Callable[[list[Request], Time], Time]


def batches(run: RunBatch, delay: Time | None, release_own: bool) -> Serve:
    """Batch-at-once serving of one line of requests for each bin.

    ``delay`` None waits for a full batch, or for the last request.
    """

    def serve(queue: list[Request], slots: int) -> None:
        lines = [[r for r in queue if r.bin == b] for b in sorted({r.bin for r in queue})]
        now: Time = 0

        def waiting(line: list[Request]) -> list[Request]:
            return [request for request in line if request.arrival <= now]

        def is_ready(line: list[Request]) -> bool:
            if not waiting(line):
                return False
            if delay is None:
                return len(waiting(line)) >= min(slots, len(line))
            return len(waiting(line)) >= slots or line[0].arrival + delay <= now

        while any(lines):
            ready = [line for line in lines if is_ready(line)]
            if ready:
                line = min(ready, key=lambda line: (line[0].arrival, line[0].row))
                members = waiting(line)[:slots]
                del line[: len(members)]
                started, now = now, run(members, now)
                for request in members:
                    request.start = started
                    request.busy = request.own_end - started
                    request.held_until = now
                    request.end = request.own_end if release_own else now
            else:
                arrivals = [request.arrival for line in lines for request in line]
                delays = (
                    [] if delay is None else [line[0].arrival + delay for line in lines if line]
                )
                now = min(instant for instant in arrivals + delays if instant > now)

    return serve


def put_in_bins(requests: list[Request], predicted: list[float], bins: int) -> None:
    """Cuts the ascending predictions into ``bins`` parts; a value on an edge belongs above it."""
    ascending = sorted(predicted)
    edges = [ascending[i * len(ascending) // bins] for i in range(1, bins)]
    for request, prediction in zip(requests, predicted, strict=True):
        request.bin = len([edge for edge in edges if edge <= prediction])


def batch_per_token(pace: Time) -> RunBatch:
    """Every member takes ``pace`` a token."""

    def run(members: list[Request], now: Time) -> Time:
        for request in members:
            request.first_token = now + pace
            request.own_end = now + pace * request.output
        return max(request.own_end for request in members)

    return run


def batch_in_iterations(step: Step, pad: bool) -> RunBatch:
    """One iteration prefills the whole batch; then it decodes until the longest ends."""

    def run(members: list[Request], now: Time) -> Time:
        uncached = [r.prompt - r.cached for r in members]
        uncached2 = [r.prompt**2 - r.cached**2 for r in members]
        if pad:
            uncached = [max(uncached)] * len(members)
            uncached2 = [max(uncached2)] * len(members)
        now = now + step.lasts(0, 0, sum(uncached), sum(uncached2))
        for request in members:
            request.first_token = request.own_end = now
        for j in range(1, max(r.output for r in members)):
            unfinished = [r for r in members if j < r.output]
            decoding = members if pad else unfinished
            now = now + step.lasts(len(decoding), sum(r.prompt + j for r in decoding), 0, 0)
            for request in unfinished:
                request.own_end = now
        return now

    return run


# Continuous per token


def continuous_per_token(pace: Time) -> Serve:
    """Steps from instant to instant; at each, waiting requests enter while a slot is empty."""

    def serve(queue: list[Request], slots: int) -> None:
        waiting = list(queue)
        running: list[Request] = []
        now: Time = 0
        while waiting or running:
            running = [request for request in running if request.own_end > now]
            while waiting and waiting[0].arrival <= now and len(running) < slots:
                request = waiting.pop(0)
                request.start = now
                request.first_token = now + pace
                request.busy = pace * request.output
                request.own_end = request.end = request.held_until = now + request.busy
                running.append(request)
            instants = [request.own_end for request in running]
            if waiting and waiting[0].arrival > now:
                instants.append(waiting[0].arrival)
            now = min(instants, default=now)

    return serve


# KV memory


@dataclass
class Memory:
    """``block`` tokens make a block; None reserves prompt and cap, counted in tokens."""

    kv_tokens: float = math.inf
    block: int | None = None

    def free(self, running: list[Request]) -> float:
        capacity = self.kv_tokens if self.block is None else self.kv_tokens // self.block
        return capacity - sum(request.held for request in running)

    def takes(self, request: Request) -> int:
        """What a request holds with its prompt and all it has generated."""
        if self.block is None:
            return request.prompt + request.cap
        return math.ceil((request.prompt + request.generated) / self.block)

    def admits(self, request: Request, running: list[Request]) -> bool:
        spare = 0 if self.block is None else 1
        return self.takes(request) + spare <= self.free(running)


# Continuous in iterations


def continuous_in_iterations(
    step: Step, separate: bool, budget: float = math.inf, memory: Memory | None = None
) -> Serve:
    """Each iteration: arrivals, admission, growth and preemption, execution."""
    memory = memory or Memory()

    def serve(queue: list[Request], slots: int) -> None:
        waiting = list(queue)  # those that are still to come stand behind those that wait
        running: list[Request] = []  # in order of admission
        now: Time = 0
        while waiting or running:
            _admit(waiting, running, slots, memory, now)
            if running:
                _grow(waiting, running, separate, memory, now)
                now = _execute(running, separate, budget, step, now)
            else:
                assert waiting[0].arrival > now, "a request that is alone always fits"
                now = waiting[0].arrival

    return serve


def _admit(
    waiting: list[Request], running: list[Request], slots: int, memory: Memory, now: Time
) -> None:
    while waiting and waiting[0].arrival <= now and len(running) < slots:
        if not memory.admits(waiting[0], running):
            break
        request = waiting.pop(0)
        if request.start < 0:
            request.start = now
        request.entered = now
        request.decodes = False
        request.prefilled = request.cached
        request.to_prefill = request.prompt + request.generated
        request.held = memory.takes(request)
        running.append(request)


def _grow(
    waiting: list[Request], running: list[Request], separate: bool, memory: Memory, now: Time
) -> None:
    """Who decodes stores one token more; where blocks are short, the last to enter leaves."""
    while sum(memory.takes(request) - request.held for request in _decoding(running, separate)) > (
        memory.free(running)
    ):
        victim = running.pop()
        victim.preemptions += 1
        victim.busy += now - victim.entered
        waiting.insert(0, victim)
    for request in _decoding(running, separate):
        request.held = memory.takes(request)


def _execute(running: list[Request], separate: bool, budget: float, step: Step, now: Time) -> Time:
    """Runs one iteration; gives the instant of its end."""
    decoding = _decoding(running, separate)
    unprefilled = [request for request in running if not request.decodes]
    chunks = _whole_prompts if separate else _chunks
    k = sum(request.prompt + request.generated for request in decoding)
    p = q = 0
    advanced = list(decoding)
    for request, tokens in chunks(unprefilled, budget - len(decoding)):
        before, after = request.prefilled, request.prefilled + tokens
        p += tokens
        q += after**2 - before**2
        request.prefilled = after
        if after == request.to_prefill:
            request.decodes = True
            advanced.append(request)
    now = now + step.lasts(len(decoding), k, p, q)
    for request in advanced:
        request.generated += 1
        if request.generated == 1:
            request.first_token = now
        if request.generated == request.output:
            request.busy += now - request.entered
            request.own_end = request.end = request.held_until = now
            running.remove(request)
    return now


def _decoding(running: list[Request], separate: bool) -> list[Request]:
    """The sequences an iteration decodes."""
    decoding = [request for request in running if request.decodes]
    return [] if separate and len(decoding) < len(running) else decoding


def _chunks(unprefilled: list[Request], budget: float) -> list[tuple[Request, int]]:
    """Tokens of each prompt, in order; behind an unfinished one the others keep their turn."""
    chunks = []
    for request in unprefilled:
        missing = request.to_prefill - request.prefilled
        tokens = int(min(missing, max(budget, 0)))
        budget -= tokens
        chunks.append((request, tokens))
        if tokens < missing:
            break
    return chunks


def _whole_prompts(unprefilled: list[Request], budget: float) -> list[tuple[Request, int]]:
    """Prompts taken whole; the first that would exceed the budget ends it, but never the first."""
    chunks: list[tuple[Request, int]] = []
    for request in unprefilled:
        tokens = request.to_prefill - request.prefilled
        if chunks and tokens > budget:
            break
        budget -= tokens
        chunks.append((request, tokens))
    return chunks
