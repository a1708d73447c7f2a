"""`diagnose --probe`: what was found on the live endpoint counts, and stands in the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slotwise_workflows.probe import read_probe

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SAMPLE: dict[str, Any] = {
    "stage": "baseline", "name": "baseline", "trial": 0, "asked_tokens": 32, "sent_ns": 0,
    "first_token_ns": 20_000_000, "last_token_ns": 330_000_000, "end_ns": 331_000_000,
    "chunks": 32, "streamed": True, "status": 200, "prompt_tokens": 40, "output_tokens": 32,
    "finish_reason": "length", "fault": None,
}  # fmt: skip
PROBE: dict[str, Any] = {
    "schema": "slotwise/probe/v1",
    "url": "http://localhost:8000/v1/chat/completions",
    "api": "chat",
    "model": "tiny",
    "endpoint": {
        "kind": "vllm", "sign": "GET /version", "api": "chat", "model": "tiny", "streams": True,
        "usage": True, "cached_tokens_told": False, "lengths_forced": True,
        "forced_by": ["ignore_eos"], "dropped_fields": [], "max_model_tokens": 4096,
        "slots_told": None,
    },
    "batching": "continuous",
    "confidence": "high",
    "reason": {"code": "joined_at_once", "numbers": {"shorts": 2}},
    "remarks": [],
    "slots": 6,
    "slots_at_least": 6,
    "release": None,
    "gather_s": None,
    "interrupted": False,
    "stopped_by": None,
    "plan": {
        "trials": 2, "shorts": 6, "requests": 288, "output_tokens": 49152, "long_s": 4.0,
        "seconds": 420.0,
    },
    "sizes": {"long": 400, "shorts": [50, 60, 70, 80, 90, 100]},
    "baseline": {
        "ttft_s": 0.02, "latency_s": 0.33, "output_tokens": 32, "seconds_per_token": 0.01,
        "streams": True,
    },
    "alone": {
        "requests": 4, "ttft_s": 0.02, "ttft_min_s": 0.02, "ttft_max_s": 0.02, "noise_s": 0.0,
        "seconds_per_token": 0.01, "seconds_per_token_min": 0.01, "seconds_per_token_max": 0.01,
        "latency_min_s": 0.18, "step_s": 0.01, "wait_s": 0.0, "varies": False,
    },
    "trials": [],
    "timeline": [
        {"name": "long", "sent_s": 0.0, "first_token_s": 0.02, "last_token_s": 4.0},
        {"name": "short-1", "sent_s": 0.5, "first_token_s": 0.53, "last_token_s": 1.5},
    ],
    "requests_sent": 40,
    "output_tokens": 3000,
    "samples": [SAMPLE],
}  # fmt: skip


def probed(tmp_path: Path, **changes: Any) -> Path:
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "probe.json").write_text(json.dumps(PROBE | changes), encoding="utf-8")
    return tmp_path / "probe"


def test_a_server_that_was_seen_to_batch_has_it_already(
    cli: Cli, log_file: Path, tmp_path: Path
) -> None:
    directory = probed(tmp_path)
    said = cli("diagnose", log_file, "--probe", directory, "--json", "--output-dir", tmp_path / "o")
    assert said.code == 0, said.err
    result = json.loads(said.out)
    assert (result["verdict"], result["confidence"]) == ("already", "high")
    facts = {fact["name"]: fact for fact in result["facts"]}
    for name in ("batches_already", "slots"):
        assert (facts[name]["source"], facts[name]["basis"]) == ("measured", "probe")
    assert result["slots"] == 6
    assert result["probe"]["timeline"] == PROBE["timeline"]
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert 'id="endpoint"' in page
    assert "probe-timeline" in page
    again = json.loads((tmp_path / "o" / "probe.json").read_text(encoding="utf-8"))
    assert {**PROBE, "cost": None, "replay": None}.items() <= {**again, "samples": [SAMPLE]}.items()


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({"confidence": "medium"}, "estimated"),
        ({"confidence": "low"}, "assumed"),
        ({"batching": "undetermined"}, "assumed"),
        ({"batching": "static", "release": "own"}, "measured"),
    ],
)
def test_it_counts_as_far_as_it_was_sure(
    cli: Cli, log_file: Path, tmp_path: Path, changes: dict[str, Any], source: str
) -> None:
    directory = probed(tmp_path, **changes)
    words = ["--probe", directory, "--slots", 5, "--json", "--output-dir", tmp_path / "o"]
    result = json.loads(cli("diagnose", log_file, *words).out)
    facts = {fact["name"]: fact for fact in result["facts"]}
    found = facts["batches_already"]
    # The log's own times may tell where the probe did not.
    assert found["source"] == source or found["basis"] == "log_timings"
    assert (facts["slots"]["value"], facts["slots"]["source"]) == (5, "given")
    assert (result["verdict"] == "already") == (found["value"] == "yes")


def test_a_probe_that_was_interrupted_ends_it(
    cli: Cli, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found is kept; nobody who pressed Ctrl-C waits for a report."""
    found = read_probe(probed(tmp_path, interrupted=True, stopped_by="user"))
    monkeypatch.setattr("slotwise_workflows.probe.look_and_measure", lambda *_, **__: found)
    words = ["--probe", "http://localhost:1", "--yes", "--output-dir", tmp_path / "o"]
    said = cli("diagnose", log_file, *words)
    assert said.code == 130
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["probe.json", "probe.jsonl"]


def test_what_belongs_to_a_replay_wants_one(cli: Cli) -> None:
    for words in (["--workers", 2], ["--ray-address", "h:1"], ["--rate-scale", 2]):
        said = cli("probe", "http://localhost:1", "--yes", *words)
        assert (said.code, "--replay LOG" in said.err) == (2, True)


def test_a_probe_that_is_not_there_is_told(cli: Cli, log_file: Path, tmp_path: Path) -> None:
    said = cli("diagnose", log_file, "--probe", tmp_path / "none", "--output-dir", tmp_path / "o")
    assert said.code == 3
    assert "no such file" in said.err
    assert not (tmp_path / "o").exists()


def test_nothing_is_sent_without_leave(cli: Cli, log_file: Path, tmp_path: Path) -> None:
    url = "http://user@localhost:1"
    words = ["--no-input", "--output-dir", tmp_path / "o"]
    assert cli("diagnose", log_file, "--probe", "http://localhost:1", *words).code == 2
    said = cli("diagnose", log_file, "--probe", url, "--yes", *words)
    assert (said.code, "holds credentials" in said.err) == (2, True)
    assert not (tmp_path / "o").exists()


def test_an_endpoint_that_is_not_there_ends_it(cli: Cli, log_file: Path, tmp_path: Path) -> None:
    words = ["--probe", "http://127.0.0.1:9/v1?key=quux", "--yes", "--output-dir", tmp_path / "o"]
    said = cli("diagnose", log_file, *words)
    assert said.code == 5
    assert "quux" not in said.err + said.out


def test_a_log_to_be_sent_is_read_as_it_would_be_diagnosed(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "own.csv"
    log.write_text("t_ms,out\n" + "".join(f"{at * 500},{10 + at}\n" for at in range(30)))
    url, reading = "http://127.0.0.1:9", ("--map", "arrival=t_ms", "--map", "output_tokens=out")
    said = cli("probe", url, "--replay", log, *reading, "--time-unit", "ms", "--where", "out>=20")
    assert said.code == 2  # nobody can be asked; the plan is told all the same
    assert "20 of 20 requests of own.csv" in said.err
    assert "590 output tokens, over 10 s" in said.err  # 20 + ... + 39, half a second apart
    for words in (("--map", "arrival=ts"), ("--tz", "Asia/Tokyo"), ("--allow-truncated",)):
        said = cli("probe", url, *words, "--yes")
        assert (said.code, "--like LOG" in said.err) == (2, True)
