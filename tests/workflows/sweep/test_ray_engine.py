"""The Ray engine in a process of its own, as the command line runs it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slotwise_sim import PerToken
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.errors import EndpointError
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
listening = set()

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
    print(json.dumps({"listening": sorted(listening), "environment": left}))
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
