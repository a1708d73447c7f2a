"""`calibration.json`: read back as written, refused when it is something else, documented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slotwise_sim.costs import Piece, Step
from slotwise_workflows import resources
from slotwise_workflows.calibrate.file import (
    AssumedServer,
    CalibrationFile,
    ErrorShares,
    FittedTerm,
    HeldOut,
    percent,
    read_calibration,
    write_calibration,
)
from slotwise_workflows.costs.calibrated import calibrated_cost
from slotwise_workflows.costs.stated import Checked
from slotwise_workflows.errors import InputError
from slotwise_workflows.result import InputFile
from slotwise_workflows.schemas import calibration_schema

PAGE = (Path(__file__).parents[3] / "docs/reference/calibrate.md").read_text(encoding="utf-8")
ERRORS = ErrorShares(latency_mean=0.01, latency_p95=-0.02, ttft_mean=0.03, busy=None)
CALIBRATION = CalibrationFile(
    slotwise="0.1.0",
    files=[InputFile(name="run.jsonl", sha256="0" * 64, bytes=9)],
    format="plain",
    model="llama",
    measured_on="2026-11-01T00:00:00Z",
    requests=300,
    left_out={"no_timings": 2},
    server=AssumedServer(
        policy="continuous",
        release=None,
        pad=None,
        prefill="mixed",
        slots=64,
        replicas=1,
        max_batched_tokens=None,
        kv_tokens=41_408,
        block_tokens=16,
    ),
    batch=(3, 40),
    terms={
        "base_ms": FittedTerm(value=22.6, low=21.0, high=24.0, how="fitted"),
        "per_seq_ms": FittedTerm(value=0.1, low=0.0, high=0.2, how="fitted"),
        "per_prefill_token_ms": FittedTerm(value=0.03, low=0.03, high=0.03, how="given"),
        "bend": FittedTerm(value=17.6 / 22.6, low=0.7, high=0.8, how="fitted"),
    },
    bend_seqs=16,
    cost=Step(5, 1.2, 0, 0.03, pieces=(Piece(16, 22.6, 0.1),)),
    errors=ERRORS,
    preemptions=0,
    hold_out=HeldOut(fitted=150, judged=150, errors=ERRORS),
    notes=[],
    quality="good",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_calibration(CALIBRATION, tmp_path / "calibration.json")


def test_a_calibration_reads_back_as_it_was_written(path: Path) -> None:
    assert read_calibration(path) == CALIBRATION
    before = path.read_bytes()
    assert write_calibration(CALIBRATION, path).read_bytes() == before


def test_a_workload_states_it_with_source_and_quality(path: Path) -> None:
    stated = calibrated_cost(path, "calibration.json")
    assert stated.kind == "calibration"
    assert stated.cost == Step(5, 1.2, 0, 0.03, pieces=(Piece(16, 22.6, 0.1),))
    assert stated.source == (
        "slotwise calibrate: llama, 300 requests of run.jsonl, measured on 2026-11-01"
    )
    assert (stated.quality, stated.kv_tokens) == ("good", 41_408)
    assert stated.checked == Checked("fitted", 0.03, requests=300, held_out=150)


def test_a_workload_knows_the_ends_of_what_was_fitted(path: Path) -> None:
    """Sequences at either end, the base at the other; what was given stays."""
    [cheap, dear] = calibrated_cost(path, "calibration.json").ends
    for end, base, per_seq in ((cheap, 24.0, 0.0), (dear, 21.0, 0.2)):
        assert isinstance(end, Step)
        assert end.per_prefill_token_ms == 0.03
        assert [(p.base_ms, p.per_seq_ms) for p in end.pieces] == [(base, per_seq)]


def _edited(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": "slotwise/result/v1"}, "has schema 'slotwise/result/v1'"),
        ({"requests": "many"}, "requests is wrong"),
        (
            {"cost": {"base_ms": -1}},
            "cost is wrong: every term of a step cost must be",
        ),
        ({"cost": {"base_ms": "five"}}, "cost.base_ms is wrong"),
        ({"cost": {"base_ms": 5, "per_sequence_ms": 1}}, "cost.per_sequence_ms is wrong"),
        ({"cost": {"base_ms": 5, "pieces": [{"from": 2}]}}, "cost.pieces.0.from_seqs is wrong"),
        ({"cost": {"base_ms": "5"}}, "cost.base_ms is wrong"),
        ({"cost": {"base_ms": True}}, "cost.base_ms is wrong"),
        ({"cost": {"base_ms": 60_001}}, "cost is wrong: base_ms: Input should be less than"),
        ({"cost": {"base_ms": 5}}, "is not a calibration: cost does not follow from terms: edited"),
        ({"bend_seqs": 32}, "cost does not follow from terms"),
        ({"bend_seqs": None}, "cost does not follow from terms"),
        ({"terms": {}}, "cost does not follow from terms"),
        ({"requests": "15"}, "requests is wrong"),
        ({"requests": True}, "requests is wrong"),
    ],
)
def test_what_is_no_calibration_is_refused(path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_calibration(_edited(path, **changes))


@pytest.mark.parametrize("name", ["slots", "replicas", "kv_tokens", "block_tokens"])
def test_a_server_of_nothing_is_refused(path: Path, name: str) -> None:
    server = {**json.loads(path.read_text())["server"], name: 0}
    with pytest.raises(InputError, match=f"server.{name} is wrong"):
        read_calibration(_edited(path, server=server))


def test_a_cost_that_is_off_by_rounding_alone_follows(path: Path) -> None:
    cost = {**json.loads(path.read_text())["cost"], "per_prefill_token_ms": 0.03 * (1 + 1e-12)}
    assert read_calibration(_edited(path, cost=cost)).cost.base_ms == 5
    with pytest.raises(InputError, match="does not follow"):
        read_calibration(_edited(path, cost={**cost, "per_prefill_token_ms": 0.03 * (1 + 1e-6)}))


@pytest.mark.parametrize("content", ["[]", "3", "{}"])
def test_json_of_another_kind_is_not_a_calibration(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(InputError, match="is not a calibration"):
        read_calibration(path)


def test_errors_that_round_to_nothing_have_no_sign() -> None:
    assert [percent(share) for share in (-0.0004, 0.0004, -0.0006, 0.012)] == [
        *("0.0 %", "0.0 %", "-0.1 %", "+1.2 %"),
    ]


def test_what_is_no_file_is_refused(path: Path, tmp_path: Path) -> None:
    path.write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_calibration(path)
    with pytest.raises(InputError, match="no such file"):
        read_calibration(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_calibration(tmp_path)


def test_the_published_schema_is_that_of_the_model() -> None:
    published = resources.read_text(resources.CALIBRATION_SCHEMA)
    assert published == calibration_schema(), "run: python -m slotwise_workflows.schemas"


@pytest.mark.parametrize(
    "model", [CalibrationFile, AssumedServer, ErrorShares, HeldOut, FittedTerm]
)
def test_every_key_is_documented(model: type[CalibrationFile]) -> None:
    for name, field in model.model_fields.items():
        assert f"`{field.alias or name}`" in PAGE
