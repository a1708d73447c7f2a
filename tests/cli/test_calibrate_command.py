"""`slotwise calibrate`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from slotwise_sim import Continuous, Step, Workload, simulate

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

QUICK = ("--slots", 64, "--fix", "per_kv_token_ms=0", "--fix", "overhead_ms=0")


def probe_row(sent_s: float, first_s: float, end_s: float, prompt: int, output: int) -> str:
    sent, first, end = (round(1e9 * (81 + seconds)) for seconds in (sent_s, first_s, end_s))
    row = {
        "name": "load",
        "trial": 1,
        "asked_tokens": output,
        "sent_ns": sent,
        "first_token_ns": first,
        "last_token_ns": end,
        "end_ns": end,
        "chunks": output,
        "streamed": True,
        "status": 200,
        "prompt_tokens": prompt,
        "output_tokens": output,
        "finish_reason": "length",
        "fault": None,
    }
    return json.dumps(row)


@pytest.fixture
def probed(tmp_path: Path) -> Path:
    """A directory with the requests of a probe of a server of known cost."""
    rng = np.random.default_rng(6)
    workload = Workload(
        np.cumsum(rng.exponential(0.3, 80)),
        rng.integers(2, 240, 80),
        rng.integers(10, 700, 80),
    )
    outcome = simulate(workload, Continuous(), Step(15, 0.5, 0, 0.05), slots=64)
    rows = zip(
        workload.arrival_s.tolist(),
        outcome.first_token_s.tolist(),
        outcome.end_s.tolist(),
        workload.prompt_tokens.tolist(),
        workload.output_tokens.tolist(),
        strict=True,
    )
    directory = tmp_path / "probe"
    directory.mkdir()
    (directory / "probe.jsonl").write_text("".join(f"{probe_row(*row)}\n" for row in rows))
    return directory


def test_a_probe_becomes_a_cost(cli: Cli, probed: Path, tmp_path: Path) -> None:
    said = cli("calibrate", probed, *QUICK, "--output-dir", tmp_path / "made")
    out = tmp_path / "made" / "calibration.json"
    assert said.code == 0, said.err
    assert "80 requests, continuous, 64 slots" in said.out
    assert "base_ms" in said.out
    assert "given" in said.out
    assert "40 from 40" in said.out
    assert f"wrote {out}" in said.err
    written = json.loads(out.read_text())
    assert written["schema"] == "slotwise/calibration/v1"
    assert written["cost"]["base_ms"] == pytest.approx(15, rel=0.05)
    assert written["measured_on"] is None


def test_what_simulate_writes_is_read_as_it_is(cli: Cli, tmp_path: Path) -> None:
    workload, rows = tmp_path / "w.yaml", tmp_path / "rows.csv"
    workload.write_text(
        "version: 1\ntraffic: {synthetic: {requests: 120, arrivals: {poisson: {rate: 3}},"
        " output_tokens: {uniform: [10, 190]}, prompt_tokens: {uniform: [10, 700]}}}\n"
        "server: {slots: 64, cost: {step: {base_ms: 15, per_seq_ms: 0.5,"
        " per_prefill_token_ms: 0.05}}}\n"
    )
    made = cli("simulate", workload, "--requests-out", rows)
    assert made.code == 0, made.err
    words = ("--where", "policy=continuous", "--output-dir", tmp_path, "--json")
    said = cli("calibrate", rows, *QUICK, *words)
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["requests"] == 120
    assert found["cost"]["base_ms"] == pytest.approx(15, rel=0.05)


def test_json_is_the_file(cli: Cli, probed: Path, tmp_path: Path) -> None:
    said = cli("calibrate", probed, *QUICK, "--output-dir", tmp_path, "--json", "--quiet")
    assert said.err == ""
    assert json.loads(said.out) == json.loads((tmp_path / "calibration.json").read_text())


def test_the_cost_is_used_by_a_workload(cli: Cli, probed: Path, tmp_path: Path) -> None:
    cli("calibrate", probed, *QUICK, "--output-dir", tmp_path, "--quiet")
    workload = tmp_path / "w.yaml"
    workload.write_text(
        "version: 1\ntraffic: {synthetic: {requests: 50, arrivals: upfront,"
        " output_tokens: {uniform: [10, 90]}}}\n"
        "server: {slots: 4, cost: {calibration: calibration.json}}\n"
    )
    said = cli("simulate", workload, "--json")
    assert said.code == 0, said.err
    cost = json.loads(said.out)["cost"]
    assert cost["kind"] == "calibration"
    assert "80 requests of probe.jsonl" in cost["source"]
    assert "on the 40 requests that were held out of the fit: " in cost["quality"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--slots is needed"),
        (("--slots", 8, "--fix", "per_seq=1"), 2, "--fix 'per_seq=1' is not TERM=MS"),
        (("--slots", 8, "--fix", "base_ms=-1"), 2, "is not TERM=MS"),
        (("--slots", 8, "--fix", "base_ms=60001"), 2, "values are 0 to 60000"),
        (
            ("--slots", 8, "--fix", "base_ms=1", "--fix", "base_ms=2"),
            2,
            "--fix base_ms is given twice",
        ),
        (("--slots", 1), 3, "contradicts what is told of the server"),
        (("--slots", 8, "--policy", "static", "--kv-tokens", 9), 2, "--kv-tokens has no effect"),
        (
            ("--slots", 8, "--policy", "dynamic", "--kv-tokens", 9),
            2,
            "--kv-tokens has no effect with --policy dynamic",
        ),
        (
            ("--slots", 8, "--policy", "static", "--prefill", "mixed", "--block-tokens", 16),
            2,
            "--prefill and --block-tokens have no effect with --policy static",
        ),
        (
            ("--slots", 8, "--release", "batch", "--no-pad"),
            2,
            "--release and --no-pad have no effect with --policy continuous",
        ),
        (("--slots", 8, "--pad"), 2, "--pad has no effect with --policy continuous"),
        (
            ("--slots", 8, "--block-tokens", 8),
            2,
            "--block-tokens has no effect without --kv-tokens",
        ),
        (
            (
                *("--slots", 64, "--fix", "base_ms=15", "--fix", "per_seq_ms=0.5"),
                *("--fix", "per_prefill_token_ms=0.05", "--fix", "overhead_ms=0"),
                *("--fix", "per_kv_token_ms=0"),
            ),
            3,
            "every term is given: nothing is left to fit",
        ),
        (("--slots", 64, "--kv-tokens", 200), 3, "a request can never run in this memory"),
        (("--slots", 64, "--map", "ttft"), 2, "is not FIELD=COLUMN"),
    ],
)
def test_what_cannot_be_is_one_line(
    cli: Cli, probed: Path, words: tuple[object, ...], code: int, said: str
) -> None:
    told = cli("calibrate", probed, *words)
    assert told.code == code
    assert said in told.err
    assert told.err.count("\n") == 1


def test_one_batch_size_ends_with_3_and_what_to_do(cli: Cli, tmp_path: Path) -> None:
    rows = [
        probe_row(4.0 * (i // 8), 4.0 * (i // 8) + 0.1, 4.0 * (i // 8) + 3, 9, 90)
        for i in range(80)
    ]
    log = tmp_path / "probe.jsonl"
    log.write_text("\n".join(rows) + "\n")
    told = cli("calibrate", log, "--slots", 8, "--output-dir", tmp_path / "fit")
    assert told.code == 3
    assert "all the same batch size: per_seq_ms is not identifiable" in told.err
    assert "Measure the server at other numbers of requests at once" in told.err
    assert not list((tmp_path / "fit").iterdir())


def test_a_place_that_cannot_be_written_is_found_before_the_fit(
    cli: Cli, probed: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    told = cli("calibrate", probed, *QUICK, "--output-dir", tmp_path / "file" / "below", "--quiet")
    assert told.code == 3
    assert "no output directory" in told.err
