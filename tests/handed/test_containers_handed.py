"""Every handed log opened: what it is, and how many records are in it.

The files lie beside the repository and not in it; without them these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers import Row, open_container

_DATA = Path(__file__).parents[3] / "shared" / "data" / "traffic"
pytestmark = pytest.mark.skipif(not _DATA.is_dir(), reason=f"no handed logs at {_DATA}")

_NO_LOGS = {"INDEX.md", "answers.json"}
_FILES = [
    f"{folder}/{path.name}"
    for folder in ("samples", "faults", "traces")
    for path in (sorted((_DATA / folder).iterdir()) if _DATA.is_dir() else ())
    if path.name not in _NO_LOGS
]
_KINDS = {".jsonl": "jsonl", ".json": "json", ".csv": "csv", ".log": "text"}
# Files whose name tells another kind than their content is.
_OTHERWISE = {
    "sglang-request-metrics-20260901_08.log": "jsonl",
    "sglang_json.log": "jsonl",
    "tgi_json.log": "jsonl",
}
_REFUSED = {
    "servegen_chunk_trace.csv": "no header row",
    "34-truncated.jsonl.gz": "gzip stream ends early",
}
# One row of these holds several records: the format looks inside, or the text log has lines.
_WRAPPED = {
    "otlp_vllm.json": ("resourceSpans", 1),
    "vllm_bench_detailed.json": ("output_lens", 12),
    "11-agent-span-rollup.json": ("resourceSpans", 1),
    "53-langfuse-zero-means-missing.json": ("data", 3),
}


def _opened(name: str) -> tuple[str, list[Row]]:
    container, rows = open_container(_DATA / name)
    return container.kind, list(rows)


def _answer(name: str) -> dict[str, Any]:
    folder, file = name.split("/")
    answers = json.loads((_DATA / folder / "answers.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = answers.get(file, {})
    return found


def _record_count(answer: dict[str, Any]) -> int | None:
    if answer.get("rows") is not None:
        return int(answer["rows"])
    if answer.get("outputs") is not None:
        return len(answer["outputs"]) + int(sum(answer["excluded"].values()))
    return None


@pytest.mark.parametrize("name", _FILES)
def test_handed_file_is_what_it_is(name: str) -> None:
    file = name.split("/")[1]
    if file in _REFUSED:
        with pytest.raises(InputError, match=_REFUSED[file]):
            _opened(name)
        return
    kind, rows = _opened(name)
    suffix = Path(file.removesuffix(".gz")).suffix
    assert kind == _OTHERWISE.get(file, _KINDS[suffix])
    answer = _answer(name)
    if file in _WRAPPED:
        key, items = _WRAPPED[file]
        assert [len(row.value[key]) for row in rows if row.value] == [items]
    elif kind != "text" and (expected := _record_count(answer)) is not None:
        assert len(rows) == expected
    unreadable = sum(row.value is None for row in rows)
    assert unreadable <= answer.get("excluded", {}).get("unparsable", 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("faults/22-bom-crlf.csv", ["10", "20"]),
        ("faults/23-quoted-newlines.csv", ["30", "40", "50"]),
        ("faults/25-thousands-separators.csv", ["2,048", "512"]),
        ("faults/35-multi-member.jsonl.gz", [10, 20]),
        ("faults/37-cut-last-line.jsonl", [10, 20, None]),
        ("faults/47-utf16-tab.csv", ["10", "20"]),
        ("faults/55-empty.csv", []),
    ],
)
def test_handed_fault_gives_its_values(name: str, expected: list[Any]) -> None:
    _, rows = _opened(name)
    assert [row.value and row.value["completion_tokens"] for row in rows] == expected


def test_handed_cut_last_line_is_named_by_number() -> None:
    _, rows = _opened("faults/37-cut-last-line.jsonl")
    assert [row.line for row in rows if row.value is None] == [3]


def test_handed_duplicate_keys_are_found() -> None:
    _, rows = _opened("faults/43-duplicate-json-keys.jsonl")
    assert [row.duplicate_keys for row in rows] == [{"ttft_ms"}, {"completion_tokens"}]


def test_handed_cut_gzip_gives_its_whole_lines_when_asked() -> None:
    path = _DATA / "faults" / "34-truncated.jsonl.gz"
    container, rows = open_container(path, allow_truncated=True)
    found = list(rows)
    assert container.truncated_at
    assert found
    assert all(row.value is not None for row in found)
    stamps = [row.value["ts"] for row in found if row.value]
    assert stamps == list(range(1788220800, 1788220800 + len(found)))
