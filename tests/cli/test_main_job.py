"""From a log to a verdict and a report, as a person does it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slotwise_workflows.run_directory import load_result

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, CliProcess, Said

KEYS = {
    "schema",
    "verdict",
    "confidence",
    "reasons",
    "gain",
    "waiting",
    "gain_bound",
    "idle_share",
    "policies",
    "what_if",
    "traffic",
    "provenance",
}


Diagnosed = tuple[Path, "Said"]


@pytest.fixture
def diagnosed(cli: Cli, log_file: Path, tmp_path: Path) -> Diagnosed:
    """A finished run of the log, with its console output."""
    directory = tmp_path / "run"
    words = ["--slots", 8, "--ms-per-token", 10, "--replicas", 1, "--language", "en"]
    return directory, cli("diagnose", log_file, *words, "--output-dir", directory)


def test_a_log_alone_gives_a_verdict_and_a_report(
    cli: Cli, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli("diagnose", log_file, "--language", "ja")
    assert said.code == 0, said.err
    assert said.err == ""
    assert said.out.endswith("Report: slotwise-chat/report.html\n")
    names = {path.name for path in (tmp_path / "slotwise-chat").iterdir()}
    assert names >= {"result.json", "report.html", "report.md", "provenance.json", "tables"}
    assert "traffic.parquet" in names
    html = (tmp_path / "slotwise-chat" / "report.html").read_text(encoding="utf-8")
    assert '<html lang="ja"' in html


def test_the_console_says_verdict_numbers_and_place(diagnosed: Diagnosed) -> None:
    directory, said = diagnosed
    assert said.code == 0, said.err
    assert "Slots idle" in said.out
    assert str(directory / "report.html") in said.out


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "Rows in the log: 200; Requests kept: 133 (failed 60, no_output 7)"),
        ("ja", "133 (failed 60, no_output 7)"),
    ],
)
def test_the_console_says_what_was_left_out_and_why(
    cli: Cli, tmp_path: Path, language: str, told: str
) -> None:
    rows = ["ts,completion_tokens,status"]
    for i in range(200):
        tokens, status = (0, 500) if i < 60 else ("", 200) if i < 67 else (10 + i, 200)
        rows.append(f"{1788220800 + i},{tokens},{status}")
    log = tmp_path / "mixed.csv"
    log.write_text("\n".join(rows) + "\n")
    words = ("--language", language, "--formats", "md", "--output-dir", tmp_path / "o")
    said = cli("diagnose", log, *words)
    assert said.code == 0, said.err
    assert sum(told in line for line in said.out.splitlines()) == 1


def test_the_console_says_where_times_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "soon.csv"
    log.write_text("arrival,out_tokens\n" + "".join(f"soon,{10 + i}\n" for i in range(100)))
    said = cli("diagnose", log, "--formats", "md", "--output-dir", tmp_path / "o")
    assert "soon.csv:2: its arrival cannot be read, nor in 99 more" in said.out


def test_json_is_all_there_is_on_standard_output(cli: Cli, log_file: Path, tmp_path: Path) -> None:
    said = cli("diagnose", log_file, "--json", "--output-dir", tmp_path / "run")
    plain = json.loads(said.out)
    assert plain.keys() >= KEYS
    assert plain == json.loads((tmp_path / "run" / "result.json").read_bytes())
    assert plain["traffic"]["rows"] == plain["traffic"]["requests"] == 150


def test_what_was_told_is_given_and_kept_in_provenance(
    diagnosed: Diagnosed, log_file: Path
) -> None:
    result = load_result(diagnosed[0])
    facts = {fact.name: fact for fact in result.facts}
    for name, value in (("slots", 8), ("ms_per_token", 10), ("replicas", 1)):
        assert (facts[name].value, facts[name].source) == (value, "given")
    provenance = result.provenance
    assert provenance.command[:2] == ["slotwise", "diagnose"]
    assert provenance.config["server"]["slots"] == 8
    assert provenance.config["report"]["language"] == "en"
    (file,) = provenance.inputs
    assert file.sha256 == hashlib.sha256(log_file.read_bytes()).hexdigest()


@pytest.mark.usefixtures("log_file")
def test_options_go_before_the_workload_file(cli: Cli, tmp_path: Path) -> None:
    workload = tmp_path / "w.yaml"
    workload.write_text(
        "version: 1\nname: from file\ntraffic: {log: {path: chat.csv, segment: route}}\n"
        "server: {slots: 4, replicas: 1, cost: {ms_per_token: 5}}\n"
        "policies: [dynamic: {max_delay_ms: .inf}, continuous]\n"
        "report: {client: Someone, language: ja, formats: [md]}\n"
        "thresholds: {min_requests: 100}\n"
    )
    said = cli(
        *("diagnose", "--workload", workload, "--slots", 16, "--client", "Other"),
        *("--output-dir", tmp_path / "run", "--json"),
    )
    assert said.code == 0, said.err
    result = load_result(tmp_path / "run")
    facts = {fact.name: fact.value for fact in result.facts}
    assert (facts["slots"], facts["ms_per_token"]) == (16, 5)
    assert result.name == "from file"
    assert result.thresholds["min_requests"] == 100
    assert set(result.traffic.segments) == {"route"}
    config = result.provenance.config
    assert config["server"]["max_delay_ms"] == ".inf"
    assert config["report"] == {
        "language": "ja",
        "formats": ["md"],
        "client": "Other",
        **dict.fromkeys(("prepared_by", "date", "document_number", "confidential"), ""),
        "accent": "#0b6b7d",
        "logo": "",
        "notes": "",
        "actions": [],
    }
    assert config["workload"]["server"]["slots"] == 4
    assert not (tmp_path / "run" / "report.html").exists()


def test_synthetic_traffic_is_diagnosed_like_a_log(
    cli: Cli, workload_file: Path, tmp_path: Path
) -> None:
    said = cli("diagnose", "--workload", workload_file, "--output-dir", tmp_path / "run", "--json")
    assert said.code == 0, said.err
    plain = json.loads(said.out)
    assert (plain["name"], plain["traffic"]["format"]) == ("small", "synthetic")
    simulated = json.loads(cli("simulate", workload_file, "--json").out)
    assert simulated["requests"] == plain["traffic"]["requests"] == 200


def test_too_little_data_ends_with_4_and_still_writes(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "tiny.csv"
    log.write_text("ts,completion_tokens\n2026-01-05T09:00:00Z,10\n2026-01-05T09:00:01Z,30\n")
    said = cli("diagnose", log, "--json", "--output-dir", tmp_path / "run")
    assert said.code == 4
    assert json.loads(said.out)["verdict"] == "insufficient_data"
    assert (tmp_path / "run" / "report.html").exists()
    assert cli("inspect", log).code == 0


def test_no_percentile_that_the_sample_cannot_support(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "few.csv"
    rows = [f"2026-01-05T09:00:{i:02d}Z,{10 + i}" for i in range(50)]
    log.write_text("\n".join(["ts,completion_tokens", *rows]))
    assert "p95" not in cli("inspect", log).out
    assert json.loads(cli("inspect", log, "--json").out)["output_tokens"]["p95"] > 0


@pytest.mark.parametrize("language", ["ja", "en"])
def test_a_report_is_rendered_again_with_the_same_numbers(
    cli: Cli, diagnosed: Diagnosed, tmp_path: Path, language: str
) -> None:
    directory, _ = diagnosed
    before = (directory / "result.json").read_bytes()
    again = tmp_path / "again"
    said = cli(
        *("report", directory, "--language", language, "--client", "客先"),
        *("--output-dir", again),
    )
    assert said.code == 0, said.err
    assert str(again / "report.html") in said.out
    html = (again / "report.html").read_text(encoding="utf-8")
    assert f'<html lang="{language}"' in html
    assert "客先" in html
    assert (directory / "result.json").read_bytes() == before


@pytest.mark.usefixtures("charts_drawn_anew")
def test_a_report_without_options_is_the_same_report(cli: Cli, diagnosed: Diagnosed) -> None:
    directory, _ = diagnosed
    before = (directory / "report.html").read_bytes()
    assert cli("report", directory).code == 0
    assert (directory / "report.html").read_bytes() == before


@pytest.mark.usefixtures("charts_drawn_anew")
def test_same_input_and_seed_give_the_same_files(
    cli: Cli, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767600000")
    files = []
    for name in ("a", "b"):
        monkeypatch.chdir(tmp_path)
        assert cli("diagnose", log_file, "--output-dir", "run", "--language", "en").code == 0
        run = tmp_path / "run"
        files.append(
            {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}
        )
        run.rename(tmp_path / name)
    assert files[0] == files[1]


def test_a_fault_in_the_middle_keeps_the_old_result(
    cli: Cli, diagnosed: Diagnosed, log_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, _ = diagnosed
    before = (directory / "result.json").read_bytes()

    def interrupted(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("slotwise_workflows.pipeline.write_report", interrupted)
    said = cli("diagnose", log_file, "--output-dir", directory)
    assert (said.code, said.err) == (130, "cancelled\n")
    assert (directory / "result.json").read_bytes() == before
    assert not [path for path in directory.iterdir() if path.name.endswith(".tmp")]


def test_an_output_directory_that_is_a_file_ends_with_3(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "o").write_text("mine")
    said = cli("diagnose", log_file, "--output-dir", tmp_path / "o")
    assert said.code == 3
    assert "--output-dir" in said.err
    assert (tmp_path / "o").read_text() == "mine"


def test_standard_input_is_a_log(cli_process: CliProcess, log_file: Path) -> None:
    ended = cli_process("inspect", "-", "--json", input=log_file.read_bytes())
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["requests"] == 150


def test_reading_options_reach_the_reader(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "own.csv"
    log.write_text(
        "when;out;lane\n"
        + "".join(f"{1000 * i};{10 + i};{'a' if i % 2 else 'b'}\n" for i in range(90))
    )
    words = ["--map", "arrival=when", "--map", "output_tokens=out", "--time-unit", "ms"]
    said = cli("inspect", log, *words, "--segment", "lane", "--where", "lane=a", "--json")
    assert said.code == 0, said.err
    plain = json.loads(said.out)
    assert (plain["rows"], plain["requests"]) == (90, 45)
    assert plain["output_tokens"]["mean"] == sum(11 + 2 * i for i in range(45)) / 45
    assert plain["arrival"] == {"first": 1.0, "last": 89.0}
    assert list(plain["segments"]["lane"]["values"]) == ["a"]


def test_inspect_prints_the_account_and_writes_the_table(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    said = cli("inspect", log_file, "--segment", "route", "--output-dir", tmp_path / "o")
    assert said.code == 0
    assert "150 = 150 requests" in said.out
    assert "traffic.parquet" in said.err
    again = json.loads(cli("inspect", tmp_path / "o" / "traffic.parquet", "--json").out)
    first = json.loads(cli("inspect", log_file, "--json").out)
    for key in ("requests", "output_tokens", "arrival", "gain_bound"):
        assert again[key] == first[key]


def test_hostile_names_of_a_log_cannot_act_on_the_terminal(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "evil.jsonl"
    row = {"ts": 0, "completion_tokens": 5, "model": "\x1b[2J[red]x\u202e", "route": "\x1b]0;t\x07"}
    log.write_text("\n".join(json.dumps(row | {"ts": i}) for i in range(80)))
    for words in (["inspect", "--segment", "route"], ["diagnose", "--output-dir", tmp_path / "o"]):
        said = cli(words[0], log, *words[1:])
        assert not re.search(r"[\x1b\x07\u202e]", said.out + said.err)


def test_the_demo_shows_the_articles_figures(cli: Cli, tmp_path: Path) -> None:
    said = cli("demo", "--language", "en", "--output-dir", tmp_path / "d")
    assert said.code == 0
    rows = [line.split() for line in said.out.splitlines()]
    assert [
        "static",
        *["151.36", "260.13", "272.69", "326.4", "1.84", "941.1", "64.0", "%"],
    ] in rows
    assert [
        "continuous",
        *["34.62", "60.26", "66.79", "120.3", "4.99", "941.1", "2.2", "%"],
    ] in rows
    even = {row[0]: row for row in rows if row and row[0] in ("static", "continuous")}
    assert even["static"][1] == "19.67"
    assert even["continuous"][1] == "19.38"
    assert even["static"][4] == even["continuous"][4] == "91.0"
    assert (tmp_path / "d" / "report.html").exists()
    assert load_result(tmp_path / "d" / "control").verdict == "no_gain"


def test_the_demo_in_json_writes_nothing_unasked(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = json.loads(cli("demo", "--json").out)
    assert (plain["verdict"], plain["control"]["verdict"]) == ("adopt", "no_gain")
    assert list(tmp_path.iterdir()) == []
