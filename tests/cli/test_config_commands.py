"""`slotwise config`: written, checked, explained, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml

from slotwise_workflows.config import load_workload, to_cost
from slotwise_workflows.costs import Preset, all_presets

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, CliProcess


@pytest.mark.parametrize("language", ["ja", "en"])
def test_init_writes_what_check_accepts(cli: Cli, tmp_path: Path, language: str) -> None:
    path = tmp_path / "w.yaml"
    assert cli("config", "init", path, "--language", language).code == 0
    said = cli("config", "check", path)
    assert (said.code, said.out) == (0, f"{path}: valid\n")


def test_init_never_replaces_a_file_unasked(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("mine")
    said = cli("config", "init", path)
    assert said.code == 3
    assert "--force" in said.err
    assert path.read_text() == "mine"
    assert cli("config", "init", path, "--force").code == 0
    assert load_workload(path).version == 1


def test_init_to_standard_output_is_the_file_alone(cli: Cli) -> None:
    said = cli("config", "init", "-", "--language", "en")
    assert said.err == ""
    assert yaml.safe_load(said.out)["version"] == 1


@pytest.mark.parametrize("language", ["ja", "en"])
def test_the_hearing_sheet_is_printed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli("config", "init", "--hearing-sheet", language)
    assert said.code == 0
    assert said.out.startswith("# ")
    assert "max_tokens" in said.out
    assert list(tmp_path.iterdir()) == []


def test_the_interview_fills_in_what_is_known(cli_process: CliProcess, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    answers = ["vLLM", "sixteen", "16", "?", "わかりません", "20", ""]
    ended = cli_process(
        *("config", "init", path, "--interview", "--language", "en"),
        input="\n".join([*answers, ""]).encode(),
        environment={"PYTHONUTF8": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    assert b"Please give a whole number" in ended.stderr
    workload = load_workload(path)
    assert workload.server.serving == "self_hosted"
    assert workload.server.slots == 16
    assert workload.server.replicas is None
    assert workload.objectives.latency_p95_s == 20
    assert workload.report.gpu_hour_price is None


def test_an_interview_that_ends_early_writes_nothing(
    cli_process: CliProcess, tmp_path: Path
) -> None:
    path = tmp_path / "w.yaml"
    ended = cli_process("config", "init", path, "--interview", input=b"vLLM\n")
    assert ended.returncode == 130
    assert not path.exists()


def test_check_lists_every_fault_with_its_line(cli: Cli, workload_file: Path) -> None:
    text = (
        workload_file.read_text().replace("slots: 4", "slot: 4") + "foo: 1\nsweep: {load: [-1]}\n"
    )
    workload_file.write_text(text)
    said = cli("config", "check", workload_file)
    assert said.code == 3
    assert said.out == ""
    assert [line.split(":")[2] for line in said.err.splitlines()] == ["8", "9", "10"]
    assert "Did you mean 'slots'?" in said.err


def test_check_notes_a_log_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text('version: 1\ntraffic:\n  log: {path: ["logs/*.csv", w.yaml]}\n')
    said = cli("config", "check", path)
    assert said.code == 0
    assert said.err == f"note: {path}:3: nothing is at {tmp_path / 'logs' / '*.csv'}\n"


def test_check_in_json(cli: Cli, workload_file: Path) -> None:
    said = cli("config", "check", workload_file, "--json")
    assert json.loads(said.out) == {"valid": True, "faults": []}
    workload_file.write_text(workload_file.read_text() + "foo: 1\n")
    said = cli("config", "check", workload_file, "--json")
    assert said.code == 3
    (fault,) = json.loads(said.out)["faults"]
    assert fault["where"] == f"{workload_file}:9"


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ("{preset: opt-13b-a100-vlm}", "Did you mean 'opt-13b-a100-vllm'?"),
        ("{calibration: none.json}", "server.cost.calibration cannot be used"),
    ],
)
def test_check_looks_into_what_the_cost_names(
    cli: Cli, workload_file: Path, cost: str, said: str
) -> None:
    workload_file.write_text(workload_file.read_text().replace("{ms_per_token: 5}", cost))
    told = cli("config", "check", workload_file)
    assert told.code == 3
    assert told.err.startswith(f"error: {workload_file}:8: server.cost.")
    assert said in told.err
    plain = json.loads(cli("config", "check", workload_file, "--json").out)
    assert plain["valid"] is False
    assert plain["faults"][0]["where"] == f"{workload_file}:8"


def test_check_tells_of_the_presets_memory(cli: Cli, workload_file: Path) -> None:
    text = workload_file.read_text()
    workload_file.write_text(text.replace("{ms_per_token: 5}", "{preset: opt-13b-a100-vllm}"))
    said = cli("config", "check", workload_file)
    assert said.code == 0
    assert "held 66,144 tokens" in said.err


def test_show_says_what_a_preset_stands_for(cli: Cli, workload_file: Path, tmp_path: Path) -> None:
    text = workload_file.read_text()
    workload_file.write_text(text.replace("{ms_per_token: 5}", "{preset: llama-3.1-8b-a100}"))
    said = cli("config", "show", workload_file)
    assert "# cost: {base_ms: 11.564, per_seq_ms: 0.0331, " in said.out
    assert "derived; decode within 3.1 % of the tables" in said.out
    again = tmp_path / "shown.yaml"
    again.write_text(said.out)
    assert load_workload(again).server.cost == load_workload(workload_file).server.cost
    assert cli("config", "show", again).out == said.out
    plain = json.loads(cli("config", "show", workload_file, "--json").out)
    assert plain["server"]["cost"] == {"preset": "llama-3.1-8b-a100"}
    assert plain["resolved_cost"]["values"]["base_ms"] == 11.564


def test_presets_are_listed_with_source_and_quality(cli: Cli) -> None:
    said = cli("config", "presets")
    assert said.code == 0
    for preset in all_presets():
        assert f"{preset.name}: {preset.hardware}, KV memory " in said.out
        assert f"{preset.kind}; {preset.quality}; source: {preset.source}" in said.out
    plain = json.loads(cli("config", "presets", "--json").out)
    assert [preset["name"] for preset in plain["presets"]] == [p.name for p in all_presets()]
    assert plain["presets"][0]["step"]["pieces"][0]["from_seqs"] == 95


@pytest.mark.parametrize("preset", all_presets(), ids=lambda preset: preset.name)
def test_a_presets_terms_as_listed_are_a_step_of_ones_own(
    cli: Cli, workload_file: Path, preset: Preset
) -> None:
    lines = cli("config", "presets").out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith(f"{preset.name}:"))
    text = workload_file.read_text()
    workload_file.write_text(text.replace("{ms_per_token: 5}", f"{{{lines[head + 1].strip()}}}"))
    assert to_cost(load_workload(workload_file)).cost == preset.step


def test_schema_is_a_json_schema(cli: Cli, workload_file: Path) -> None:
    said = cli("config", "schema")
    published = json.loads(said.out)
    jsonschema.Draft202012Validator(published).validate(yaml.safe_load(workload_file.read_text()))


def test_show_says_every_value_in_force(cli: Cli, workload_file: Path, tmp_path: Path) -> None:
    said = cli("config", "show", workload_file)
    shown = yaml.safe_load(said.out)
    assert shown["sweep"]["replications"] == 20
    assert shown["policies"][0]["static"]["release"] == "batch"
    again = tmp_path / "shown.yaml"
    again.write_text(said.out)
    assert cli("config", "show", again).out == said.out
    plain = json.loads(cli("config", "show", workload_file, "--json").out)
    assert plain == shown
