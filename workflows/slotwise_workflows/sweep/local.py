"""The local engine: this process, or a few more."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from slotwise_workflows.sweep.batches import Batch
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.scenario import Scenario

MOST_DEATHS = 3
"""A point whose process died so often, with nothing else running, is given up."""


def run_local(
    scenario: Scenario, batches: Sequence[Batch], *, workers: int
) -> Generator[Sequence[Done], None, None]:
    """Evaluates the points on this machine.

    One worker is this process. More are started afresh (``spawn``: the same on every platform, and
    no state of this process enters), so a script that calls this needs the usual
    ``if __name__ == "__main__":``. Closing the generator stops them.

    Args:
        scenario: What all points share.
        batches: The points, in tasks.
        workers: Processes, >= 1.

    Yields:
        What a task found, as soon as it is done.
    """
    if workers == 1:
        for batch in batches:
            yield run_points(scenario, batch)
        return
    waiting = deque(_Task(batch) for batch in batches)
    while waiting:
        with _pool(scenario, workers) as pool:
            yield from _run_until_one_dies(pool, waiting, workers)


@dataclass(frozen=True, slots=True)
class _Task:
    """Points to be computed, and how often a process died that was at it."""

    batch: Batch
    deaths: int = 0


def _run_until_one_dies(
    pool: ProcessPoolExecutor, waiting: deque[_Task], workers: int
) -> Iterator[Sequence[Done]]:
    """Runs tasks while all processes live; what was running when one died waits again, in front.

    When a process dies, nobody knows which task it was at. So each of those that ran is run alone
    from then on, until it is done: who dies alone has died of itself.
    """
    running: dict[Future[list[Done]], _Task] = {}
    while waiting or running:
        while waiting and len(running) < (1 if waiting[0].deaths else 2 * workers):
            task = waiting.popleft()
            running[pool.submit(_run, task.batch)] = task
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        broken = False
        for future in done:
            try:
                found = future.result()
            except BrokenProcessPool:
                broken = True
            else:
                del running[future]
                yield found
        if broken:
            for task in reversed(running.values()):
                yield from _again(task, waiting)
            return


def _again(task: _Task, waiting: deque[_Task]) -> Iterator[Sequence[Done]]:
    """Puts a task whose process died in front, point by point the second time; or gives it up."""
    deaths = task.deaths + 1
    alone = len(task.batch) == 1
    if alone and deaths == MOST_DEATHS:
        why = f"its process died {MOST_DEATHS} times; most often the machine had no memory left"
        yield [Done(task.batch[0], failure=why)]
    elif alone or deaths == 1:
        waiting.appendleft(_Task(task.batch, deaths))
    else:
        waiting.extendleft(_Task((point,), 1) for point in reversed(task.batch))


@contextmanager
def _pool(scenario: Scenario, workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that have the scenario; on the way out none of them is left."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(scenario,),
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
            process.join()


_begun: list[Scenario] = []
"""Of a worker process: what it was started with, instead of once a task."""


def _begin(scenario: Scenario) -> None:
    """Ctrl-C reaches every process of a terminal; only the first one is to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _begun.append(scenario)


def _run(batch: Batch) -> list[Done]:
    return run_points(_begun[-1], batch)
