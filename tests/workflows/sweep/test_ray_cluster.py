"""A Ray cluster of two nodes on this machine's loopback, and what is killed in it.

Raylets and workers are found among the descendants of what was started here, and killed by their
numbers; nobody else's Ray is touched. What comes out must be what one process finds.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import slotwise_workflows

pytestmark = [
    pytest.mark.ray_cluster,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

GRID = """\
version: 1
name: cluster
traffic:
  synthetic:
    requests: 20000
    arrivals: {poisson: {rate: 8}}
    output_tokens: {lognormal: {mean: 150, cv: 1}}
server: {cost: {step: {base_ms: 8, per_seq_ms: 0.1}}}
sweep: {slots: [8, 16, 32], load: [0.5, 1, 2], replications: 12, limits: false}
"""
POINTS = 3 * 3 * 12
PATIENCE_S = 240.0  # for what should happen within seconds


def slotwise(*words: object) -> list[str]:
    # A background job inherits a Ctrl-C that does nothing.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        " from slotwise_cli.start import main; main()"
    )
    return [sys.executable, "-c", program, *map(str, words)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table that one process finds."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "grid.yaml").write_text(GRID)
    subprocess.run(
        slotwise("sweep", folder / "grid.yaml", "--engine", "local", "--output-dir", folder / "o"),
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return (folder / "o" / "sweep.parquet").read_bytes()


@dataclass(frozen=True)
class Cluster:
    """Two nodes with a processor each; the command runs on the head."""

    address: str
    raylet_of_the_second: int
    running: subprocess.Popen[str]

    def workers(self) -> list[int]:
        """Processes at a task of a sweep, on either node."""
        return [
            pid for pid in descendants(self.running.pid) if command(pid).startswith("ray::run_if_")
        ]


# "0" keeps a cluster, and a command that joins it, on the loopback interface.
ON_LOOPBACK = {
    **os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0",
}  # fmt: skip

CLUSTER = """
import json, sys
from pathlib import Path
from ray.cluster_utils import Cluster

if __name__ == "__main__":
    (Path(sys.argv[1]) / "ray").mkdir()  # where Ray notes the address, and nobody else's notes are
    head = {"num_cpus": 1, "include_dashboard": False, "temp_dir": sys.argv[1]}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(num_cpus=1)
    [raylet] = second.all_processes["raylet"]
    print(json.dumps({"address": cluster.address, "raylet": raylet.process.pid}), flush=True)
    sys.stdin.read()
    cluster.shutdown()
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with started(ON_LOOPBACK) as cluster:
        yield cluster


@contextlib.contextmanager
def started(environment: dict[str, str]) -> Iterator[Cluster]:
    """A cluster that ends with the block, whatever is left of it."""
    # Short: Ray's sockets are below it.
    with (
        tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as place,
        subprocess.Popen(
            [sys.executable, "-c", CLUSTER, place],
            env=environment | {"RAY_TMPDIR": place}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        ) as running,
    ):  # fmt: skip
        try:
            assert running.stdout is not None
            said = json.loads(next(line for line in running.stdout if line.startswith("{")))
            yield Cluster(said["address"], said["raylet"], running)
        finally:
            for pid in [*descendants(running.pid), running.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The processes below one."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])

    def below(one: int) -> list[int]:
        return [own for child, of in parents.items() if of == one for own in (child, *below(child))]

    return below(pid)


def command(pid: int) -> str:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def kept(folder: Path) -> int:
    """How many points are finished."""
    file = folder / "o" / "sweep.partial.sqlite"
    if not file.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as rows:
        if rows.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return 0  # being made
        [count] = rows.execute("SELECT count(*) FROM points").fetchone()
    return int(count)


def until(true: Callable[[], bool], running: subprocess.Popen[bytes]) -> None:
    begin = time.perf_counter()
    while not true():
        assert running.poll() is None, "the sweep ended before"
        assert time.perf_counter() - begin < PATIENCE_S
        time.sleep(0.05)


def start(folder: Path, cluster: Cluster) -> subprocess.Popen[bytes]:
    (folder / "grid.yaml").write_text(GRID)
    return subprocess.Popen(
        slotwise(
            "sweep", folder / "grid.yaml", "--ray-address", cluster.address,
            "--output-dir", folder / "o", "--json", "--quiet",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ON_LOOPBACK,
    )  # fmt: skip


def finished(running: subprocess.Popen[bytes], folder: Path) -> tuple[dict[str, object], bytes]:
    out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, err) == (0, b"")
    said = json.loads(out)
    assert (said["engine"], said["failures"]) == ("ray", [])
    return said, (folder / "o" / "sweep.parquet").read_bytes()


def test_both_nodes_compute_and_find_the_same(
    cluster: Cluster, tmp_path: Path, expected: bytes
) -> None:
    running = start(tmp_path, cluster)
    until(lambda: len(cluster.workers()) == 2, running)
    said, found = finished(running, tmp_path)
    assert said["reused"] == 0
    assert found == expected


def test_a_worker_that_is_killed(cluster: Cluster, tmp_path: Path, expected: bytes) -> None:
    running = start(tmp_path, cluster)
    until(lambda: kept(tmp_path) > 0 and len(cluster.workers()) > 0, running)
    for pid in cluster.workers():
        os.kill(pid, signal.SIGKILL)
    assert finished(running, tmp_path)[1] == expected


def test_a_node_that_is_killed(cluster: Cluster, tmp_path: Path, expected: bytes) -> None:
    """The second raylet, in the middle: what it had begun runs again on the head."""
    running = start(tmp_path, cluster)
    until(lambda: kept(tmp_path) > 0 and len(cluster.workers()) == 2, running)
    assert kept(tmp_path) < POINTS
    os.kill(cluster.raylet_of_the_second, signal.SIGKILL)
    said, found = finished(running, tmp_path)
    assert found == expected
    assert said["points"] == POINTS


def test_the_command_is_killed_and_started_again(
    cluster: Cluster, tmp_path: Path, expected: bytes
) -> None:
    running = start(tmp_path, cluster)
    until(lambda: kept(tmp_path) > 0, running)
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    before = kept(tmp_path)
    assert 0 < before < POINTS
    assert not (tmp_path / "o" / "sweep.parquet").exists()
    said, found = finished(start(tmp_path, cluster), tmp_path)
    assert said["reused"] == before
    assert found == expected
    assert kept(tmp_path) == POINTS


def test_ctrl_c_stops_it_and_keeps_what_is_done(
    cluster: Cluster, tmp_path: Path, expected: bytes
) -> None:
    running = start(tmp_path, cluster)
    until(lambda: kept(tmp_path) > 0, running)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert err.count(b"\n") == 1
    assert finished(start(tmp_path, cluster), tmp_path)[1] == expected


def test_rows_are_those_of_the_grid(expected: bytes) -> None:
    assert pl.read_parquet(io.BytesIO(expected)).height == 2 * POINTS


def test_another_slotwise_on_the_cluster_is_refused(tmp_path: Path) -> None:
    """The same version, but for a line of its source."""
    source = Path(slotwise_workflows.__file__).parent
    shutil.copytree(source, tmp_path / "other" / source.name)
    with (tmp_path / "other" / source.name / "outcome.py").open("a") as changed:
        changed.write("# Changed.\n")
    with started({**ON_LOOPBACK, "PYTHONPATH": str(tmp_path / "other")}) as cluster:
        running = start(tmp_path, cluster)
        out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, out) == (5, b"")
    assert b"has slotwise" in err
    assert b"of another build" in err
    assert err.count(b"\n") == 1
