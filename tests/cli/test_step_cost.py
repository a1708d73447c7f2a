"""`slotwise diagnose` under a step cost, as a person asks for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from slotwise_sim import Step

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

WORKLOAD = """\
version: 1
name: paged
traffic: {{log: {{path: chat.csv}}}}
server:
  slots: 4
  replicas: 1
  mode: online
  cost: {cost}
  memory: {{kv_tokens: 20000}}
policies: [{{dynamic: {{pad: true}}}}, {{continuous: {{prefill: separate}}}}]
"""
STEP = "{step: {base_ms: 10, per_seq_ms: 0.1, per_prefill_token_ms: 0.05}}"


def result_of(cli: Cli, *words: object) -> dict[str, Any]:
    said = cli("diagnose", *words, "--json")
    assert said.code == 0, said.err
    result: dict[str, Any] = json.loads(said.out)
    return result


def test_a_preset_takes_the_place_of_a_time_per_token(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    words = ["--slots", 4, "--replicas", 1, "--preset", "llama-3.1-8b-a100", "--language", "en"]
    said = cli("diagnose", log_file, *words, "--output-dir", tmp_path / "run")
    assert said.code == 0, said.err
    assert "The step cost is the preset llama-3.1-8b-a100" in said.out
    assert "comes from refilling slots; memory for more requests at once is not counted" in said.out
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "slotwise diagnose NEW\\_LOG" in report or "slotwise diagnose NEW_LOG" in report
    assert "--preset llama-3.1-8b-a100" in report
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["cost"]["name"] == "llama-3.1-8b-a100"
    assert result["provenance"]["config"]["server"]["cost"]["kind"] == "preset"


def test_a_workload_file_tells_cost_memory_and_policies(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    path = log_file.with_name("paged.yaml")
    path.write_text(WORKLOAD.format(cost=STEP), encoding="utf-8")
    result = result_of(cli, "--workload", path, "--output-dir", tmp_path / "run")
    assert result["cost"]["kind"] == "step"
    assert result["memory"]["kv_tokens"] == 20_000
    assert result["attribution"]["memory"] is not None
    padding = next(fact for fact in result["facts"] if fact["name"] == "padding")
    assert (padding["value"], padding["source"]) == ("yes", "given")
    in_force = result["provenance"]["config"]["server"]
    assert in_force["continuous"]["prefill"] == "separate"


@pytest.mark.parametrize(
    ("option", "kind"),
    [(["--ms-per-token", 20], None), (["--preset", "llama-3.1-8b-h100"], "preset")],
)
def test_an_option_takes_the_place_of_the_files_cost(
    cli: Cli, log_file: Path, tmp_path: Path, option: list[object], kind: str | None
) -> None:
    path = log_file.with_name("paged.yaml")
    path.write_text(WORKLOAD.format(cost=STEP), encoding="utf-8")
    result = result_of(cli, "--workload", path, *option, "--output-dir", tmp_path / "run")
    if kind is None:
        assert (result["ms_per_token"], result["cost"], result["memory"]) == (20, None, None)
    else:
        assert result["cost"]["kind"] == kind
        assert result["memory"]["kv_tokens"] == 20_000  # the file's, whatever the cost


def test_a_calibration_is_named_with_its_quality(
    cli: Cli, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def read_calibration(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(
            cost=Step(base_ms=12.0, per_seq_ms=0.1),
            source="fitted to 300 requests",
            quality="hold-out: mean latency 2.1 % off",
            kv_tokens=None,
            batch=(8, 48),
            off=0.021,
            requests=300,
            hold_out=None,
            reliable=True,
        )

    fake = SimpleNamespace(read_calibration=read_calibration)
    monkeypatch.setitem(sys.modules, "slotwise_workflows.calibrate", SimpleNamespace(file=fake))
    monkeypatch.setitem(sys.modules, "slotwise_workflows.calibrate.file", fake)
    fitted = tmp_path / "calibration.json"
    words = ["--slots", 4, "--calibration", fitted, "--output-dir", tmp_path / "run"]
    result = result_of(cli, log_file, *words)
    assert asked == [fitted]
    cost = next(fact for fact in result["facts"] if fact["name"] == "cost")
    assert (cost["source"], cost["basis"]) == ("estimated", "calibration")
    assert "2.1 % off" in cost["detail"]
    limits = {limit["code"]: limit["numbers"] for limit in result["limits"]}
    assert limits["cost_calibrated"] == {"off": 0.021, "held_out": None}
    assert limits["cost_extrapolated"] == {"slots": 4, "low": 8, "high": 48}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--preset", "llama-3.1-8b-a10"], 2, "Did you mean 'llama-3.1-8b-a100'?"),
        (["--preset", "x", "--ms-per-token", "8"], 2, "--ms-per-token and --preset exclude"),
        (["--preset", "x", "--calibration", "c.json"], 2, "--preset and --calibration exclude"),
    ],
)
def test_a_cost_that_is_none_is_one_line(
    cli: Cli, log_file: Path, words: list[str], code: int, says: str
) -> None:
    said = cli("diagnose", log_file, *words)
    assert said.code == code
    assert says in said.err
    assert len(said.err.splitlines()) == 1


def test_caps_that_are_missing_are_told_with_the_files_line(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    path = log_file.with_name("paged.yaml")
    text = WORKLOAD.format(cost=STEP).replace("20000", "20000, reserve: max_tokens")
    path.write_text(text, encoding="utf-8")
    said = cli("diagnose", "--workload", path, "--output-dir", tmp_path / "run")
    assert said.code == 3
    assert said.err.startswith(
        f"error: {path}:9: server.memory.reserve max_tokens needs the max_tokens of every request: "
    )
    assert len(said.err.splitlines()) == 1


def test_a_request_that_no_memory_holds_is_one_line(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    path = log_file.with_name("paged.yaml")
    text = WORKLOAD.format(cost=STEP).replace("20000", "64")
    path.write_text(text, encoding="utf-8")
    said = cli("diagnose", "--workload", path, "--output-dir", tmp_path / "run")
    assert said.code == 3
    assert "can never run" in said.err
    assert "chat.csv" in said.err
    assert not (tmp_path / "run" / "result.json").exists()
