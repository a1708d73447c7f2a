"""Which files arguments mean."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.traffic.paths import expand, fingerprint, log_files, log_name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.jsonl", "a.csv.gz", "notes.txt", ".hidden", "2026/09/c.log", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def _names(paths: tuple[Path, ...], folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in paths]


def test_a_directory_is_all_its_files_sorted_but_hidden_ones(folder: Path) -> None:
    assert _names(expand([str(folder)]), folder) == [
        "2026/09/c.log",
        "a.csv.gz",
        "b.jsonl",
        "notes.txt",
    ]


def test_globs_files_and_the_order_of_the_arguments(folder: Path) -> None:
    found = expand([folder / "notes.txt", str(folder / "*.jsonl"), str(folder / "**/*.log")])
    assert _names(found, folder) == ["notes.txt", "b.jsonl", "2026/09/c.log"]


def test_a_glob_may_match_directories(folder: Path) -> None:
    assert _names(expand([str(folder / "20*")]), folder) == ["2026/09/c.log"]


def test_a_file_named_twice_is_read_once(folder: Path) -> None:
    found = expand(
        [folder / "b.jsonl", str(folder / "*.jsonl"), folder / "2026" / ".." / "b.jsonl"]
    )
    assert _names(found, folder) == ["b.jsonl"]


def test_a_name_that_looks_like_a_glob_is_taken_as_a_file_first(folder: Path) -> None:
    (folder / "log[1].csv").write_text("x")
    assert _names(expand([folder / "log[1].csv"]), folder) == ["log[1].csv"]


def test_a_missing_file_says_what_there_is(folder: Path) -> None:
    with pytest.raises(InputError, match="no such file") as caught:
        expand([folder / "b.json"])
    assert caught.value.where == str(folder / "b.json")
    assert caught.value.hint == f"Did you mean {folder / 'b.jsonl'}?"
    with pytest.raises(InputError, match="There is no directory"):
        expand([folder / "nowhere" / "b.jsonl"])
    with pytest.raises(InputError, match="no file matches"):
        expand([str(folder / "*.parquet")])


def test_a_directory_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("x")
    with pytest.raises(InputError, match="has no files"):
        expand([tmp_path])


def test_nothing_named_or_standard_input_twice_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no log is named"):
        expand([])
    with pytest.raises(UsageError, match="twice"):
        expand(["-", "-"])


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_are_followed_once(folder: Path) -> None:
    (folder / "2026" / "up").symlink_to(folder, target_is_directory=True)
    (folder / "linked").symlink_to(folder / "2026" / "09", target_is_directory=True)
    names = _names(expand([folder]), folder)
    assert sorted(path.rsplit("/", 1)[-1] for path in names) == [
        "a.csv.gz",
        "b.jsonl",
        "c.log",
        "notes.txt",
    ]


def test_standard_input_is_a_file_while_it_is_needed(folder: Path) -> None:
    with log_files([folder / "b.jsonl", "-"], stdin=io.BytesIO(b'{"n": 1}\n')) as files:
        assert [file.name for file in files] == [str(folder / "b.jsonl"), "standard input"]
        assert [file.size for file in files] == [7, 9]
        copy = files[1].path
        assert copy.read_bytes() == b'{"n": 1}\n'
    assert not copy.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_copied(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"ts,n\n1,2\n",))
    writer.start()
    with log_files([pipe]) as files:
        writer.join()
        assert files[0].name == str(pipe)
        assert files[0].path.read_bytes() == b"ts,n\n1,2\n"


def test_fingerprint(folder: Path) -> None:
    assert fingerprint(folder / "b.jsonl") == (hashlib.sha256(b"b.jsonl").hexdigest(), 7)
    with pytest.raises(InputError, match="cannot be read"):
        fingerprint(folder / "none")


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("my.app-1.2.csv", "my.app-1.2"),
        ("my.app-1.3.csv", "my.app-1.3"),
        (
            "logs/vllm_measured_RTX4090_Llama-3.1-8B-Instruct.jsonl",
            "vllm_measured_RTX4090_Llama-3.1-8B-Instruct",
        ),
        ("a.jsonl.gz", "a"),
        ("a.JSONL.ZST", "a"),
        ("a.gz", "a"),
        ("a.csv.csv", "a.csv"),
        ("a.v2", "a.v2"),
        ("logs.d/", "logs.d"),
        ("logs/*.parquet", "traffic"),
        ("logs/app-*.ndjson.gz", "app"),
        (".csv", "traffic"),
        ("-", "stdin"),
        ("x" * 100 + ".csv", "x" * 80),
    ],
)
def test_what_a_log_is_called(argument: str, name: str) -> None:
    assert log_name(argument) == name
