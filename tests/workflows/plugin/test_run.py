"""One run: its events in order, its last line whatever happens, its artifacts as declared.

The pipeline is a stand-in here; `test_run_diagnose.py` runs the real one.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import slotwise_workflows.host
from slotwise_workflows.errors import Cancelled, InputError, SlotwiseError, UsageError
from slotwise_workflows.events import Artifact, OnEvent, Progress, StepFinished, StepStarted
from slotwise_workflows.host.finished import Finished

if TYPE_CHECKING:
    from tests.workflows.plugin.conftest import HostedRun

OUTPUTS = {"verdict": "no_gain", "confidence": "high", "requests": 600, "gain": None}
ARTIFACTS = ("report.html", "report.md", "summary.html", "tables/policies.csv", "traffic.parquet")
Work = Callable[..., Finished | None]
LAST = ("provenance.json", "result.json")


def _write(output_dir: Path, names: Iterable[str], on_event: OnEvent) -> None:
    for name in names:
        path = output_dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}\n")
        on_event(Artifact("report", path))


def _work(
    _inputs: object,
    _defaults: object,
    *,
    base: Path,
    output_dir: Path,
    command: list[str],
    on_event: OnEvent,
) -> Finished:
    assert base.is_absolute()
    assert command[:2] == ["slotwise", "run"]
    on_event(StepStarted("read"))
    for done in (0, 1, 2, 500, 1000, 1000):
        on_event(Progress("read", done, 1000))
    on_event(StepFinished("read"))
    on_event(StepStarted("report"))
    _write(output_dir, ARTIFACTS + LAST, on_event)
    on_event(StepFinished("report"))
    return Finished(0, OUTPUTS)


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], None]:
    """Puts a stand-in where the real work is imported from."""

    def use(work: Work) -> None:
        module = types.ModuleType("slotwise_workflows.host.diagnose")
        vars(module)["run"] = work
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(slotwise_workflows.host, "diagnose", module, raising=False)

    return use


def test_events_of_a_run_that_goes_through(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    pipeline(_work)
    assert hosted_run.start() == Finished(0, OUTPUTS)
    events = hosted_run.events()
    assert [event["event"] for event in events] == [
        "run.started",
        "step.started",
        *["progress"] * 3,
        "step.finished",
        "step.started",
        *["artifact"] * 7,
        "step.finished",
        "run.finished",
    ]
    assert events[0]["workflow"] == "diagnose"
    assert events[1]["title"] == {"ja": "ログの読み取りと照合", "en": "Read and reconcile the log"}
    assert [(e["done"], e["total"]) for e in events[2:5]] == [(0, 1000), (500, 1000), (1000, 1000)]
    assert events[-1]["exitCode"] == 0
    assert events[-1]["status"] == "ok"
    assert events[-1]["outputs"] == OUTPUTS
    assert {event["time"] for event in events} == {"2026-01-02T12:00:00.000Z"}


def test_artifact_events_tell_what_is_on_the_disk(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    pipeline(_work)
    hosted_run.start()
    artifacts = [event for event in hosted_run.events() if event["event"] == "artifact"]
    on_disk = {
        path.relative_to(hosted_run.output_dir).as_posix(): path
        for path in hosted_run.output_dir.rglob("*")
        if path.is_file()
    }
    assert {event["path"] for event in artifacts} == on_disk.keys()
    for event in artifacts:
        content = on_disk[event["path"]].read_bytes()
        assert event["sha256"] == hashlib.sha256(content).hexdigest()
        assert event["bytes"] == len(content)
    assert {event["path"]: event["id"] for event in artifacts}["tables/policies.csv"] == "tables"


def test_too_little_data_is_a_run_that_finished(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    def work(*args: Any, **kwargs: Any) -> Finished:
        _work(*args, **kwargs)
        return Finished(4, {**OUTPUTS, "verdict": "insufficient_data"})

    pipeline(work)
    assert hosted_run.start().exit_code == 4
    last = hosted_run.events()[-1]
    assert (last["event"], last["exitCode"], last["status"]) == (
        "run.finished",
        4,
        "insufficient_data",
    )


def test_the_events_file_may_live_in_the_output_directory(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    pipeline(_work)
    hosted_run.events_name = "out/events.jsonl"
    assert hosted_run.start().exit_code == 0
    assert hosted_run.events()[-1]["event"] == "run.finished"


@pytest.mark.parametrize(
    ("raised", "kind", "code", "status"),
    [
        (InputError("no such file", where="log.csv"), InputError, 3, "invalid_input"),
        (KeyboardInterrupt(), Cancelled, 130, "cancelled"),
        (ZeroDivisionError("secret prompt"), ZeroDivisionError, 1, "internal_error"),
    ],
)
def test_the_last_line_is_an_error_if_the_work_fails(
    hosted_run: HostedRun,
    pipeline: Callable[[Work], None],
    raised: BaseException,
    kind: type[BaseException],
    code: int,
    status: str,
) -> None:
    def work(*_args: Any, **kwargs: Any) -> Finished:
        kwargs["on_event"](StepStarted("read"))
        raise raised

    pipeline(work)
    with pytest.raises(kind):
        hosted_run.start()
    last = hosted_run.events()[-1]
    assert (last["event"], last["exitCode"], last["status"]) == ("error", code, status)
    assert "secret" not in last["message"]


@pytest.mark.parametrize("name", ["notes.txt", "deep/tables/own.csv", "deep/report.html"])
def test_an_artifact_that_is_not_declared_is_a_fault_of_ours(
    hosted_run: HostedRun, pipeline: Callable[[Work], None], name: str
) -> None:
    def work(*_args: Any, **kwargs: Any) -> None:
        (kwargs["output_dir"] / "deep" / "tables").mkdir(parents=True)
        _write(kwargs["output_dir"], [name], kwargs["on_event"])

    pipeline(work)
    with pytest.raises(SlotwiseError, match=f"{name} is not declared"):
        hosted_run.start()


def test_a_required_artifact_that_is_missing_is_a_fault_of_ours(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    pipeline(lambda *_args, **_kwargs: Finished(0, OUTPUTS))
    with pytest.raises(SlotwiseError, match=r"no artifact report, .*provenance was written"):
        hosted_run.start()
    assert hosted_run.events()[-1]["status"] == "internal_error"


def test_wrong_inputs_end_in_an_error_event_with_their_pointer(hosted_run: HostedRun) -> None:
    hosted_run.inputs = {"traffic_log": "log.csv", "slots": 0}
    with pytest.raises(InputError):
        hosted_run.start()
    last = hosted_run.events()[-1]
    assert last["status"] == "invalid_input"
    assert last["where"].endswith("inputs.json#/slots")
    assert not hosted_run.output_dir.exists()


def test_an_unknown_workflow_is_a_usage_error(hosted_run: HostedRun) -> None:
    hosted_run.workflow = "../diagnose"
    with pytest.raises(UsageError, match="There is: diagnose"):
        hosted_run.start()
    assert hosted_run.events()[-1]["exitCode"] == 2


def test_a_used_output_directory_is_refused_and_left_alone(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    pipeline(_work)
    hosted_run.output_dir.mkdir()
    old = hosted_run.output_dir / "result.json"
    old.write_text("old")
    with pytest.raises(InputError, match="not empty"):
        hosted_run.start()
    assert old.read_text() == "old"
    assert [path.name for path in hosted_run.output_dir.iterdir()] == ["result.json"]


def test_an_events_file_that_cannot_be_written(hosted_run: HostedRun) -> None:
    hosted_run.events_file.mkdir()
    with pytest.raises(InputError, match="cannot write the events file"):
        hosted_run.start()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told_in_one_line(hosted_run: HostedRun) -> None:
    hosted_run.events_name = "/dev/full"
    with pytest.raises(InputError, match="cannot write the events file: No space left"):
        hosted_run.start()


def test_signal_handlers_are_put_back(
    hosted_run: HostedRun, pipeline: Callable[[Work], None]
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    pipeline(_work)
    hosted_run.start()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


ENDLESS = """
import sys, time, types
import slotwise_workflows.host as host
from slotwise_workflows.errors import Cancelled
from slotwise_workflows.events import StepStarted
from slotwise_workflows.host.run import run_workflow
from pathlib import Path

def work(*_args, on_event, **_kwargs):
    on_event(StepStarted("read"))
    print("working", flush=True)
    while True:
        time.sleep(0.01)

module = types.ModuleType("slotwise_workflows.host.diagnose")
module.run = work
sys.modules[module.__name__] = host.diagnose = module
folder = Path(sys.argv[1])
try:
    run_workflow("diagnose", inputs_file=folder / "inputs.json", output_dir=folder / "out",
                 events_file=folder / "events.jsonl", command=[])
except Cancelled as cancelled:
    sys.exit(cancelled.exit_code)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process can catch")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_host_can_stop_a_run(hosted_run: HostedRun, number: signal.Signals) -> None:
    (hosted_run.folder / "inputs.json").write_text('{"traffic_log": "log.csv"}')
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(hosted_run.folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    # Both lines so far are on the disk while the run goes on.
    kinds = hosted_run.events_file.read_text().count('"event"')
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
    assert kinds == 2
    assert [event["event"] for event in hosted_run.events()] == [
        "run.started",
        "step.started",
        "error",
    ]
    assert hosted_run.events()[-1]["exitCode"] == 130
