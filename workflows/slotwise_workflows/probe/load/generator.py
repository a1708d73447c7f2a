"""The load generator: open loop by a schedule, closed loop by users who await their own answers.

Nothing but asyncio is in the timing path. Neither loop ever waits for a group of answers: a client
that does makes batches of its own, and takes them for the server's.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from slotwise_sim.workload import Floats
from slotwise_workflows.probe.load.client_report import client_report, watch_loop
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wire.client import Clock, Connection, ask

Send = Callable[[Planned], Awaitable[Sample]]
"""Sends one request and follows its answer; a fault is part of the sample."""

MOST_IN_FLIGHT = 1000
SPIN_S = 0.02 if sys.platform == "win32" else 0.0015
"""Event loops wake as late as this: Windows by its clock's tick of 15.6 ms, others by epoll's
millisecond. So long before an instant, waiting turns into asking again and again."""


@dataclass(frozen=True, slots=True)
class Client:
    """How a load is sent.

    Attributes:
        send: Sends one request.
        clock: Nanoseconds of a clock that never steps back, the one that `send` stamps with.
        cpu_clock: Nanoseconds of this process's processor time.
        max_in_flight: Requests unanswered at once; more wait, and the report tells it.
        spin_s: See `SPIN_S`; 0 sleeps up to the instant.
        give_up_after: Failed requests after which no more are sent; None sends all.
        stop_ns: An instant of the clock after which no more are sent; None sends all.
        on_sample: Hears of each request as soon as it is answered, so that what is interrupted
            keeps what it has.
    """

    send: Send
    clock: Clock = time.perf_counter_ns
    cpu_clock: Clock = time.process_time_ns
    max_in_flight: int = MOST_IN_FLIGHT
    spin_s: float = SPIN_S
    give_up_after: int | None = None
    stop_ns: int | None = None
    on_sample: Callable[[Sample], None] = lambda _: None


def sender(connection: Connection, stage: Stage) -> Send:
    """Sends over the wire: `slotwise_workflows.probe.wire.client.ask`, the rest bound."""

    async def send(planned: Planned) -> Sample:
        return await ask(
            connection,
            stage=stage,
            name=planned.name,
            trial=planned.trial,
            tokens=planned.tokens,
            prompt=planned.prompt,
        )

    return send


def tallied(tally: Tally, connection: Connection, stage: Stage) -> Client:
    """A client that sends over the wire and keeps a tally of what it sends."""
    send = sender(connection, stage)

    async def counted(planned: Planned) -> Sample:
        tally.sending()
        return await send(planned)

    return Client(counted, clock=connection.clock, on_sample=tally.answered)


async def open_loop(
    client: Client, requests: Sequence[Planned], at_s: Floats, *, start_ns: int | None = None
) -> Sent:
    """Sends each request at its instant, whatever became of those before.

    One dispatcher goes through the instants; answers are followed by tasks of their own. The
    samples' ``scheduled_ns`` is the instant at which each was due, also where it went late.

    Args:
        client: How to send.
        requests: n requests.
        at_s: Seconds after the start at which each is due, shape (n,), in any order.
        start_ns: The start on the client's clock; now if left out.

    Raises:
        ValueError: Shapes differ, or an instant is negative or not finite.
    """
    if at_s.shape != (len(requests),) or not (at_s >= 0).all() or (at_s == float("inf")).any():
        raise ValueError("at_s needs one finite instant >= 0 for each request")
    begin_ns = client.clock() if start_ns is None else start_ns
    due_ns = [begin_ns + round(float(at) * 1e9) for at in at_s]
    state = _State(client, len(requests))

    async def dispatch() -> None:
        async with asyncio.TaskGroup() as answers:
            for index in sorted(range(len(requests)), key=due_ns.__getitem__):
                await state.due(due_ns[index])
                if not await state.enter():
                    break
                answers.create_task(
                    state.one(index, requests[index], due_ns[index], scheduled=True)
                )

    return await _watched(state, dispatch)


async def closed_loop(
    client: Client,
    users: Sequence[Sequence[Planned]],
    *,
    think_s: Sequence[Sequence[float]] | None = None,
) -> Sent:
    """Each user sends the next request as soon as the own answer has come, and nobody else's.

    A request is due when its user's last answer has ended and the time to think is over; the delay
    of the client is counted from there. ``scheduled_ns`` stays empty: nothing was scheduled.

    Args:
        client: How to send.
        users: The requests of each user, in order.
        think_s: Seconds that each user thinks before each of these; None never thinks.
    """
    begin_ns = client.clock()
    state = _State(client, sum(len(own) for own in users))
    first = 0

    async def user(first: int, own: Sequence[Planned], thoughts: Sequence[float]) -> None:
        due_ns = begin_ns
        for offset, (planned, thought) in enumerate(zip(own, thoughts, strict=True)):
            due_ns += round(thought * 1e9)
            await state.due(due_ns)
            if not await state.enter():
                return
            due_ns = (await state.one(first + offset, planned, due_ns, scheduled=False)).end_ns

    async def everybody() -> None:
        nonlocal first
        async with asyncio.TaskGroup() as group:
            for number, own in enumerate(users):
                thoughts = [0.0] * len(own) if think_s is None else think_s[number]
                group.create_task(user(first, own, thoughts))
                first += len(own)

    return await _watched(state, everybody)


async def until(instant_ns: int, clock: Clock, spin_s: float, over: asyncio.Event) -> None:
    """Waits for an instant of a clock: asleep until shortly before, then awake; or until it's over.

    While awake it yields at every turn, so that answers are stamped meanwhile.
    """
    spin_ns = round(spin_s * 1e9)
    while (left_ns := instant_ns - clock()) > 0 and not over.is_set():
        if left_ns <= spin_ns:
            await asyncio.sleep(0)
            continue
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), (left_ns - spin_ns) / 1e9)


@dataclass(slots=True)
class _State:
    """What a running load knows of itself."""

    client: Client
    requests: int
    samples: dict[int, Sample] = field(default_factory=dict)
    delays_ns: list[int] = field(default_factory=list)
    in_flight: int = 0
    most: int = 0
    held_back: int = 0
    failed: int = 0
    gave_up: asyncio.Event = field(default_factory=asyncio.Event)
    room: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.room = asyncio.Semaphore(self.client.max_in_flight)

    async def due(self, instant_ns: int) -> None:
        """Waits for an instant, or for the end, whichever comes first."""
        stop_ns = self.client.stop_ns
        first_ns = instant_ns if stop_ns is None else min(instant_ns, stop_ns)
        await until(first_ns, self.client.clock, self.client.spin_s, self.gave_up)

    async def enter(self) -> bool:
        """Waits until one more may be in flight; False if none may be sent any more."""
        held_back = self.room.locked()
        await self.room.acquire()
        if self.over:
            self.room.release()
            return False
        self.held_back += held_back
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        return True

    def leave(self) -> None:
        self.in_flight -= 1
        self.room.release()

    @property
    def over(self) -> bool:
        """Whether too many failed, or the time is up."""
        stop_ns = self.client.stop_ns
        return self.gave_up.is_set() or (stop_ns is not None and self.client.clock() >= stop_ns)

    async def one(self, index: int, planned: Planned, due_ns: int, *, scheduled: bool) -> Sample:
        self.delays_ns.append(max(0, self.client.clock() - due_ns))
        try:
            sample = await self.client.send(planned)
        finally:
            self.leave()
        if scheduled:
            sample = sample.model_copy(update={"scheduled_ns": due_ns})
        self.samples[index] = sample
        self.failed += not sample.answered
        if self.client.give_up_after is not None and self.failed >= self.client.give_up_after:
            self.gave_up.set()
        self.client.on_sample(sample)
        return sample


async def _watched(state: _State, work: Callable[[], Awaitable[None]]) -> Sent:
    """Runs a load with an eye on the client itself."""
    client, lags_ns = state.client, list[int]()
    watching = asyncio.create_task(watch_loop(lags_ns, client.clock))
    wall_ns, busy_ns = client.clock(), client.cpu_clock()
    try:
        await work()
    finally:
        watching.cancel()
    report = client_report(
        delays_ns=state.delays_ns,
        lags_ns=lags_ns,
        wall_ns=client.clock() - wall_ns,
        busy_ns=client.cpu_clock() - busy_ns,
        most_in_flight=state.most,
        held_back=state.held_back,
    )
    samples = [state.samples[index] for index in sorted(state.samples)]
    return Sent(samples, report, unsent=state.requests - len(samples))
