"""`slotwise run diagnose` for real: the manifest's promises held against what is produced."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from slotwise_cli.app import app
from slotwise_workflows.plugin import get_workflow_info
from slotwise_workflows.resources import load_json

if TYPE_CHECKING:
    from tests.workflows.plugin.conftest import HostedRun

DIAGNOSE = get_workflow_info()["workflows"][0]
PROMPT = "a sentence that only the log holds"


def _log(path: Path, requests: int, *, even: bool = False) -> None:
    rng = np.random.default_rng(7)
    arrival = np.cumsum(rng.exponential(0.08, requests))
    long = rng.random(requests) < 0.15
    tokens = np.where(long, rng.integers(400, 1000, requests), rng.integers(40, 200, requests))
    if even:
        tokens[:] = 150
    rows = [
        f"{1_767_261_600 + at:.3f},{token},64,{PROMPT}"
        for at, token in zip(arrival, tokens, strict=True)
    ]
    path.write_text("\n".join(["arrival_s,output_tokens,prompt_tokens,prompt", *rows]) + "\n")


@pytest.fixture
def diagnosis(hosted_run: HostedRun, monkeypatch: pytest.MonkeyPatch) -> HostedRun:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767261600")
    _log(hosted_run.folder / "log.csv", 300)
    told = {"traffic_log": "log.csv", "slots": 8, "ms_per_token": 8, "client": "甲社"}
    hosted_run.inputs = {**told, "pdf": True}  # all that the manifest declares
    return hosted_run


def _command(run: HostedRun) -> list[str]:
    """The manifest's arguments with the host's paths put in."""
    inputs_file = run.folder / "inputs.json"
    inputs_file.write_text(json.dumps(run.inputs), encoding="utf-8")
    paths = {
        "${inputsFile}": str(inputs_file),
        "${outputDir}": str(run.output_dir),
        "${eventsFile}": str(run.events_file),
    }
    return [paths.get(argument, argument) for argument in DIAGNOSE["args"]]


@pytest.mark.usefixtures("charts_drawn_anew")
def test_a_run_as_the_manifest_declares_it(
    diagnosis: HostedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("the manifest declares no network and no other program")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    done = CliRunner().invoke(app, _command(diagnosis))
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""

    events = diagnosis.events()
    steps = [event["step"] for event in events if event["event"] == "step.started"]
    assert steps == ["read", "diagnose", "report"]
    ids = [event["id"] for event in events if event["event"] == "artifact"]
    declared = [item["id"] for item in DIAGNOSE["artifacts"]]
    assert set(ids) == set(declared)
    written = {
        path.relative_to(diagnosis.output_dir).as_posix()
        for path in diagnosis.output_dir.rglob("*")
        if path.is_file()
    }
    assert written == {event["path"] for event in events if event["event"] == "artifact"}

    result = json.loads((diagnosis.output_dir / "result.json").read_text(encoding="utf-8"))
    schema = next(item["schema"] for item in DIAGNOSE["artifacts"] if item["id"] == "result")
    Draft202012Validator(load_json(schema)).validate(result)
    outputs = events[-1]["outputs"]
    Draft202012Validator(DIAGNOSE["outputs"]).validate(outputs)
    assert outputs == {key: result[key] for key in ("verdict", "confidence", "requests", "gain")}
    assert outputs["requests"] == 300
    assert result["provenance"]["config"]["inputs"]["slots"] == 8
    assert "甲社" in (diagnosis.output_dir / "report.html").read_text(encoding="utf-8")


def test_no_prompt_text_leaves_the_log(diagnosis: HostedRun) -> None:
    diagnosis.start()
    files = [path for path in diagnosis.folder.rglob("*") if path.is_file()]
    holders = [path.name for path in files if PROMPT.encode() in path.read_bytes()]
    assert holders == ["log.csv"]


@pytest.mark.usefixtures("charts_drawn_anew")
def test_the_same_inputs_give_the_same_artifacts(diagnosis: HostedRun) -> None:
    def artifacts() -> dict[Path, bytes]:
        diagnosis.start()
        return {
            path.relative_to(diagnosis.output_dir): path.read_bytes()
            for path in diagnosis.output_dir.rglob("*")
            if path.is_file()
        }

    first = artifacts()
    events = diagnosis.events_file.read_bytes()
    diagnosis.output_dir.rename(diagnosis.folder / "before")
    assert artifacts() == first
    assert diagnosis.events_file.read_bytes() == events


def test_inputs_win_over_the_workload_file(diagnosis: HostedRun) -> None:
    (diagnosis.folder / "workload.yaml").write_text(
        "version: 1\n"
        "name: support-chat\n"
        "traffic: {log: {path: nowhere.csv, where: ['prompt_tokens=1']}}\n"
        "server: {slots: 4, replicas: 2, cost: {ms_per_token: 20}}\n"
        "report: {language: en, client: Otsu}\n",
        encoding="utf-8",
    )
    diagnosis.inputs |= {"workload": "workload.yaml", "where": "prompt_tokens=64"}
    diagnosis.start()
    result = json.loads((diagnosis.output_dir / "result.json").read_text(encoding="utf-8"))
    facts = {fact["name"]: fact["value"] for fact in result["facts"]}
    assert result["name"] == "support-chat"
    assert result["requests"] == 300
    assert (facts["slots"], facts["ms_per_token"], facts["replicas"]) == (8, 8, 2)
    html = (diagnosis.output_dir / "report.html").read_text(encoding="utf-8")
    assert 'lang="en"' in html  # the workload's word; the schema's default is ja
    assert "甲社" in html


def test_too_little_data_ends_with_4_and_a_report(diagnosis: HostedRun) -> None:
    _log(diagnosis.folder / "log.csv", 20)
    done = CliRunner().invoke(app, [*_command(diagnosis), "--json"])
    assert done.exit_code == 4, done.stderr
    assert json.loads(done.stdout)["verdict"] == "insufficient_data"
    last = diagnosis.events()[-1]
    assert (last["event"], last["status"]) == ("run.finished", "insufficient_data")
    assert (diagnosis.output_dir / "report.html").is_file()


def test_equal_lengths_are_told_that_there_is_no_gain(diagnosis: HostedRun) -> None:
    _log(diagnosis.folder / "log.csv", 300, even=True)
    finished = diagnosis.start()
    assert finished.exit_code == 0
    assert finished.outputs["verdict"] in ("no_gain", "conditional")
    assert finished.outputs["gain"]["high"] < 1.1


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"traffic_log": "none.csv"}, 3, "none.csv"),
        ({"slots": "many"}, 3, "#/slots"),
        ({"workload": "none.yaml"}, 3, "none.yaml"),
    ],
)
def test_faults_are_one_line_and_the_last_event(
    diagnosis: HostedRun, change: dict[str, object], code: int, says: str
) -> None:
    diagnosis.inputs |= change
    done = CliRunner().invoke(app, _command(diagnosis))
    assert done.exit_code == code
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    last = diagnosis.events()[-1]
    assert (last["event"], last["exitCode"]) == ("error", code)
    assert last["message"] in done.stderr


def test_an_unknown_workflow_ends_with_2(diagnosis: HostedRun) -> None:
    command = _command(diagnosis)
    command[1] = "diagnoze"
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert diagnosis.events()[-1]["status"] == "usage"


def test_a_host_names_a_preset(diagnosis: HostedRun) -> None:
    del diagnosis.inputs["ms_per_token"]
    diagnosis.inputs["preset"] = "llama-3.1-8b-a100"
    diagnosis.start()
    result = json.loads((diagnosis.output_dir / "result.json").read_text(encoding="utf-8"))
    assert result["cost"]["name"] == "llama-3.1-8b-a100"
    report = (diagnosis.output_dir / "report.md").read_text(encoding="utf-8")
    assert "--slots 8 --preset llama-3.1-8b-a100" in report


def test_a_host_names_one_cost(diagnosis: HostedRun) -> None:
    diagnosis.inputs["preset"] = "llama-3.1-8b-a100"
    done = CliRunner().invoke(app, _command(diagnosis))
    assert done.exit_code == 3
    assert "ms_per_token and preset exclude each other" in done.stderr
    assert diagnosis.events()[-1]["status"] == "invalid_input"


def test_a_workload_files_step_cost_is_the_hosts_too(diagnosis: HostedRun) -> None:
    (diagnosis.folder / "workload.yaml").write_text(
        "version: 1\n"
        "traffic: {log: {path: nowhere.csv}}\n"
        "server: {cost: {step: {base_ms: 9}}, memory: {kv_tokens: 20000}}\n",
        encoding="utf-8",
    )
    del diagnosis.inputs["ms_per_token"]
    diagnosis.inputs["workload"] = "workload.yaml"
    diagnosis.start()
    result = json.loads((diagnosis.output_dir / "result.json").read_text(encoding="utf-8"))
    assert result["cost"]["kind"] == "step"
    assert result["memory"]["kv_tokens"] == 20_000
