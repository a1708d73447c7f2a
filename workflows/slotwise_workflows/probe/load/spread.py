"""The same load from several processes or machines, as actors of Ray.

Ray starts the generators and collects what they saw. While they send, each is a process of its own
with nothing of Ray in its timing path.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from slotwise_sim.workload import Floats
from slotwise_workflows.errors import SlotwiseError, UsageError
from slotwise_workflows.probe.load.client_report import worst_of
from slotwise_workflows.probe.load.generator import (
    MOST_IN_FLIGHT,
    Client,
    closed_loop,
    open_loop,
    sender,
)
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.wire.client import Connection, new_client

_LEAD_S = 0.5  # from the last word with the workers to the common start
_READY_S = 120.0
_HEARD_S = 30.0  # beyond the end of its time: then a worker is taken for lost
_OWN = {"client", "clock", "deadline"}  # of a connection: each process has its own


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """Requests and the instants at which they are due; see `open_loop`."""

    requests: Sequence[Planned]
    at_s: Floats

    def __len__(self) -> int:
        return len(self.requests)


@dataclass(frozen=True, slots=True)
class ClosedLoad:
    """The requests of each user; see `closed_loop`."""

    users: Sequence[Sequence[Planned]]
    think_s: Sequence[Sequence[float]] | None = None

    def __len__(self) -> int:
        return sum(len(own) for own in self.users)


Load = OpenLoad | ClosedLoad


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is told. No key: that is in its environment.

    Attributes:
        load: Its share.
        settings: Fields of its `Connection`, but those of the process.
        stage: Of the samples.
        key_variable: Environment variable that holds the API key, or None for no key.
        max_in_flight: See `Client`.
        give_up_after: See `Client`.
        seconds: After which requests are given up, from the start.
    """

    load: Load
    settings: Mapping[str, Any]
    stage: Stage
    key_variable: str | None
    max_in_flight: int
    give_up_after: int | None
    seconds: float


def spread_load(
    load: Load,
    connection: Connection,
    *,
    stage: Stage,
    workers: int,
    seconds: float,
    address: str | None = None,
    key_variable: str | None = None,
    max_in_flight: int = MOST_IN_FLIGHT,
    give_up_after: int | None = None,
) -> Sent:
    """Sends a load from several processes that start at one instant.

    A schedule is dealt out in turn, request by request; users are, user by user. The start is
    agreed on by wall clocks, whose differences are measured; from there each process goes by its
    own monotonic clock. Samples are named ``worker-1/...`` and have their times moved to this
    process's clock, as if all had started at once: off by ``start_uncertainty_s`` at most.

    Args:
        load: What is sent.
        connection: Where to; its client is not used.
        stage: Of the samples.
        workers: How many processes.
        seconds: After which requests are given up, from now: starting the workers counts.
        address: Of an existing Ray cluster; None starts a Ray of our own on this machine.
        key_variable: Environment variable of the workers' machines that holds the API key.
        max_in_flight: Requests unanswered at once, of all workers together.
        give_up_after: Failed requests of a worker after which it sends no more.

    Returns:
        All samples in the order in which they were due; the worst of the clients' reports. Requests
        of a worker that was lost are ``unsent``, and ``worker_lost`` is among the bottlenecks.

    Raises:
        MissingExtraError: Ray is not installed.
        EndpointError: The cluster cannot be reached, or runs other versions.
        UsageError: A worker's machine lacks the key; the cluster has too few processors.
        SlotwiseError: Every worker was lost.
    """
    from slotwise_workflows.ray_session import told

    settings = {f.name: getattr(connection, f.name) for f in fields(connection)}
    plain = {name: value for name, value in settings.items() if name not in _OWN}
    each = max(1, max_in_flight // workers)
    jobs = [
        Job(share, plain, stage, key_variable, each, give_up_after, seconds)
        for share in split(load, workers)
    ]
    asked_s = time.perf_counter()
    with _actors(len(jobs), address) as (ray, actors):
        try:
            return _together(ray, actors, jobs, asked_s)
        except ray.exceptions.RayError as error:
            raise told(error, hint="Send from one process") from None


def split(load: Load, workers: int) -> list[Load]:
    """Deals a load out in turn; workers that would get nothing get no share."""
    count = max(1, min(workers, len(load) if isinstance(load, OpenLoad) else len(load.users)))
    if isinstance(load, OpenLoad):
        order = np.argsort(load.at_s, kind="stable")
        return [
            OpenLoad([load.requests[row] for row in order[w::count]], load.at_s[order[w::count]])
            for w in range(count)
        ]
    thoughts = load.think_s
    return [
        ClosedLoad(load.users[w::count], None if thoughts is None else thoughts[w::count])
        for w in range(count)
    ]


def send_share(job: Job, start_wall_ns: int) -> tuple[Sent, int]:
    """What a worker does: waits for the start, sends its share.

    Args:
        job: Its share.
        start_wall_ns: The start, by this machine's wall clock.

    Returns:
        What became of it, and the start by this process's monotonic clock.
    """
    start_ns = time.perf_counter_ns() + start_wall_ns - time.time_ns()
    return asyncio.run(_send_share(job, start_ns)), start_ns


async def _send_share(job: Job, start_ns: int) -> Sent:
    left_s = (start_ns - time.perf_counter_ns()) / 1e9 + job.seconds
    deadline = asyncio.get_running_loop().time() + left_s
    async with new_client(_key(job.key_variable), job.settings["target"]) as http:
        connection = Connection(
            client=http, clock=time.perf_counter_ns, deadline=deadline, **job.settings
        )
        client = Client(
            sender(connection, job.stage),
            max_in_flight=job.max_in_flight,
            give_up_after=job.give_up_after,
            stop_ns=start_ns + round(job.seconds * 1e9),
        )
        if isinstance(job.load, OpenLoad):
            return await open_loop(client, job.load.requests, job.load.at_s, start_ns=start_ns)
        return await closed_loop(
            client, job.load.users, think_s=job.load.think_s, start_ns=start_ns
        )


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise UsageError(
            f"the environment variable {variable} is not set where a worker runs",
            hint="Set it on every machine of the cluster, before Ray is started there",
        )
    return key


class Worker:
    """A process that sends a share; what Ray makes an actor of."""

    def __init__(self, code: str) -> None:
        from slotwise_workflows.sweep.store import state_of_the_code

        if state_of_the_code() != code:
            raise SlotwiseError(
                "a node of the cluster runs another slotwise than this one, or other libraries",
                hint="Install the same on every node",
            )

    def wall_ns(self, key_variable: str | None) -> int:
        """The time by this machine's wall clock; also, whether the key is here."""
        _key(key_variable)
        return time.time_ns()

    def send(self, job: Job, start_wall_ns: int) -> tuple[Sent, int]:
        """See `send_share`."""
        return send_share(job, start_wall_ns)


@contextmanager
def _actors(count: int, address: str | None) -> Iterator[tuple[Any, list[Any]]]:
    """A connected Ray and the workers on it, which are gone afterwards."""
    from slotwise_workflows.ray_session import check_versions, session
    from slotwise_workflows.sweep.store import state_of_the_code

    with session(count, address) as ray:
        if address is not None:
            check_versions(ray, address)
        processors = int(ray.cluster_resources().get("CPU", 0))
        if processors < count:
            raise UsageError(
                f"{count} workers are asked for, and the cluster has {processors} processors",
                hint="Ask for fewer workers",
            )
        kind = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Worker)
        actors = [kind.remote(state_of_the_code()) for _ in range(count)]
        try:
            yield ray, actors
        finally:
            for actor in actors:
                with suppress(Exception):  # it may be what was lost
                    ray.kill(actor)


def _together(ray: Any, actors: Sequence[Any], jobs: Sequence[Job], asked_s: float) -> Sent:
    """Agrees on a start with all workers, and collects what they saw.

    What it took until they were ready is taken off the jobs' seconds.
    """
    key_variable = jobs[0].key_variable
    try:
        ray.get([actor.wall_ns.remote(key_variable) for actor in actors], timeout=_READY_S)
    except ray.exceptions.GetTimeoutError:
        raise SlotwiseError(
            f"{len(actors)} workers have not started within {_READY_S:g} s",
            hint="Ask for fewer workers, or wait until the cluster is free",
        ) from None
    clocks = [_clock_of(ray, actor, key_variable) for actor in actors]
    left_s = max(0.0, jobs[0].seconds - (time.perf_counter() - asked_s) - _LEAD_S)
    jobs = [replace(job, seconds=left_s) for job in jobs]
    start_wall_ns = time.time_ns() + round(_LEAD_S * 1e9)
    start_ns = time.perf_counter_ns() + start_wall_ns - time.time_ns()
    running = [
        actor.send.remote(job, start_wall_ns + ahead_ns)
        for actor, job, (ahead_ns, _) in zip(actors, jobs, clocks, strict=True)
    ]
    seen, lost = [], 0
    for number, (reference, job) in enumerate(zip(running, jobs, strict=True), start=1):
        try:
            sent, own_start_ns = ray.get(reference, timeout=left_s + _LEAD_S + _HEARD_S)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            lost += len(job.load)
            continue
        seen.append(_moved(sent, f"worker-{number}/", start_ns - own_start_ns))
    if not seen:
        raise SlotwiseError("every worker was lost", hint="Send from one process")
    return merged(seen, lost=lost, uncertainty_s=max(half for _, half in clocks) / 1e9)


def _clock_of(ray: Any, actor: Any, key_variable: str | None) -> tuple[int, int]:
    """By how many nanoseconds a worker's wall clock is ahead, and half of what that is unsure by.

    The answer was made between asking and hearing it (Cristian, 1989).
    """
    asked_ns = time.time_ns()
    there_ns = ray.get(actor.wall_ns.remote(key_variable))
    heard_ns = time.time_ns()
    return there_ns - (asked_ns + heard_ns) // 2, (heard_ns - asked_ns) // 2


def _moved(sent: Sent, prefix: str, by_ns: int) -> Sent:
    stamps = ("scheduled_ns", "sent_ns", "first_token_ns", "last_token_ns", "end_ns")

    def moved(sample: Sample) -> Sample:
        times = {name: getattr(sample, name) for name in stamps}
        later = {name: at + by_ns for name, at in times.items() if at is not None}
        return sample.model_copy(update={"name": prefix + sample.name, **later})

    return replace(sent, samples=[moved(sample) for sample in sent.samples])


def merged(parts: Sequence[Sent], *, lost: int = 0, uncertainty_s: float = 0.0) -> Sent:
    """What several processes saw, as one.

    Args:
        parts: By one clock; at least one.
        lost: Requests of processes that were lost.
        uncertainty_s: By how much their clocks may differ.
    """
    samples = [sample for part in parts for sample in part.samples]
    samples.sort(key=lambda s: s.sent_ns if s.scheduled_ns is None else s.scheduled_ns)
    client = worst_of([part.client for part in parts])
    client = client.model_copy(
        update={"most_in_flight": sum(part.client.most_in_flight for part in parts)}
    )
    if lost:
        why = [*client.bottleneck, "worker_lost"]
        client = client.model_copy(update={"bottleneck": why, "client_bottleneck": True})
    return Sent(samples, client, lost + sum(part.unsent for part in parts), uncertainty_s)
