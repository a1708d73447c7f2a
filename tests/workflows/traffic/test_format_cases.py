"""Every format reads its case file right, and none is without a case or a line in the docs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from slotwise_workflows.traffic import Traffic, read_traffic
from slotwise_workflows.traffic.fields import spec_paths
from slotwise_workflows.traffic.formats import FIELDS, FORMATS, plain
from slotwise_workflows.traffic.reconcile import REASONS

ROOT = Path(__file__).parents[3]
CASES = sorted((ROOT / "tests/data/traffic/cases").glob("*.yaml"))
IDS = [entry.id for entry in FORMATS]
COLUMNS = {
    "outputs": "gen_ai.usage.output_tokens",
    "prompts": "gen_ai.usage.input_tokens",
    "start_ns": "start_time",
    "latency_s": "e2e_latency",
    "ttft_s": "gen_ai.response.time_to_first_chunk",
    "max_tokens": "gen_ai.request.max_tokens",
    "models": "gen_ai.request.model",
    "hash_ids": "prefix_hash_ids",
}


def input_of(case: dict[str, Any], folder: Path) -> str:
    text = case["text"] if "text" in case else json.dumps(case["json"])
    data = (b"\xef\xbb\xbf" if case.get("bom") else b"") + text.encode()
    path = folder / case["file"]
    path.write_bytes(gzip.compress(data) if case.get("gzip") else data)
    return str(path)


def accounted(traffic: Traffic) -> None:
    assert traffic.rows == len(traffic) + sum(traffic.excluded.values())
    assert set(traffic.excluded) <= set(REASONS)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    answer = case["answer"]
    traffic = read_traffic([input_of(case, tmp_path)])
    accounted(traffic)
    assert traffic.format == path.stem
    assert traffic.rows == answer["rows"]
    assert traffic.excluded == answer.get("excluded", {})
    for key, column in COLUMNS.items():
        if key in answer:
            found = traffic.table[column].to_list()
            exact = answer[key] if not key.endswith("_s") else pytest.approx(answer[key], abs=1e-9)
            assert found == exact, key
    for key in ("clock", "engine", "managed", "offline", "verified"):
        if key in answer:
            assert getattr(traffic, key) == answer[key], key
    if "flags" in answer:
        assert set(traffic.flags) == set(answer["flags"])
    if answer.get("clock", "epoch") is None:
        assert traffic.table["start_time"].null_count() == len(traffic)


def test_every_format_has_a_case() -> None:
    assert {path.stem for path in CASES} == {*IDS, plain.ID}


def test_every_format_is_documented() -> None:
    page = (ROOT / "docs/reference/log-formats.md").read_text(encoding="utf-8")
    for name in (*IDS, plain.ID):
        assert f"`{name}`" in page, f"{name} is not in docs/reference/log-formats.md"
    for field in FIELDS:
        assert f"`{field}`" in page, f"the field {field} is not in docs/reference/log-formats.md"


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.id)
def test_entry_is_sound(entry: Any) -> None:
    assert entry.needs, "without needs it would fit everything"
    assert set(entry.fields) <= set(FIELDS)
    assert entry.alternatives("output_tokens"), "a log without lengths answers nothing"
    for field in entry.fields:
        for spec in entry.alternatives(field):
            assert all(spec_paths(spec)), f"{entry.id}.{field}: {spec!r} names no path"


def test_no_two_formats_have_one_id() -> None:
    assert len(set(IDS)) == len(IDS)
    assert plain.ID not in IDS
