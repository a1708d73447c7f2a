"""Run directories: whole files or none, and a result that reads back the same."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.files import prepare_directory, replacing, write_file
from slotwise_workflows.provenance import provenance, without_secrets
from slotwise_workflows.result import (
    Fact,
    Histogram,
    Inspection,
    LengthFigures,
    Result,
)
from slotwise_workflows.run_directory import as_json, default_directory, load_result, write_result
from slotwise_workflows.traffic.model import SourceFile


@pytest.fixture
def small_result() -> Result:
    lengths = LengthFigures(mean=10.0, p50=10.0, p95=10.0, max=10.0, std=None, cv=None)
    inspection = Inspection(
        format="plain_table",
        rows=1,
        requests=1,
        excluded={},
        flags=["too_few_requests"],
        output_tokens=lengths,
        prompt_tokens=None,
        arrival=None,
        latency_s=None,
        ttft_s=None,
        truncated=0,
        aborted=0,
        gain_bound={},
        segments={},
    )
    return Result(
        model="模型",
        requests=1,
        token_share=1.0,
        verdict="insufficient_data",
        confidence="low",
        reasons=[],
        limits=[],
        actions=[],
        alternatives=[],
        flip=[],
        gain=None,
        drift=None,
        waiting=None,
        gain_bound={},
        idle_share={},
        policies={},
        what_if=[],
        facts=[Fact(name="slots", value=None, source="assumed")],
        output_tokens=lengths,
        prompt_tokens=None,
        histogram=Histogram(start=10.0, width=1.0, counts=[1]),
        arrivals=None,
        timeline=None,
        slots=8,
        slots_is_range=True,
        ms_per_token=8.0,
        name="tiny",
        traffic=inspection,
        models=[],
        thresholds={},
        provenance=provenance(
            files=[SourceFile("a.csv", "0" * 64, 12)],
            command=["slotwise", "diagnose", "a.csv"],
            config={"delay": float("inf")},
            seed=0,
            now=lambda: datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        ),
    )


def test_a_result_reads_back_the_same(tmp_path: Path, small_result: Result) -> None:
    written = write_result(small_result, tmp_path)
    assert [path.name for path in written] == ["provenance.json", "result.json"]
    again = load_result(tmp_path)
    assert again == load_result(tmp_path / "result.json")
    assert as_json(again) == as_json(small_result)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["provenance.json", "result.json"]
    plain = json.loads((tmp_path / "result.json").read_bytes())
    assert plain["schema"] == "slotwise/result/v1"
    assert plain["model"] == "模型"
    assert plain["provenance"]["config"] == {"delay": ".inf"}
    assert plain["provenance"]["inputs"] == [{"name": "a.csv", "sha256": "0" * 64, "bytes": 12}]


@pytest.mark.parametrize("fault", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_fault_in_the_middle_keeps_the_old_file(tmp_path: Path, fault: BaseException) -> None:
    path = write_file(tmp_path / "result.json", b"old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(b"new, but only ha")
            raise fault

    with pytest.raises(type(fault)):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_crash_before_the_last_step_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_file(tmp_path / "result.json", b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="no space left"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a", b"a long old content")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_missing_parents_are_made(tmp_path: Path) -> None:
    made = prepare_directory(tmp_path / "a" / "b")
    assert made.is_dir()
    assert list(made.iterdir()) == []


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    for place in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(InputError, match=r"no output directory.*--output-dir"):
            prepare_directory(place)


def test_a_directory_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    with pytest.raises(InputError, match="permission denied"):
        prepare_directory(tmp_path)


@pytest.mark.parametrize(
    ("name", "directory"),
    [
        ("support-chat", "slotwise-support-chat"),
        ("../../etc/passwd", "slotwise-etc-passwd"),
        ("サポート 窓口", "slotwise-サポート-窓口"),
        ("a/b\\c:d*?", "slotwise-a-b-c-d"),
        ("...", "slotwise-run"),
        ("x" * 300, "slotwise-" + "x" * 80),
    ],
)
def test_the_default_directory_is_fit_for_any_file_system(name: str, directory: str) -> None:
    assert str(default_directory(name)) == directory


def test_what_is_no_run_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        load_result(tmp_path / "none")
    with pytest.raises(InputError, match="no finished run"):
        load_result(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "schema 'None'"),
        (b'{"schema": "slotwise/result/v9"}', "slotwise/result/v9"),
        (b'{"schema": "slotwise/result/v1"}', "model is wrong"),
    ],
)
def test_a_result_that_cannot_be_read_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(InputError, match=words):
        load_result(tmp_path)


def test_an_unknown_field_in_a_result_is_said(tmp_path: Path, small_result: Result) -> None:
    plain = json.loads(as_json(small_result)) | {"surprise": 1}
    (tmp_path / "result.json").write_text(json.dumps(plain))
    with pytest.raises(InputError, match="surprise is wrong"):
        load_result(tmp_path)


def created(monkeypatch: pytest.MonkeyPatch, epoch: str) -> str | None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    return provenance(files=[], command=[], config={}, seed=0).created


def test_the_source_date_goes_before_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert created(monkeypatch, "0") == "1970-01-01T00:00:00Z"
    for wrong in ("yesterday", "9" * 30):
        with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
            created(monkeypatch, wrong)


def test_the_clock_is_cut_to_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    made = provenance(files=[], command=[], config={}, seed=0, now=lambda: moment)
    assert made.created == "2026-01-02T03:04:05Z"


KEY = "sk-proj-abcdefghijklmnop"
TEXT = "the quarterly numbers " * 10


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["probe", "--api-key", KEY, "u"], ["probe", "--api-key", "***", "u"]),
        (["probe", f"--api-key={KEY}"], ["probe", "--api-key=***"]),
        (["--client", KEY], ["--client", "***"]),
        (["--where", f"key={KEY}"], ["--where", "key=***"]),
        (["https://me:secret@host/v1"], ["https://***@host/v1"]),
        (["--url=https://me:secret@host:8000/v1?x=1"], ["--url=https://***@host:8000/v1?x=1"]),
        (["--ms-per-token", "8"], ["--ms-per-token", "8"]),
        (["--api-key-env", "MY_KEY"], ["--api-key-env", "MY_KEY"]),
        (["--token", "--json"], ["--token", "--json"]),
        (["diagnose", "sk-.csv", "a@b.csv"], ["diagnose", "sk-.csv", "a@b.csv"]),
        (["--where", f"prompt={TEXT}"], ["--where", "prompt=***"]),
        (["--where", f"a b>={TEXT}", TEXT], ["--where", "a b>=***", TEXT]),
        ([f"--where=prompt!={TEXT}"], ["--where=prompt!=***"]),
        (["--where", TEXT], ["--where", "***"]),
        (["--where", "route=chat"], ["--where", "route=chat"]),
        (["--where", f"a={'x' * 198}"], ["--where", f"a={'x' * 198}"]),
        (["--where", "--json"], ["--where", "--json"]),
    ],
)
def test_no_secret_of_a_command_line_is_kept(command: list[str], shown: list[str]) -> None:
    assert without_secrets(command) == shown


def test_no_secret_of_the_settings_is_kept() -> None:
    made = provenance(
        files=[], command=[], config={"a": [{"b": KEY}], "c": ("https://u:p@h/",)}, seed=0
    )
    assert made.config == {"a": [{"b": "***"}], "c": ["https://***@h/"]}


def test_no_text_that_rows_were_chosen_by_is_kept() -> None:
    config = {
        "reading": {"where": ("route=chat", f"prompt={TEXT}"), "format": TEXT},
        "inputs": {"where": f"prompt!={TEXT}"},
        "workload": {"traffic": {"where": [f"key={KEY}"]}},
    }
    assert provenance(files=[], command=[], config=config, seed=0).config == {
        "reading": {"where": ["route=chat", "prompt=***"], "format": TEXT},
        "inputs": {"where": "prompt!=***"},
        "workload": {"traffic": {"where": ["key=***"]}},
    }
