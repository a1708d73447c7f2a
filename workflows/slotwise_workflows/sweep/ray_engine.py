"""The Ray engine: the same points as tasks, on this machine's processors or on a cluster."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.ray_session import check_versions, one_line, session, told
from slotwise_workflows.sweep.batches import MOST_DEATHS, Batch, Task, after_a_death
from slotwise_workflows.sweep.estimate import bytes_of
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.store import state_of_the_code

IN_FLIGHT = 2
"""Tasks a processor: one is computed while the next one travels. The rest waits here."""


def run_ray(
    scenario: Scenario,
    batches: Sequence[Batch],
    *,
    workers: int,
    address: str | None,
) -> Iterator[Sequence[Done]]:
    """Evaluates the points as Ray tasks.

    The scenario is put into the object store once; a task names a batch of points and gives back
    what it found. A few tasks a processor are in flight, so that a long grid does not fill the
    scheduler. A task whose worker or node dies is run again, elsewhere if need be: it finds the
    same, since a point carries its own seed. Closing the generator cancels what is in flight.

    Args:
        scenario: What all points share.
        batches: The points, in tasks.
        workers: Processors of a Ray of our own; a given cluster uses what it has.
        address: Of an existing cluster (``host:port``, ``ray://host:port`` or ``auto``), or None.

    Yields:
        What a task found, as soon as it is done.

    Raises:
        MissingExtraError: Ray is not installed.
        EndpointError: The cluster at ``address`` cannot be reached, or runs other versions.
        SlotwiseError: Ray was lost.
    """
    with session(workers, address, store_bytes=4 * bytes_of(scenario.workload)) as ray:
        try:
            if address is not None:
                check_versions(ray, address)
            yield from _run_tasks(ray, scenario, batches)
        except ray.exceptions.RayError as error:
            raise told(error, hint="Use --engine local") from None


def _run_tasks(ray: Any, scenario: Scenario, batches: Sequence[Batch]) -> Iterator[Sequence[Done]]:
    shared = ray.put(scenario)
    # Ray's own retries have no end where memory runs out, and run a batch as a whole.
    evaluate = ray.remote(num_cpus=1, max_retries=0)(run_if_alike)
    code = state_of_the_code()
    waiting = deque(Task(batch) for batch in batches)
    running: dict[Any, Task] = {}
    try:
        while waiting or running:
            # Nodes come and go.
            processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
            while waiting and len(running) < IN_FLIGHT * processors:
                task = waiting.popleft()
                running[evaluate.remote(code, shared, task.batch)] = task
            ray.wait(list(running), num_returns=1)
            ready, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
            for reference in ready:
                task = running.pop(reference)
                try:
                    yield ray.get(reference)
                except _lost(ray) as error:
                    again = after_a_death(task)
                    waiting.extendleft(reversed(again))
                    if not again:
                        why = f"its worker died {MOST_DEATHS} times: {one_line(error)}"
                        yield [Done(task.batch[0], failure=why)]
    finally:
        for reference in running:
            with contextlib.suppress(Exception):  # the cluster may be what was lost
                ray.cancel(reference, force=True)


def run_if_alike(code: str, scenario: Scenario, batch: Batch) -> list[Done]:
    """A task of a worker, whose node may have joined after the others were asked what they run."""
    if state_of_the_code() != code:
        raise SlotwiseError(
            "a node of the cluster runs another slotwise than this one, or other libraries",
            hint="Install the same on every node",
        )
    return run_points(scenario, batch)


def _lost(ray: Any) -> tuple[type[Exception], ...]:
    """What ends one task and leaves the others alone."""
    found = ray.exceptions
    return (
        found.WorkerCrashedError,
        found.NodeDiedError,
        found.LocalRayletDiedError,  # of the node where the task ran
        found.OutOfMemoryError,
        found.ObjectLostError,
    )
