"""`slotwise simulate`: the table, the JSON and the file of requests."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slotwise_sim import Outcome, simulate

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
        ("{ms_per_token: 5}", "{step: {}}", 8, "server.cost.step.base_ms"),
        ("{ms_per_token: 5}", "{preset: opt}", 8, "server.cost.preset"),
        ("{ms_per_token: 5}", "{calibration: none.json}", 8, "server.cost.calibration"),
        (", cost: {ms_per_token: 5}", "", 8, "server.cost"),
        ("slots: 4, ", "", 8, "server.slots"),
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


PRESET = "{preset: opt-13b-a100-vllm}, memory: {kv_tokens: 1600}"


def test_a_preset_is_shown_with_source_quality_memory_and_the_split(
    cli: Cli, workload_file: Path
) -> None:
    workload_file.write_text(workload_file.read_text().replace("{ms_per_token: 5}", PRESET))
    said = cli("simulate", workload_file)
    assert said.code == 0, said.err
    assert "200 requests, 4 slots; latency in s" in said.out
    cost, source, memory, split = said.out.splitlines()[-4:]
    assert cost.startswith("cost: {base_ms: 23.475, per_seq_ms: 0.06073, ")
    assert "pieces: [{from_seqs: 95, base_ms: 20.206, " in cost
    assert source.startswith("  preset opt-13b-a100-vllm, published; ")
    assert "source: DistServe" in source
    assert memory == "memory: 1,600 tokens a server, paged in blocks of 16"
    numbers = [float(n) for n in re.findall(r"\d+\.\d\d", split)]
    assert numbers[0] == pytest.approx(math.prod(numbers[1:]), abs=0.03)
    plain = json.loads(cli("simulate", workload_file, "--json").out)
    assert plain["ms_per_token"] is None
    assert plain["cost"]["quality"].startswith("published; ")
    assert plain["memory"] == {"kv_tokens": 1600, "block_tokens": 16, "reserve": "paged"}
    assert set(plain["attribution"]) == {"order", "memory", "larger_batch", "total", "running"}
    assert numbers == [
        pytest.approx(plain["attribution"][key], abs=0.005)
        for key in ("total", "order", "memory", "larger_batch")
    ]


def test_a_cost_of_ones_own_is_shown_as_unchecked(cli: Cli, workload_file: Path) -> None:
    text = workload_file.read_text().replace("{ms_per_token: 5}", "{step: {base_ms: 5}}")
    workload_file.write_text(text)
    assert cli("simulate", workload_file).out.splitlines()[-4:-1] == [
        "cost: {base_ms: 5}",
        "  stated by the user, not checked against a server",
        "memory: limits nothing",
    ]


def test_preemptions_are_told_where_there_are_some(cli: Cli, workload_file: Path) -> None:
    text = workload_file.read_text().replace("{ms_per_token: 5}", "{step: {base_ms: 5}}, MEMORY")
    text = text.replace("rate: 2", "rate: 20")
    workload_file.write_text(text.replace("MEMORY", "memory: {kv_tokens: 448}"))
    count = json.loads(cli("simulate", workload_file, "--json").out)["policies"]["continuous"]
    assert count["preemptions"] > 0
    line = f"  continuous: {count['preemptions']:,} times a request had to give it back"
    assert line in cli("simulate", workload_file).out.splitlines()
    workload_file.write_text(text.replace("MEMORY", "memory: {kv_tokens: 448000}"))
    assert "give it back" not in cli("simulate", workload_file).out


def test_a_request_too_large_for_the_memory_ends_with_3(cli: Cli, workload_file: Path) -> None:
    text = workload_file.read_text()
    workload_file.write_text(
        text.replace("{ms_per_token: 5}", "{step: {base_ms: 5}}, memory: {kv_tokens: 160}")
    )
    said = cli("simulate", workload_file)
    assert said.code == 3
    assert re.match(rf"error: {workload_file}:8: request \d+ can never run: ", said.err)
    assert said.err.count("\n") == 1


def test_ctrl_c_leaves_nothing_half_written(
    cli: Cli, workload_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second policy, when the first one's requests are there to be written."""
    served: list[Outcome] = []

    def interrupted(*args: Any, **options: Any) -> Outcome:
        if served:
            raise KeyboardInterrupt
        served.append(simulate(*args, **options))
        return served[0]

    monkeypatch.setattr("slotwise_workflows.simulation.simulate", interrupted)
    before = set(tmp_path.iterdir())
    said = cli("simulate", workload_file, "--json", "--requests-out", tmp_path / "r.csv")
    assert (said.code, said.out, said.err) == (130, "", "cancelled\n")
    assert len(served) == 1
    assert set(tmp_path.iterdir()) == before


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


def test_an_input_is_never_replaced(cli: Cli, workload_file: Path) -> None:
    before = workload_file.read_bytes()
    said = cli("simulate", workload_file, "--requests-out", workload_file)
    assert said.code == 3
    assert "would replace what is read" in said.err
    assert "--requests-out" in said.err
    assert said.err.count("\n") == 1
    assert workload_file.read_bytes() == before


def test_users_and_the_least_busy_server(cli: Cli, workload_file: Path) -> None:
    """Four users who do not think keep four requests in flight, whatever times the file has."""
    text = workload_file.read_text()
    workload_file.write_text(
        text.replace("slots: 4", "slots: 2, replicas: 2, balancer: least_busy").replace(
            "traffic:\n", "traffic:\n  users: {count: 4}\n"
        )
    )
    said = json.loads(cli("simulate", workload_file, "--json").out)
    continuous = said["policies"]["continuous"]
    assert continuous["queue_delay_s"]["max"] == 0
    assert continuous["idle_share"] < 0.05
    static = said["policies"]["static"]  # its users wait for the longest of a batch
    assert static["requests_per_s"] < continuous["requests_per_s"]
    told = cli("simulate", workload_file).out
    assert "2 slots x 2 replicas, least_busy, 4 users" in " ".join(told.split())
