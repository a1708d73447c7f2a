"""Progress is for a person at a terminal, and for standard error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="a terminal is made with pty, which Windows lacks")


@pytest.mark.parametrize(("words", "shown"), [([], True), (["--quiet"], False)])
def test_a_terminal_sees_a_bar_and_standard_output_stays_pure(
    tmp_path: Path, words: list[str], shown: bool
) -> None:
    ours, theirs = pty.openpty()
    script = "from slotwise_cli.app import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", script, "demo", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait(120) == 0
    try:
        err = os.read(ours, 100_000)
    except OSError:  # nothing was written before the other end closed
        err = b""
    os.close(ours)
    assert json.loads(out)["verdict"] == "adopt"
    assert (b"demo" in err) == shown
