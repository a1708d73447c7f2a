"""Every fault is one line on standard error and the right exit code."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from slotwise_cli.faults import exit_codes
from slotwise_workflows.errors import (
    Cancelled,
    ConfigError,
    EndpointError,
    InputError,
    MissingExtraError,
    SlotwiseError,
    UsageError,
)

if TYPE_CHECKING:
    from _pytest.capture import CaptureResult
    from tests.cli.conftest import Cli, CliProcess


def code_of(
    error: BaseException, capsys: pytest.CaptureFixture[str], *, debug: bool = False
) -> tuple[int, CaptureResult[str]]:
    with pytest.raises(typer.Exit) as ended, exit_codes(debug=debug):
        raise error
    return ended.value.exit_code, capsys.readouterr()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SlotwiseError("x"), 1),
        (UsageError("x"), 2),
        (InputError("x"), 3),
        (ConfigError("x"), 3),
        (EndpointError("x"), 5),
        (MissingExtraError("x"), 6),
        (Cancelled("x"), 130),
    ],
)
def test_a_fault_the_user_caused_is_one_line_and_its_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, said = code_of(error, capsys)
    assert ended == code
    assert said.out == ""
    # Who cancelled made no error.
    assert said.err == ("x\n" if isinstance(error, Cancelled) else "error: x\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EOFError(), typer.Abort()])
def test_ctrl_c_is_said_in_a_word(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    ended, said = code_of(error, capsys)
    assert (ended, said.err) == (130, "cancelled\n")


def test_ctrl_c_that_a_library_made_a_fault_of_is_ctrl_c(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = SlotwiseError("a Ray task failed")
    error.__context__ = ValueError()
    error.__context__.__context__ = KeyboardInterrupt()
    ended, said = code_of(error, capsys)
    assert (ended, said.err) == (130, "cancelled\n")


@pytest.mark.parametrize("error", [ValueError("prompt text"), RecursionError(), MemoryError()])
def test_a_fault_of_ours_names_its_place_and_quotes_nothing(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, said = code_of(error, capsys)
    assert ended == 1
    assert said.err.startswith(f"internal error: {type(error).__name__} in test_faults.py:")
    assert said.err.count("\n") == 1
    assert "prompt text" not in said.err


def test_debug_prints_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = code_of(ValueError("detail"), capsys, debug=True)
    assert "Traceback" in said.err
    assert "detail" in said.err


def test_what_acts_on_a_terminal_is_written_as_an_escape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, said = code_of(InputError("a\nb\x1b[31m\u202eevil"), capsys)
    assert said.err == "error: a\\nb\\x1b[31m\\u202eevil\n"


def test_typer_keeps_its_own_exits(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (typer.Exit(4), typer.BadParameter("x")):
        with pytest.raises(type(error)), exit_codes(debug=False):
            raise error
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["inspect"],
        ["diagnose"],
        ["diagnose", "a.csv", "--slots", "0"],
        ["diagnose", "a.csv", "--slots", "many"],
        ["diagnose", "a.csv", "--ms-per-token", "0"],
        ["diagnose", "a.csv", "--ms-per-token", "nan"],
        ["diagnose", "a.csv", "--ms-per-token", "60001"],
        ["diagnose", "a.csv", "--slots", "100001"],
        ["diagnose", "a.csv", "--replicas", "100001"],
        ["diagnose", "a.csv", "--max-delay-ms", "-1"],
        ["diagnose", "a.csv", "--latency-p95-s", "inf"],
        ["diagnose", "a.csv", "--ttft-p95-s", "1000001"],
        ["diagnose", "a.csv", "--max-delay-ms", "nan"],
        ["diagnose", "a.csv", "--max-delay-ms", "86400001"],
        ["diagnose", "a.csv", "--serving", "mine"],
        ["diagnose", "a.csv", "--formats", "docx"],
        ["diagnose", "a.csv", "--formats", ","],
        ["diagnose", "a.csv", "--formats", ""],
        ["diagnose", "a.csv", "--map", "arrival"],
        ["inspect", "a.csv", "--tz", "Mars"],
        ["inspect", "a.csv", "--language", "fr"],
        ["config"],
        ["config", "init", "--interview", "--no-input"],
    ],
)
def test_a_wrong_command_line_ends_with_2(cli: Cli, words: list[str]) -> None:
    said = cli(*words)
    assert said.code == 2
    assert "Traceback" not in said.err
    assert said.out == "" or words == ["config"]


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "no-such-file.csv"],
        ["diagnose", "no-such-file.csv"],
        ["simulate", "no-such-file.yaml"],
        ["config", "check", "no-such-file.yaml"],
        ["report", "no-such-directory"],
        ["diagnose", "--workload", "no-such-file.yaml"],
    ],
)
def test_what_is_not_there_ends_with_3_and_one_line(
    cli: Cli, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli(*words)
    assert said.code == 3
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "no-such" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "program"),
        (b"PK\x03\x04" + bytes(60), ""),
        (b"\x1f\x8b\x08\x00half", ""),
        (b"a,b\n1,2\n3,4\n", ""),
        (b"ts,completion_tokens\n2026-01-05T09:00:00Z,0\n", "0 requests"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "diagnose"])
def test_a_log_that_cannot_answer_ends_with_3_and_one_line(
    cli: Cli, tmp_path: Path, content: bytes, words: str, command: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    said = cli(command, log, *(["--output-dir", tmp_path / "o"] if command == "diagnose" else []))
    assert said.code == 3
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert words in said.err


@pytest.mark.parametrize("place", [["--debug", "report", "none"], ["report", "none", "--debug"]])
def test_debug_may_stand_anywhere(
    cli: Cli, place: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli(*place)
    assert said.code == 3
    assert "Traceback" in said.err


def test_debug_behind_two_dashes_is_a_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Traceback" not in cli("inspect", "--", "--debug").err


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes there")
def test_a_reader_that_has_enough_is_no_fault() -> None:
    command = [sys.executable, "-c", "from slotwise_cli.app import main; main()"]
    with subprocess.Popen(
        [*command, "config", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(60) == 0
    assert err == b""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_ends_with_130() -> None:
    # The interview waits for an answer, so the signal surely comes in the middle.
    command = [sys.executable, "-c", "from slotwise_cli.app import main; main()"]
    with subprocess.Popen(
        [*command, "config", "init", "-", "--interview", "--language", "en"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert isinstance(process.stderr, io.BufferedReader)
        assert b"Six questions" in process.stderr.readline()
        assert process.stderr.peek().startswith(b"What serves")  # waits until it is asked
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        out, err = process.stdout.read(), process.stderr.read()
        assert process.wait(60) == 130
    assert out == b""
    assert err.rstrip().endswith(b"cancelled")


def test_ctrl_c_inside_a_callback_of_compiled_code_is_not_lost(cli_process: CliProcess) -> None:
    # An exception in a callback cannot rise through C; `atexit`, `ctypes` and llvmlite alike.
    ended = cli_process(
        script=(
            "import ctypes, time\n"
            "from slotwise_cli.faults import exit_codes, keep_interrupts\n"
            "def press():\n    raise KeyboardInterrupt\n"
            "keep_interrupts()\n"
            "with exit_codes(debug=False):\n"
            "    ctypes.CFUNCTYPE(None)(press)()\n"
            "    for _ in range(600):\n        time.sleep(0.1)\n"
        )
    )
    assert ended.stderr.splitlines()[0] == b"cancelled"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.parametrize(
    ("words", "code"), [(["config", "schema"], 0), (["inspect", "no-such-file.csv"], 3)]
)
def test_ctrl_c_after_the_outcome_changes_nothing(
    cli_process: CliProcess, words: list[str], code: int
) -> None:
    ended = cli_process(
        *words,
        script=(
            "import os, signal, time\n"
            "from slotwise_cli.start import main\n"
            "try:\n    main()\n"
            "finally:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(0.2)\n"
        ),
    )
    assert ended.returncode == code
    assert b"KeyboardInterrupt" not in ended.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_before_the_first_command_is_known(cli_process: CliProcess) -> None:
    ended = cli_process(
        "config",
        "schema",
        script=(
            "import os, signal, sys\n"
            "class Press:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name == 'typer':\n"
            "            os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Press())\n"
            "from slotwise_cli.start import main\n"
            "main()\n"
        ),
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, b"", b"cancelled")


def test_a_fault_that_ctrl_c_caused_is_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    """A library whose import is cut off may raise an error of its own."""

    def cut_off() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("half of it") from None

    with pytest.raises(typer.Exit) as ended, exit_codes(debug=False):
        cut_off()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "cancelled\n"
