"""The local engine: this process, or a few more."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.sweep.batches import MOST_DEATHS, Batch, Task, after_a_death
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.scenario import Scenario

_TERMINATES_S = 2.0


def run_local(
    scenario: Scenario, batches: Sequence[Batch], *, workers: int
) -> Generator[Sequence[Done], None, None]:
    """Evaluates the points on this machine.

    One worker is this process. More are started afresh (``spawn``: the same on every platform, and
    no state of this process enters), so a script that calls this needs the usual
    ``if __name__ == "__main__":``. Closing the generator stops them at once.

    Args:
        scenario: What all points share.
        batches: The points, in tasks.
        workers: Processes, >= 1.

    Yields:
        What a task found, as soon as it is done.

    Raises:
        SlotwiseError: No process lives until it can begin.
    """
    if workers > 1:
        yield from _run_processes(scenario, batches, workers)
        return
    for batch in batches:
        yield run_points(scenario, batch)


@dataclass(slots=True)
class _Worker:
    """A process at the other end of a pipe of its own, and what it is at.

    The processes of a pool share its queues: one that dies is the end of all, and nobody knows
    what it was at. Here it is known, and the others go on.
    """

    process: BaseProcess
    pipe: Connection
    ready: bool = False
    task: Task | None = None


def _run_processes(
    scenario: Scenario, batches: Sequence[Batch], workers: int
) -> Generator[Sequence[Done], None, None]:
    waiting = deque(Task(batch) for batch in batches)
    crew: list[_Worker] = []
    stillborn = 0
    try:
        while unfinished := len(waiting) + sum(worker.task is not None for worker in crew):
            while len(crew) < min(workers, unfinished):
                crew.append(_hire())
            for worker in crew:
                if worker.ready and worker.task is None and waiting:
                    worker.task = waiting.popleft()
                    _send(worker, worker.task.batch)
            heard = wait([worker.pipe for worker in crew])
            for worker in [worker for worker in crew if worker.pipe in heard]:
                try:
                    found: list[Done] | None = worker.pipe.recv()
                except (EOFError, OSError):
                    crew.remove(worker)
                    _dismiss([worker])
                    stillborn += not worker.ready
                    if stillborn == MOST_DEATHS:
                        raise _stillborn() from None
                    yield from _again(worker.task, waiting)
                    continue
                if found is None:
                    _send(worker, scenario)
                    continue
                worker.ready, worker.task, stillborn = True, None, 0
                if found:
                    yield found
    finally:
        _dismiss(crew)


def _again(task: Task | None, waiting: deque[Task]) -> Iterator[Sequence[Done]]:
    """Puts a task whose worker died in front, or gives it up."""
    if task is None:
        return
    again = after_a_death(task)
    waiting.extendleft(reversed(again))
    if not again:
        why = f"its process died {MOST_DEATHS} times; most often the machine had no memory left"
        yield [Done(task.batch[0], failure=why)]


def _hire() -> _Worker:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_work, args=(theirs,), daemon=True)
    with _interrupts_held():
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _send(worker: _Worker, what: object) -> None:
    """Sends something to a worker; of one that is dead, we shall hear at its end of the pipe."""
    with suppress(OSError):
        worker.pipe.send(what)


def _dismiss(workers: Iterable[_Worker]) -> None:
    """Ends processes at once; on the way out none of them is left."""
    for worker in workers:
        worker.pipe.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_TERMINATES_S)
        worker.process.kill()
        worker.process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal, and only the first one is to act on it.

    A process inherits what is held back when it starts, and so hears of none from its beginning. On
    Windows it turns deaf a moment later, see `_work`.
    """
    if os.name != "posix":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stillborn() -> SlotwiseError:
    return SlotwiseError(
        "the worker processes of the sweep die before they begin",
        why="most often the machine has no memory left",
        hint="Use fewer --workers",
    )


def _work(pipe: Connection) -> None:
    """A worker's life: it asks for the scenario, says that it has it, and computes what it is sent.

    It ends when the first process does, whose end of the pipe is then closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        pipe.send(None)
        scenario = pipe.recv()
        pipe.send([])
        while True:
            pipe.send(run_points(scenario, pipe.recv()))
