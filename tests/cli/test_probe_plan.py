"""`slotwise probe`: the options of its plan, and what is kept when it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from probe_server import Faults, Policy, running_server

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

MAIN = "from slotwise_cli.app import main; main()"


@pytest.fixture
def slow_server() -> Iterator[Any]:
    """The probe's test server, batch after batch: its tests take seconds."""
    policy = Policy(batching="static", slots=8, step_ms=20.0)
    with running_server(policy, Faults()) as server:
        yield server


def until(done: Any, seconds: float = 90.0) -> None:
    last = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < last, "it did not come to that"
        time.sleep(0.02)


@pytest.mark.alone
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
@pytest.mark.parametrize(("requests", "judged"), [(3, False), (13, True)])
def test_ctrl_c_keeps_what_was_done(
    slow_server: Any, tmp_path: Path, requests: int, judged: bool
) -> None:
    """Amid the group test there is nothing to be judged yet; amid the slots test there is."""
    command = [sys.executable, "-c", MAIN, "probe", slow_server.url, "--yes", "--json"]
    process = subprocess.Popen(
        [*command, "--output-dir", str(tmp_path / "new" / "probe")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )
    until(lambda: len(slow_server.requests) >= requests)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    if not judged:
        assert out == b""
        assert list(tmp_path.iterdir()) == []  # nor a place for what there is not
        return
    said = json.loads(out)
    assert (said["interrupted"], said["stopped_by"]) == (True, "user")
    assert said["batching"] == "static"
    assert said["confidence"] == "low"
    assert [trial["stage"] for trial in said["trials"]] == ["group"]
    assert json.loads((tmp_path / "new" / "probe" / "probe.json").read_bytes()) == said
    rows = (tmp_path / "new" / "probe" / "probe.jsonl").read_bytes().splitlines()
    assert len(rows) == len(said["samples"]) <= said["requests_sent"]


def test_time_that_runs_out_keeps_what_was_done(slow_server: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAIN, "probe", slow_server.url, "--yes"]
    done = subprocess.run(
        [*command, "--max-seconds", "9", "--output-dir", str(tmp_path)],
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "probe.json").read_bytes())
    assert (said["interrupted"], said["stopped_by"]) == (True, "max_seconds")
    assert b"Its time ran out" in done.stdout


@pytest.mark.parametrize(
    "words",
    [("--max-requests", 9), ("--max-tokens-total", 100), ("--max-seconds", 0), ("--trials", 0)],
)
def test_too_little_is_refused_before_anything_is_sent(cli: Cli, words: tuple[object, ...]) -> None:
    done = cli("probe", "http://127.0.0.1:9", "--yes", "--quiet", *words)
    assert (done.code, done.out) == (2, "")
    assert str(words[0]) in done.err
