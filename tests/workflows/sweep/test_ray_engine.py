"""The Ray engine in a process of its own, as the command line runs it."""

from __future__ import annotations

import json
import platform
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import pytest

from slotwise_sim import PerToken
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.errors import EndpointError
from slotwise_workflows.sweep.batches import MOST_DEATHS
from slotwise_workflows.sweep.engine import Engine
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.run import sweep
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.table import parquet, replays

LINUX = sys.platform == "linux"
# 127.0.0.1, the same inside IPv6, and ::1, as the kernel prints them.
LOOPBACK = {
    "0100007F",
    "0000000000000000FFFF00000100007F",
    "00000000000000000000000001000000",
}

pytestmark = pytest.mark.ray

PROGRAM = """
import json, os, sys
from pathlib import Path
import numpy as np
from slotwise_sim import Continuous, PerToken, Static, Workload
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.sweep.engine import Engine
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.points import Axes, points
from slotwise_workflows.sweep.run import sweep
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.table import parquet, replays

given = json.load(sys.stdin)
workload = Workload(
    np.array(given["arrival_s"]), np.array(given["output_tokens"]), np.array(given["prompt_tokens"])
)
policies = {"static": Static(), "continuous": Continuous()}
scenario = Scenario(workload, policies, {"": PerToken(8.0)}, run=3)
grid = points(Axes([2, 4], loads=[0.5, 2], users=[3], offline=True, searches=True), 3, seed=11)
costs = {"": CostRecord.of(by_the_user(PerToken(8.0), "ms_per_token"))}
listening, seen = set(), set()

def look(done, total):
    "The loopback and other addresses on which this process and its children listen."
    parents, sockets = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[pid] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            sockets[pid] = {link[8:-1] for link in links if link.startswith("socket:[")}
        except OSError:
            continue
    def ours(pid):
        return pid == str(os.getpid()) or (pid in parents and ours(parents[pid]))
    seen.update(int(pid) for pid in parents if ours(pid) and pid != str(os.getpid()))
    inodes = set().union(*(found for pid, found in sockets.items() if ours(pid)))
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.add(fields[1].partition(":")[0])

if __name__ == "__main__":
    look_at = look if given["look"] else lambda done, total: None
    for _ in range(given["times"]):
        work = Estimate(0.001, 0.05, 0.1, 1)
        done = sweep(scenario, grid, Engine("ray", 2, None, ""), work, on_progress=look_at)
        Path(given["file"]).write_bytes(parquet(replays(done.done), costs))
    left = [name for name in os.environ if name.startswith(("RAY_AUTH", "RAY_ENABLE"))]
    print(json.dumps({"listening": sorted(listening), "environment": left, "seen": sorted(seen)}))
"""


def run_program(given: dict[str, object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_ray_finds_the_same_bytes_and_keeps_quiet(
    tmp_path: Path, uneven_scenario: Scenario, small_grid: tuple[Point, ...], quick: Estimate
) -> None:
    """Twice in one process, since Ray keeps much from the first time."""
    file = tmp_path / "sweep.parquet"
    folders = set(Path(tempfile.gettempdir()).glob("slotwise-*"))
    workload = uneven_scenario.workload
    done = run_program(
        {
            "arrival_s": workload.arrival_s.tolist(),
            "output_tokens": workload.output_tokens.tolist(),
            "prompt_tokens": workload.prompt_tokens.tolist(),
            "file": str(file),
            "times": 2,
            "look": LINUX,
        }
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["environment"] == []
    assert set(said["listening"]) <= LOOPBACK
    assert bool(said["listening"]) == LINUX
    assert set(Path(tempfile.gettempdir()).glob("slotwise-*")) == folders
    assert len(said["seen"]) > 4 * LINUX  # of Ray's own processes
    for _ in range(600):  # they end a moment after the one that started them
        left = [pid for pid in said["seen"] if Path(f"/proc/{pid}").exists()]
        if not left:
            break
        time.sleep(0.05)
    assert left == []
    local = sweep(uneven_scenario, small_grid, Engine("local", 1, None, ""), quick)
    costs = {"": CostRecord.of(by_the_user(PerToken(8.0), "ms_per_token"))}
    assert file.read_bytes() == parquet(replays(local.done), costs)


def test_a_cluster_that_is_not_there_is_told_at_once(
    uneven_scenario: Scenario, small_grid: tuple[Point, ...], quick: Estimate
) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EndpointError, match="cannot be reached") as error:
            sweep(uneven_scenario, small_grid, Engine("ray", 1, address, ""), quick)
    assert error.value.where == address
    assert error.value.exit_code == 5


def test_the_note_of_a_cluster_that_is_gone_is_told_at_once(
    uneven_scenario: Scenario,
    small_grid: tuple[Point, ...],
    quick: Estimate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray itself would try for more than a minute."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{taken.getsockname()[1]}\n"
        (tmp_path / "ray" / "ray_current_cluster").write_text(gone)
        with pytest.raises(EndpointError, match="cannot be reached") as error:
            sweep(uneven_scenario, small_grid, Engine("ray", 1, "auto", ""), quick)
    assert error.value.where == "auto"


IMPORTED = """
import ray
from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.sweep.ray_engine import run_ray
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_sim import Continuous, PerToken, Static
from slotwise_sim.article import article_workload

scenario = Scenario(article_workload(), {"static": Static()}, {"": PerToken(8.0)}, run=1)
try:
    next(iter(run_ray(scenario, [], workers=1, address=None)))
except SlotwiseError as error:
    print(error.hint)
"""


def test_a_ray_that_was_imported_before_is_not_opened_to_the_network() -> None:
    """What keeps it on this machine is read when it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "Call ray.init() before, or work without Ray\n"


def test_versions_that_do_not_match_are_told_in_one_sentence(
    uneven_scenario: Scenario,
    small_grid: tuple[Point, ...],
    quick: Estimate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the words of Ray itself, should it choose others."""
    ray, private = import_module("ray"), import_module("ray._private.utils")
    cluster = {"ray_version": "2.40.0", "python_version": "3.12.1", "git_commit": ""}

    def refuse(**_options: object) -> None:
        private.check_version_info(cluster, "node 10.0.0.1")

    monkeypatch.setattr(ray, "init", refuse)
    here = f"Ray {ray.__version__} and Python {platform.python_version()}"
    with pytest.raises(EndpointError) as error:
        sweep(uneven_scenario, small_grid, Engine("ray", 1, "auto", ""), quick)
    assert error.value.what == f"the cluster runs Ray 2.40.0 and Python 3.12.1, and this is {here}"
    assert str(error.value).count("\n") == 0


FAULTS = """
import json, os, signal
from pathlib import Path
from slotwise_sim import Continuous, PerToken, Static
from slotwise_sim.article import article_workload
from slotwise_workflows.sweep.evaluate import run_points
from slotwise_workflows.sweep.points import Point, Setting
from slotwise_workflows.sweep.ray_engine import run_ray
from slotwise_workflows.sweep.scenario import Scenario

class Deadly:
    "A load that ends the process that is sent it."
    def __reduce__(self):
        return os._exit, (9,)

def workers():
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    def ours(pid):
        return pid == os.getpid() or (pid in parents and ours(parents[pid]))
    for pid in filter(ours, parents):
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::run_if_alike"):
            yield pid

if __name__ == "__main__":
    policies = {"static": Static(), "continuous": Continuous()}
    traffic = article_workload(requests=100_000)
    scenario = Scenario(traffic, policies, {"": PerToken(8.0)}, run=100)
    good = tuple(Point(Setting(8, load=1.0), k, k) for k in range(60))
    impossible = Point(Setting(8, length_cv=1e9, load=1.0), 0, 0)
    deadly = Point(Setting(8, load=Deadly()), 0, 0)
    batches = [(good[0],), (*good[1:4], deadly), (impossible, good[4])]
    batches += [good[first : first + 5] for first in range(5, 60, 5)]
    killed, found = [], []
    for done in run_ray(scenario, batches, workers=2, address=None):
        if not killed:  # as soon as some are at work
            killed = list(workers())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        found.extend(done)
    whole = sorted((own for own in found if not own.failure), key=repr)
    print(json.dumps({
        "killed": len(killed),
        "same": whole == sorted(run_points(scenario, good), key=repr),
        "failures": {
            name: own.failure
            for name, point in {"deadly": deadly, "impossible": impossible}.items()
            for own in found
            if own.point is point or own.point == point
        },
        "found": len(found),
    }))
"""


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_a_fault_takes_nothing_with_it() -> None:
    """Workers are killed; one point kills whoever computes it, and one cannot be computed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FAULTS],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["killed"] > 0
    assert said["same"]
    assert said["found"] == 62
    assert set(said["failures"]) == {"deadly", "impossible"}
    assert said["failures"]["deadly"].startswith(f"its worker died {MOST_DEATHS} times")
    assert said["failures"]["impossible"].startswith("ValueError")
