"""Processes that die, are interrupted, or lose the one that started them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from slotwise_sim import Continuous, PerToken, Static
from slotwise_sim.article import article_workload
from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.sweep.batches import MOST_DEATHS
from slotwise_workflows.sweep.engine import Engine
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.local import run_local
from slotwise_workflows.sweep.points import Point, Setting
from slotwise_workflows.sweep.run import sweep
from slotwise_workflows.sweep.scenario import Scenario

PATIENCE_S = 120.0  # for what should happen within seconds

posix = pytest.mark.skipif(os.name != "posix", reason="sends signals")


class Deadly:
    """A load that ends the process that is sent it."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return os._exit, (9,)


DEADLY = Point(Setting(2, load=Deadly()), 0, 0)  # type: ignore[arg-type]


def test_a_point_that_kills_is_given_up_and_the_others_are_found(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    batches = [small_grid[:3], (*small_grid[3:5], DEADLY, small_grid[5]), small_grid[6:]]
    found = [own for batch in run_local(uneven_scenario, batches, workers=2) for own in batch]
    [given_up] = [own for own in found if own.failure]
    assert given_up.point is DEADLY
    assert given_up.failure.startswith(f"its process died {MOST_DEATHS} times")
    found.remove(given_up)
    assert sorted(found, key=repr) == sorted(run_points(uneven_scenario, small_grid), key=repr)
    assert multiprocessing.active_children() == []


@posix
def test_workers_that_are_killed_lose_nothing(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    """Both are, as soon as a first task is done: what they had begun is computed by others."""
    batches = [small_grid[first : first + 2] for first in range(0, 30, 2)]
    found: list[Done] = []
    for batch in run_local(uneven_scenario, batches, workers=2):
        if not found:
            kill_all()
        found.extend(batch)
    assert sorted(found, key=repr) == sorted(run_points(uneven_scenario, small_grid), key=repr)
    assert multiprocessing.active_children() == []


@posix
def test_processes_that_die_before_they_begin_are_not_started_for_ever(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    over = threading.Event()

    def kill_on() -> None:
        while not over.wait(0.01):
            kill_all()

    killer = threading.Thread(target=kill_on)
    killer.start()
    try:
        with pytest.raises(SlotwiseError, match="die before they begin"):
            list(run_local(uneven_scenario, [small_grid], workers=2))
    finally:
        over.set()
        killer.join()


def test_closing_it_leaves_no_process(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...]
) -> None:
    running = run_local(uneven_scenario, [(point,) for point in small_grid], workers=2)
    next(running)
    assert len(multiprocessing.active_children()) == 2
    running.close()
    assert multiprocessing.active_children() == []


def kill_all() -> None:
    for process in multiprocessing.active_children():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid or 0, signal.SIGKILL)


# --- a program that is killed or interrupted -----------------------------------------------------

LONG_SCENARIO = Scenario(
    article_workload(requests=20_000),
    {"static": Static(), "continuous": Continuous()},
    {"": PerToken(8.0)},
    run=100,
)
LONG_GRID = tuple(Point(Setting(8, load=1.0), k, k) for k in range(400))
LONG = Estimate(replay_s=0.02, search_s=0, seconds=8, memory_bytes=1)
TWO = Engine("local", 2, None, "")

PROGRAM = """
import importlib.util, multiprocessing, signal, sys
from pathlib import Path

def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits none
    spec = importlib.util.spec_from_file_location("long", sys.argv[1])
    long = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(long)
    def told(done, total):
        print(done, *(own.pid for own in multiprocessing.active_children()), flush=True)
    try:
        long.sweep(long.LONG_SCENARIO, long.LONG_GRID, long.TWO, long.LONG,
                   store=Path(sys.argv[2]), on_progress=told)
    except KeyboardInterrupt:
        print("stopped", flush=True)

if __name__ == "__main__":
    main()
"""


@contextlib.contextmanager
def program(store: Path) -> Any:
    """A sweep in a process group of its own, as a terminal starts it."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, __file__, store],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            yield running
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def finished_points(store: Path) -> int:
    with contextlib.closing(sqlite3.connect(store)) as rows:
        return int(rows.execute("SELECT count(*) FROM points").fetchone()[0])


def gone(pid: int) -> bool:
    """Ended, though nobody may have asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_program_that_is_killed_leaves_no_process_and_loses_nothing(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with program(store) as running:
        pids: list[int] = []
        for line in running.stdout:
            finished, *pids = map(int, line.split())
            if finished:
                break
        running.kill()
        begin = time.perf_counter()
        while not all(map(gone, pids)):
            assert time.perf_counter() - begin < PATIENCE_S
            time.sleep(0.02)
    assert len(pids) == 2
    before = finished_points(store)
    assert 0 < before < len(LONG_GRID)
    done = sweep(LONG_SCENARIO, LONG_GRID, TWO, LONG, store=store)
    assert done.reused == before
    assert finished_points(store) == len(LONG_GRID)
    assert list(done.done) == run_points(LONG_SCENARIO, LONG_GRID)


@posix
@pytest.mark.parametrize("when", ["as the processes start", "as they compute"])
def test_ctrl_c_stops_quietly(tmp_path: Path, when: str) -> None:
    """It reaches every process; only the first one says so."""
    with program(tmp_path / "s.sqlite") as running:
        for line in running.stdout:
            if when == "as the processes start" or int(line.split()[0]) > 0:
                break
        if when == "as the processes start":
            time.sleep(0.3)  # wherever that is: none of it may speak
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE_S)
    assert err == ""
    assert out.splitlines()[-1] == "stopped"
