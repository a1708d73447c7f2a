"""How tests of the command line call it: in this process, or as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict, Unpack

import pytest

from slotwise_cli.app import app

WORKLOAD = """\
version: 1
name: small
traffic:
  synthetic:
    requests: 200
    arrivals: {poisson: {rate: 2}}
    output_tokens: {uniform: [10, 400]}
server: {slots: 4, cost: {ms_per_token: 5}}
"""


MAIN = "from slotwise_cli.app import main; main()"


@dataclass(frozen=True)
class Said:
    """What a command left: exit code and both streams."""

    code: int
    out: str
    err: str


class Cli(Protocol):
    """`slotwise` in this process."""

    def __call__(self, *words: object) -> Said: ...


class Options(TypedDict, total=False):
    """What `subprocess.run` is told besides."""

    input: bytes
    stdin: int


class CliProcess(Protocol):
    """`slotwise` as a process of its own."""

    def __call__(
        self,
        *words: object,
        script: str = MAIN,
        environment: Mapping[str, str] | None = None,
        **options: Unpack[Options],
    ) -> subprocess.CompletedProcess[bytes]: ...


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls `slotwise` in this process; arguments are words."""

    def call(*words: object) -> Said:
        arguments = [str(word) for word in words]
        monkeypatch.setattr(sys, "argv", ["slotwise", *arguments])
        with pytest.raises(SystemExit) as ended:
            app(arguments, prog_name="slotwise")
        said = capsys.readouterr()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def cli_process() -> CliProcess:
    """Calls `slotwise` as a process of its own, for what only a process shows."""

    def call(
        *words: object,
        script: str = MAIN,
        environment: Mapping[str, str] | None = None,
        **options: Unpack[Options],
    ) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", script]
        return subprocess.run(
            [*command, *(str(word) for word in words)],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            timeout=120,
            check=False,
            **options,
        )

    return call


@pytest.fixture
def workload_file(tmp_path: Path) -> Path:
    """A workload file with synthetic traffic."""
    path = tmp_path / "small.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    return path


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    """A plain table of 150 requests in 75 s, lengths 10 to 400."""
    rows = ["ts,prompt_tokens,completion_tokens,route"]
    for index in range(150):
        tokens = 10 + index * 137 % 391
        route = "long" if tokens > 200 else "short"
        rows.append(
            f"2026-01-05T09:{index // 120:02d}:{index % 120 / 2:06.3f}Z,{index},{tokens},{route}"
        )
    path = tmp_path / "chat.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
