"""One load from several processes or machines: dealt out, started at one instant, brought together.

Ray starts the workers and collects what they saw.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from slotwise_workflows.errors import SlotwiseError, UsageError
from slotwise_workflows.probe.load.client_report import worst_of
from slotwise_workflows.probe.load.generator import MOST_IN_FLIGHT
from slotwise_workflows.probe.load.model import Schedule, Sent
from slotwise_workflows.probe.load.worker import Job, Worker
from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.wire.client import Connection

OnSeen = Callable[[int, Sequence[Sample]], None]
"""Told once how many requests were sent, and which were answered, also where Ctrl-C ends it."""

_LEAD_S = 0.5  # from the last word with the workers to the common start
_READY_S = 120.0
_HEARD_S = 30.0  # beyond the end of its time: then a worker is taken for lost
_SO_FAR_S = 10.0  # for all workers, asked amid their work
_OWN = {"client", "clock", "deadline"}  # of a connection: each process has its own


def spread_load(
    load: Schedule,
    connection: Connection,
    *,
    stage: Stage,
    workers: int,
    seconds: float,
    address: str | None = None,
    key_variable: str | None = None,
    give_up_after: int | None = None,
    on_seen: OnSeen = lambda _requests, _samples: None,
) -> Sent:
    """Sends a schedule from several processes that start at one instant.

    It is dealt out in turn, request by request. The start is agreed on by wall clocks, whose
    differences are measured; from there each process goes by its own monotonic clock. Samples are
    named ``worker-1/...`` and have their times moved to this process's clock, as if all had started
    at once: off by ``start_uncertainty_s`` at most.

    Args:
        load: What is sent.
        connection: Where to; its client is not used.
        stage: Of the samples.
        workers: How many processes.
        seconds: After which requests are given up, from now: starting the workers counts.
        address: Of an existing Ray cluster; None starts a Ray of our own on this machine.
        key_variable: Environment variable of the workers' machines that holds the API key.
        give_up_after: Failed requests of a worker after which it sends no more.
        on_seen: See `OnSeen`.

    Returns:
        All samples in the order in which they were due; the worst of the clients' reports. Requests
        of a worker that was lost are ``unsent``, and ``worker_lost`` is among the bottlenecks.

    Raises:
        MissingExtraError: Ray is not installed.
        EndpointError: The cluster cannot be reached, or runs other versions.
        UsageError: A worker's machine lacks the key; the cluster has too few processors.
        SlotwiseError: Every worker was lost.
        KeyboardInterrupt: Ctrl-C; the workers have handed over what they had.
    """
    from slotwise_workflows.ray_session import told

    settings = {f.name: getattr(connection, f.name) for f in fields(connection)}
    plain = {name: value for name, value in settings.items() if name not in _OWN}
    each = max(1, MOST_IN_FLIGHT // workers)
    jobs = [
        Job(share, plain, stage, key_variable, each, give_up_after, seconds)
        for share in split(load, workers)
    ]
    asked_s = time.perf_counter()
    with _actors(len(jobs), address) as (ray, actors):
        try:
            return _together(ray, actors, jobs, asked_s, on_seen)
        except ray.exceptions.RayError as error:
            raise told(error, hint="Send from one process") from None


def split(load: Schedule, workers: int) -> list[Schedule]:
    """Deals a schedule out in turn; workers that would get nothing get no share."""
    count = max(1, min(workers, len(load)))
    order = np.argsort(load.at_s, kind="stable")
    return [
        Schedule([load.requests[row] for row in order[w::count]], load.at_s[order[w::count]])
        for w in range(count)
    ]


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
        kind = ray.remote(
            num_cpus=1,
            max_restarts=0,
            max_concurrency=2,  # one sends, the other may be asked for what there is so far
            scheduling_strategy="SPREAD",
        )(Worker)
        actors = [kind.remote(state_of_the_code()) for _ in range(count)]
        try:
            yield ray, actors
        finally:
            for actor in actors:
                with suppress(Exception):  # it may be what was lost
                    ray.kill(actor)


def _together(
    ray: Any, actors: Sequence[Any], jobs: Sequence[Job], asked_s: float, on_seen: OnSeen
) -> Sent:
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
    start_wall_ns = time.time_ns() + round(_LEAD_S * 1e9)
    start_ns = time.perf_counter_ns() + start_wall_ns - time.time_ns()
    try:
        running = [
            actor.send.remote(replace(job, seconds=left_s), start_wall_ns + ahead_ns)
            for actor, job, (ahead_ns, _) in zip(actors, jobs, clocks, strict=True)
        ]
        seen = _heard(ray, running, start_ns, left_s + _LEAD_S + _HEARD_S)
    except KeyboardInterrupt:
        on_seen(*_so_far(ray, actors, start_ns))
        raise
    lost = sum(len(job.share) for job, part in zip(jobs, seen, strict=True) if part is None)
    sent = merged(
        [part for part in seen if part is not None],
        lost=lost,
        uncertainty_s=max(half for _, half in clocks) / 1e9,
    )
    on_seen(len(sent.samples), sent.samples)
    return sent


def _clock_of(ray: Any, actor: Any, key_variable: str | None) -> tuple[int, int]:
    """By how many nanoseconds a worker's wall clock is ahead, and half of what that is unsure by.

    The answer was made between asking and hearing it (Cristian, 1989).
    """
    asked_ns = time.time_ns()
    there_ns = ray.get(actor.wall_ns.remote(key_variable))
    heard_ns = time.time_ns()
    return there_ns - (asked_ns + heard_ns) // 2, (heard_ns - asked_ns) // 2


def _heard(ray: Any, running: Sequence[Any], start_ns: int, patience_s: float) -> list[Sent | None]:
    """What each worker saw, by this process's clock; None of one that was lost.

    All have until the same instant.

    Raises:
        SlotwiseError: Every one was.
    """
    seen: list[Sent | None] = []
    ended, _ = ray.wait(list(running), num_returns=len(running), timeout=patience_s)
    for number, reference in enumerate(running, start=1):
        if reference not in ended:
            seen.append(None)
            continue
        try:
            sent, own_start_ns = ray.get(reference)
        except ray.exceptions.RayActorError:
            seen.append(None)
            continue
        samples = _moved(sent.samples, number, start_ns - own_start_ns)
        seen.append(replace(sent, samples=samples))
    if all(part is None for part in seen):
        raise SlotwiseError("every worker was lost", hint="Send from one process")
    return seen


def _so_far(ray: Any, actors: Sequence[Any], start_ns: int) -> tuple[int, list[Sample]]:
    """What the workers have sent amid their work, and what was answered."""
    requests, samples = 0, list[Sample]()
    asked = [actor.so_far.remote() for actor in actors]
    told, _ = ray.wait(asked, num_returns=len(asked), timeout=_SO_FAR_S)
    for number, reference in enumerate(asked, start=1):
        if reference not in told:
            continue
        with suppress(ray.exceptions.RayError):  # one that is lost has nothing to hand over
            sent, answered, own_start_ns = ray.get(reference)
            requests += sent
            samples += _moved(answered, number, start_ns - own_start_ns)
    return requests, samples


def _moved(samples: Sequence[Sample], worker: int, by_ns: int) -> list[Sample]:
    """A worker's samples under its name, by this process's clock."""
    stamps = ("scheduled_ns", "sent_ns", "first_token_ns", "last_token_ns", "end_ns")

    def moved(sample: Sample) -> Sample:
        times = {name: getattr(sample, name) for name in stamps}
        later = {name: at + by_ns for name, at in times.items() if at is not None}
        return sample.model_copy(update={"name": f"worker-{worker}/{sample.name}", **later})

    return [moved(sample) for sample in samples]


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
