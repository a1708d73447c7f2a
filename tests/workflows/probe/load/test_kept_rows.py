"""What a probe keeps is read again by the other commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from slotwise_cli.app import app
from slotwise_workflows.calibrate.file import read_calibration
from slotwise_workflows.calibrate.timings import probe_rows
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.files import requests_jsonl
from slotwise_workflows.probe.load.client_report import client_report
from slotwise_workflows.probe.load.cost import CostRun, run_cost
from slotwise_workflows.probe.load.cost_fit import fit_cost, server_of, traffic_of
from slotwise_workflows.probe.load.cost_plan import plan_cost
from slotwise_workflows.probe.model import Baseline, Sample
from slotwise_workflows.probe.prompts import Scale
from slotwise_workflows.traffic.probe_log import EQUAL, has_cost_rows

ALONE = Baseline(
    ttft_s=0.024, latency_s=0.7, output_tokens=32, seconds_per_token=0.02, streams=True
)


@pytest.fixture(scope="module")
def probed(bench: Any) -> list[Sample]:
    """Samples of a cost stage, and of a group test on a server twice as slow."""
    plan = plan_cost(
        batching="continuous",
        slots=4,
        baseline=ALONE,
        rng=np.random.default_rng(1),
        budget=Budget(seconds=1000),
    )

    def run(engine: Any) -> list[Sample]:
        there = bench.endpoint(engine, bench.server.Job)
        work = bench.run(there, lambda c: run_cost(c, plan, np.random.default_rng(2)))
        return list(work.samples)

    slow = [s.model_copy(update={"stage": "group"}) for s in run(bench.costly(40.0, 2.0, 0.1))]
    later_ns = max(sample.end_ns for sample in slow) + 10**9
    fast = run(bench.costly(20.0, 1.0, 0.05))
    stamps = ("sent_ns", "first_token_ns", "last_token_ns", "end_ns")
    moved = [
        s.model_copy(update={name: getattr(s, name) + later_ns for name in stamps}) for s in fast
    ]
    return [*slow, *moved]


def test_calibrate_takes_the_rows_of_the_cost_stage(probed: list[Sample], tmp_path: Path) -> None:
    (tmp_path / "probe.jsonl").write_bytes(requests_jsonl(probed))
    told = CliRunner().invoke(
        app, ["calibrate", str(tmp_path), "--slots", "4", "--output-dir", str(tmp_path)]
    )
    assert told.exit_code == 0, told.output
    found = json.loads((tmp_path / "calibration.json").read_text("utf-8"))
    fitted = [s for s in probed if s.stage == "cost" and s.name != EQUAL]
    assert found["requests"] == len(fitted)
    assert sum(found["left_out"].values()) == len(probed) - len(fitted)
    assert found["terms"]["base_ms"]["value"] == pytest.approx(20, rel=0.01)
    assert any("rows of the log are left out" in note for note in found["notes"])


def test_calibrate_takes_what_it_is_told_to(probed: list[Sample], tmp_path: Path) -> None:
    (tmp_path / "probe.jsonl").write_bytes(requests_jsonl(probed))
    where = ["--where", "stage=group", "--where", f"name!={EQUAL}"]
    told = CliRunner().invoke(
        app, ["calibrate", str(tmp_path), "--slots", "4", "--output-dir", str(tmp_path), *where]
    )
    assert told.exit_code == 0, told.output
    found = json.loads((tmp_path / "calibration.json").read_text("utf-8"))
    assert found["terms"]["base_ms"]["value"] == pytest.approx(40, rel=0.01)


def test_a_server_that_takes_what_waits_is_dynamic(bench: Any, tmp_path: Path) -> None:
    """A live server does not wait for a full batch: as static, the run would be impossible."""
    engine = bench.server.Engine(bench.server.Policy("static", 4, "own", 20.0, 1.0))
    plan = plan_cost(batching="static", slots=4, baseline=ALONE, rng=np.random.default_rng(1))
    seen = bench.run(
        bench.endpoint(engine, bench.server.Job),
        lambda client: run_cost(client, plan, np.random.default_rng(2)),
    )
    (tmp_path / "probe.jsonl").write_bytes(requests_jsonl(seen.samples))
    how = ["--slots", "4", "--policy", "dynamic", "--release", "own"]
    told = CliRunner().invoke(
        app, ["calibrate", str(tmp_path), "--output-dir", str(tmp_path), *how]
    )
    assert told.exit_code == 0, told.output
    found = read_calibration(tmp_path / "calibration.json")
    assert (found.server.policy, found.server.max_delay_ms) == ("dynamic", 0.0)
    assert found.cost.base_ms + 4 * found.cost.per_seq_ms == pytest.approx(24, rel=0.01)


def test_the_calibration_of_a_probe_is_that_of_its_file(
    probed: list[Sample], tmp_path: Path
) -> None:
    """Fitted within the probe or afterwards from what it kept: the same, its hash included."""
    (tmp_path / "probe.jsonl").write_bytes(requests_jsonl(probed))
    CliRunner().invoke(
        app, ["calibrate", str(tmp_path), "--slots", "4", "--output-dir", str(tmp_path)]
    )
    client = client_report(
        delays_ns=[], lags_ns=[], wall_ns=1, busy_ns=0, most_in_flight=0, held_back=0
    )
    run = CostRun([s for s in probed if s.stage == "cost"], Scale(), 1.0, client, 0)
    others = [s for s in probed if s.stage != "cost"]
    found = fit_cost(run, server_of("continuous", 4), others=others)
    assert found.calibration == read_calibration(tmp_path / "calibration.json")


def test_rows_are_read_as_a_log(probed: list[Sample]) -> None:
    traffic = traffic_of(probed)
    assert (traffic.format, len(traffic), traffic.clock) == (
        "slotwise_probe",
        len(probed),
        "monotonic",
    )
    assert len(traffic_of(probed, ["stage=cost"])) == len(probed) // 2


def test_a_file_is_looked_at_piece_by_piece(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "probe.jsonl"
    row = b'{"stage": "cost"}\n'
    for before in range(40):  # the wanted text may lie across two pieces
        monkeypatch.setattr("slotwise_workflows.traffic.probe_log._PIECE", 16)
        path.write_bytes(b"x" * before + row)
        assert has_cost_rows(path)
        assert probe_rows(str(path)) == ("stage=cost", "name!=equal")
    path.write_bytes(b'{"stage": "group"}\n')
    assert not has_cost_rows(path)
    other = tmp_path / "other.jsonl"
    other.write_bytes(row)
    assert probe_rows(str(other)) == ()
    assert probe_rows(str(tmp_path / "none" / "probe.jsonl")) == ()
