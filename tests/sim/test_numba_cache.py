"""Machine code is compiled once and kept; whatever happens to where it is kept does no harm.

Every run is a process of its own, because a process keeps what it has compiled. Folders that cannot
be written to are made of files, which stops the superuser as well.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import slotwise_sim

PACKAGE = Path(slotwise_sim.__file__).parent
EVERY_LOOP = """
for slots in (2, 9, 300):
    serve(Continuous(), PerToken(1.0), slots)
for policy in (Static(), Dynamic(1.0), Binned(2), Continuous(), Continuous("separate")):
    serve(policy, Step(1.0), 2)
serve(Continuous(), Step(1.0), 2, Memory(160))
serve(Continuous(), Step(1.0), 2, users=Users(3, np.zeros(399)))
"""
ONE_LOOP = "serve(Continuous(), PerToken(1.0), 300)"
PROLOGUE = """
import json, shutil, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from slotwise_sim import *
from slotwise_sim.kernels import batches, coupled, iterations, slots as refilled

ends = []

def serve(policy, cost, slots, memory=None, users=None):
    tokens = np.arange(1, 400)
    workload = Workload(np.zeros(399), tokens % 7 + 1, tokens % 5)
    outcome = simulate(workload, policy, cost, slots=slots, memory=memory, users=users)
    ends.append(float(outcome.end_s.sum()))
"""
EPILOGUE = """
loops = {
    loop for module in (batches, coupled, iterations, refilled) for loop in vars(module).values()
    if isinstance(loop, Dispatcher)
}
json.dump({
    "ends": ends,
    "loaded": sum(sum(loop.stats.cache_hits.values()) for loop in loops),
    "compiled": sum(sum(loop.stats.cache_misses.values()) for loop in loops),
}, sys.stdout)
"""


@dataclass(frozen=True)
class Run:
    """What one process computed, and how many loops it loaded and compiled for it."""

    ends: list[float]
    loaded: int
    compiled: int


def start(body: str, *, package: Path = PACKAGE, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROLOGUE + body + EPILOGUE],
        env=os.environ | {"PYTHONPATH": str(package.parent)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> Run:
    told, fault = process.communicate()
    assert process.returncode == 0, fault
    return Run(**json.loads(told))


def run(body: str, *, package: Path = PACKAGE, **environment: str) -> Run:
    return finish(start(body, package=package, **environment))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A run of one loop that had to compile it, and where that was kept."""
    kept = tmp_path_factory.mktemp("kept")
    return run(ONE_LOOP, NUMBA_CACHE_DIR=str(kept)), kept


@pytest.fixture
def whole(first: tuple[Run, Path]) -> Run:
    """What a run with nothing kept computes and compiles."""
    return first[0]


@pytest.fixture
def cache(first: tuple[Run, Path], tmp_path: Path) -> Path:
    """A folder of its own that keeps the loop."""
    return shutil.copytree(first[1], tmp_path / "cache")


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    first = run(EVERY_LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(EVERY_LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.loaded == 0
    assert first.compiled > 0
    assert second.compiled == 0
    assert second.loaded > 0
    assert second.ends == first.ends


def a_file(path: Path) -> Path:
    path.write_text("not a folder")
    return path


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """The package where nothing can be kept beside the source."""
    package = tmp_path / "site-packages" / "slotwise_sim"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    a_file(package / "__pycache__")
    a_file(package / "kernels" / "__pycache__")
    return package


def test_where_nothing_can_be_kept_every_process_compiles(
    sealed: Path, whole: Run, tmp_path: Path
) -> None:
    nowhere = str(a_file(tmp_path / "home") / "below")
    for _ in range(2):
        here = run(
            ONE_LOOP, package=sealed, HOME=nowhere, XDG_CACHE_HOME=nowhere, NUMBA_CACHE_DIR=""
        )
        assert here == whole


def test_beside_a_sealed_package_the_users_folder_serves(sealed: Path, tmp_path: Path) -> None:
    def at_home() -> Run:
        user = str(tmp_path / "user")
        return run(ONE_LOOP, package=sealed, HOME=user, XDG_CACHE_HOME=user, NUMBA_CACHE_DIR="")

    assert at_home().compiled > 0
    assert at_home().compiled == 0
    assert list((tmp_path / "user").rglob("*.nbi"))


def test_a_cache_folder_that_cannot_be_made_does_no_harm(whole: Run, tmp_path: Path) -> None:
    nowhere = str(a_file(tmp_path / "file") / "cache")
    assert run(ONE_LOOP, NUMBA_CACHE_DIR=nowhere).ends == whole.ends


def test_a_cache_folder_that_goes_away_does_no_harm(cache: Path, whole: Run) -> None:
    gone = f"shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()\n"
    assert run(gone + ONE_LOOP, NUMBA_CACHE_DIR=str(cache)) == whole


def test_several_processes_may_share_an_empty_folder(whole: Run, tmp_path: Path) -> None:
    together = [start(ONE_LOOP, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    assert all(finish(process).ends == whole.ends for process in together)
    assert run(ONE_LOOP, NUMBA_CACHE_DIR=str(tmp_path)).compiled == 0


@pytest.mark.parametrize(("pattern", "left"), [("*.nbi", 0.5), ("*.nbc", 0.0)])
def test_a_file_cut_short_is_compiled_anew_and_replaced(
    cache: Path, whole: Run, pattern: str, left: float
) -> None:
    for file in cache.rglob(pattern):
        content = file.read_bytes()
        file.write_bytes(content[: int(left * len(content))])
    assert run(ONE_LOOP, NUMBA_CACHE_DIR=str(cache)) == whole
    assert run(ONE_LOOP, NUMBA_CACHE_DIR=str(cache)).compiled == 0


def test_a_part_that_has_changed_is_compiled_anew(tmp_path: Path) -> None:
    """Numba looks at a loop's own file; a heap that it uses stands in another one."""
    package = tmp_path / "slotwise_sim"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    loop = "serve(Continuous(), Step(1.0), 2)"
    before = run(loop, package=package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    heap = package / "kernels" / "heap.py"
    heap.write_text(heap.read_text().replace("heap[parent].end <= end", "heap[parent].end < end"))
    again = run(loop, package=package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert before.compiled == again.compiled > 0


def test_what_another_numba_has_kept_is_not_used(cache: Path, whole: Run) -> None:
    for index in cache.rglob("*.nbi"):
        with index.open("rb") as file:
            pickle.load(file)  # the version comes first
            rest = file.read()
        index.write_bytes(pickle.dumps("0.1") + rest)
    assert run(ONE_LOOP, NUMBA_CACHE_DIR=str(cache)) == whole


def test_two_processors_keep_theirs_side_by_side(cache: Path, whole: Run) -> None:
    """As in a home folder on the network: each compiles for itself, neither disturbs the other."""

    def other() -> Run:
        features = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
        return run(ONE_LOOP, package=PACKAGE, NUMBA_CACHE_DIR=str(cache), **features)

    assert other() == whole
    assert run(ONE_LOOP, NUMBA_CACHE_DIR=str(cache)).compiled == other().compiled == 0
