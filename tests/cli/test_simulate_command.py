"""`slotwise simulate`: the table, the JSON and the file of requests."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_the_table_names_policies_and_setting(cli: Cli, workload_file: Path) -> None:
    said = cli("simulate", workload_file)
    assert said.code == 0, said.err
    assert "200 requests, 4 slots, 5 ms a token" in said.out
    assert [row.split()[0] for row in said.out.splitlines()[4:6]] == ["static", "continuous"]


def test_json_and_requests(cli: Cli, workload_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    said = cli("simulate", workload_file, "--json", "--requests-out", out)
    plain = json.loads(said.out)
    assert plain["requests"] == 200
    assert f"wrote {out}" in said.err
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    latency = [float(r["end_s"]) - float(r["arrival_s"]) for r in rows if r["policy"] == "static"]
    assert len(latency) == 200
    assert sum(latency) / 200 == pytest.approx(plain["policies"]["static"]["latency_s"]["mean"])


def test_the_seed_is_what_makes_the_traffic(cli: Cli, workload_file: Path) -> None:
    first, again, other = (
        cli("simulate", workload_file, "--json", "--seed", seed).out for seed in (1, 1, 2)
    )
    assert first == again
    assert json.loads(first)["policies"] != json.loads(other)["policies"]


def test_one_request_is_enough(cli: Cli, workload_file: Path) -> None:
    text = workload_file.read_text().replace("requests: 200", "requests: 1")
    workload_file.write_text(text.replace("[10, 400]", "[1, 1]"))
    said = cli("simulate", workload_file, "--json")
    assert said.code == 0
    assert json.loads(said.out)["policies"]["static"]["tpot_s"] is None
    assert " - " in cli("simulate", workload_file).out


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("{ms_per_token: 5}", "{step: {base_ms: 5}}", 8, "server.cost.step"),
        (", cost: {ms_per_token: 5}", "", 8, "server.cost"),
        ("slots: 4, ", "", 8, "server.slots"),
        ("slots: 4", "slots: 4, replicas: 2, balancer: least_busy", 8, "server.balancer"),
    ],
)
def test_what_cannot_be_simulated_ends_with_3_line_and_field(
    cli: Cli, workload_file: Path, old: str, new: str, line: int, field: str
) -> None:
    workload_file.write_text(workload_file.read_text().replace(old, new))
    said = cli("simulate", workload_file)
    assert said.code == 3
    assert said.err.startswith(f"error: {workload_file}:{line}: {field}")
    assert said.err.count("\n") == 1


def test_what_has_no_effect_is_said(cli: Cli, workload_file: Path) -> None:
    workload_file.write_text(
        workload_file.read_text().replace("slots: 4", "slots: 4, memory: {kv_tokens: 9}")
    )
    said = cli("simulate", workload_file, "--json")
    assert "server.memory has no effect" in said.err
    assert any("server.memory" in note for note in json.loads(said.out)["notes"])
    assert cli("simulate", workload_file, "--json", "--quiet").err == ""


def test_a_place_that_cannot_be_written_ends_with_3(
    cli: Cli, workload_file: Path, tmp_path: Path
) -> None:
    said = cli("simulate", workload_file, "--requests-out", tmp_path / "none" / "r.csv")
    assert said.code == 3
    assert "r.csv: cannot be written: no such file or directory" in said.err


def test_a_place_that_is_not_there_is_named_by_the_option_that_named_it(
    cli: Cli, workload_file: Path, tmp_path: Path
) -> None:
    said = cli("simulate", workload_file, "--requests-out", tmp_path / "none" / "r.csv", "--quiet")
    assert said.code == 3
    assert "--requests-out" in said.err
    assert "--output-dir" not in said.err
    said = cli("config", "init", tmp_path / "none" / "w.yaml")
    assert said.code == 3
    assert "FILE" in said.err
    assert "--output-dir" not in said.err
