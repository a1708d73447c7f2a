"""Compression, encodings, files that are no log, and hostile bytes."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import sqlite3
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers import Container, Row, open_container
from slotwise_workflows.traffic.containers.streams import (
    CHUNK,
    decode,
    decompress,
    numbered_lines,
    whole_lines,
)

_LINES = b'{"n": 10}\n{"n": 20}\n{"n": 30}\n'


def _lengths(rows: list[Row]) -> list[Any]:
    return [row.value["n"] for row in rows if row.value is not None]


def test_gzip_is_known_by_its_bytes(opened: Any) -> None:
    container, rows = opened(gzip.compress(b"ts,n\n1,10\n2,20\n", mtime=0))
    assert (container.kind, container.compression) == ("csv", "gzip")
    assert _lengths(rows) == ["10", "20"]


def test_all_members_of_a_gzip_file_are_read(opened: Any) -> None:
    parts = [gzip.compress(line, mtime=0) for line in _LINES.splitlines(keepends=True)]
    assert _lengths(opened(b"".join(parts))[1]) == [10, 20, 30]
    assert _lengths(opened(b"\0\0".join(parts) + b"\0" * 512)[1]) == [10, 20, 30]


def test_what_follows_a_gzip_member_must_be_gzip(opened: Any) -> None:
    with pytest.raises(InputError, match="gzip data is damaged"):
        opened(gzip.compress(_LINES, mtime=0) + b"and some text")


def test_damaged_gzip_is_refused(opened: Any) -> None:
    data = bytearray(gzip.compress(_LINES, mtime=0))
    data[-6] ^= 0xFF  # in the checksum
    with pytest.raises(InputError, match=r"gzip data is damaged.*incorrect data check"):
        opened(bytes(data))


@pytest.mark.parametrize("keep", [3, 12, 25, -5, -1])
def test_a_gzip_stream_that_ends_early_is_refused(opened: Any, keep: int) -> None:
    with pytest.raises(InputError, match=r"some\.log: the gzip stream ends early.*allow-trunc"):
        opened(gzip.compress(_LINES, mtime=0)[:keep])


def test_the_whole_lines_before_the_cut_can_be_asked_for(opened: Any) -> None:
    lines = [b'{"n": %d, "text": "%032x"}\n' % (n, zlib.crc32(b"%d" % n)) for n in range(500)]
    whole = gzip.compress(b"".join(lines), mtime=0)
    half = whole[: len(whole) // 2]
    container, rows = opened(half, allow_truncated=True)
    given_back = zlib.decompressobj(31).decompress(half)
    assert container.truncated_at == len(given_back)
    assert _lengths(rows) == list(range(given_back.count(b"\n")))
    assert 0 < len(rows) < 500
    container, rows = opened(whole, allow_truncated=True)
    assert (container.truncated_at, len(rows)) == (None, 500)


def test_a_cut_before_the_first_whole_line(opened: Any) -> None:
    with pytest.raises(InputError, match="no whole line comes before the cut"):
        opened(
            gzip.compress(b'{"n": 10, "text": "' + bytes(range(97, 123)))[:-9], allow_truncated=True
        )


def test_an_array_before_the_cut(opened: Any) -> None:
    text = "[\n" + ",\n".join(f'{{"n": {n}, "x": {n * 7919 % 997}}}' for n in range(500)) + "\n]\n"
    data = gzip.compress(text.encode(), mtime=0)
    _, rows = opened(data[: len(data) // 2], allow_truncated=True)
    assert _lengths(rows) == list(range(len(rows) - 1))
    assert rows[-1].why == "the file ends inside the array: records may be missing"


def test_zstd_frames(opened: Any) -> None:
    parts = [zstandard.compress(line) for line in _LINES.splitlines(keepends=True)]
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00meta"
    for data in (parts[0] + parts[1] + parts[2], skippable + b"".join(parts)):
        container, rows = opened(data)
        assert container.compression == "zstd"
        assert _lengths(rows) == [10, 20, 30]
    with pytest.raises(InputError, match="the zstd stream ends early"):
        opened(zstandard.compress(_LINES)[:-3])
    with pytest.raises(InputError, match="the zstd data is damaged"):
        opened(parts[0] + b"rubbish and more of it")


def test_zstd_without_a_content_size_in_its_header(opened: Any) -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    assert _lengths(opened(compressor.compress(_LINES) + compressor.flush())[1]) == [10, 20, 30]


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_few_bytes_that_unpack_to_much_come_in_bounded_pieces(compression: Any) -> None:
    size = 200 << 20
    if compression == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    else:
        data = zstandard.ZstdCompressor().compress(bytes(size))
    pieces = [len(piece) for piece in decompress([data], compression, "x")]
    assert sum(pieces) == size
    assert max(pieces) <= CHUNK


def test_blank_lines_without_end_are_not_kept(opened: Any) -> None:
    container, rows = opened(gzip.compress(b"\n" * (3 << 20), mtime=0))
    assert (container.kind, rows) == ("text", [])


def test_a_line_without_end_is_an_error_before_memory_is_full() -> None:
    endless = ("x" * 1000 for _ in range(10_000_000))
    with pytest.raises(InputError, match=r"x:1: .*longer than"):
        list(numbered_lines(endless, "x", limit=100_000))
    endless = ("x" * 1000 for _ in range(10_000_000))
    with pytest.raises(InputError, match="longer than"):
        list(whole_lines(endless, "x", limit=100_000))


@pytest.mark.parametrize(
    "data", [b"", b" \n\r\n\t", b"\xef\xbb\xbf", b"\xff\xfe", gzip.compress(b"", mtime=0)]
)
def test_an_empty_file_is_refused(opened: Any, data: bytes) -> None:
    with pytest.raises(InputError, match=r"some\.log: the file is empty"):
        opened(data)


def _zip(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "x")
    return buffer.getvalue()


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("log.jsonl")
        info.size = len(_LINES)
        archive.addfile(info, io.BytesIO(_LINES))
    return buffer.getvalue()


def _sqlite() -> bytes:
    database = sqlite3.connect(":memory:")
    database.execute("create table t (n)")
    data: bytes = database.serialize()
    database.close()
    return data


@pytest.mark.parametrize(
    ("data", "what", "hint"),
    [
        (_zip("log.csv"), "ZIP archive", "Unpack"),
        (_zip("xl/workbook.xml"), "Excel workbook", "CSV"),
        (_sqlite(), "SQLite", "CSV"),
        (b"%PDF-1.7\n", "PDF", "Export"),
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG", "Export"),
        (b"Obj\x01\x04\x16avro.schema", "Avro", "Parquet"),
        (b"ARROW1\0\0", "Arrow", "Parquet"),
        (b"\x93NUMPY\x01\0", "NumPy", "Parquet"),
        (b"BZh91AY&SY\0", "bzip2", "Unpack"),
        (_tar(), "tar archive", "Unpack"),
        (gzip.compress(_tar(), mtime=0), "tar archive inside gzip", "Unpack"),
        (
            gzip.compress(gzip.compress(_LINES, mtime=0), mtime=0),
            "another compressed file inside gzip",
            "Unpack",
        ),
        (gzip.compress(b"PAR1\x15\x04", mtime=0), "Parquet file inside gzip", "Unpack"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS pointer", "lfs pull"),
        (b"<!DOCTYPE html>\n<html><body>Log in</body></html>", "web page", "login"),
        (b"<?xml version='1.0'?><a/>", "XML", "Export"),
        (b"\xff\xfe\0\0t\0\0\0", "UTF-32", "UTF-8"),
        ("ts,n\n1,10\n".encode("utf-16-le"), "UTF-16 without a byte order mark", "UTF-8"),
        (b"\x0a\x1f\x0a\x1d\x0a\x1b\x0a\x0cservice.name\0", "binary data: a NUL", "OTLP JSON"),
        (b"\x0a\x04\x12\x02\x08\x01\x1a\x03abc\x0a\x04\x12\x02", "binary data: .* control", "OTLP"),
        (b"\x7fELF\x02\x01", "a program", "Export"),
    ],
)
def test_what_is_no_log_is_named_with_what_to_do(
    opened: Any, data: bytes, what: str, hint: str
) -> None:
    with pytest.raises(InputError, match=f"^some.log: .*{what}") as caught:
        opened(data)
    assert hint in caught.value.hint


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [[{"n": 1}, {"n": 2}], {"n": [1, 2]}, Path("x")])
def test_a_pickle_is_refused_and_never_loaded(opened: Any, protocol: int, value: Any) -> None:
    with pytest.raises(InputError, match="Python pickle") as caught:
        opened(pickle.dumps(value, protocol))
    assert "never" in caught.value.hint


def test_a_hostile_pickle_does_not_run(opened: Any, tmp_path: Path) -> None:
    victim = tmp_path / "ran"
    with pytest.raises(InputError, match="Python pickle"):
        opened(b"cpathlib\nPath\n(V" + str(victim).encode() + b"\ntR.")
    assert not victim.exists()


@pytest.mark.parametrize(
    "text",
    ["created_at,n\n1,10\n2,20\n", "completion_tokens\n10\n2\n0\n", "(a,b)\n", "ORC,n\n1,2\n"],
)
def test_words_that_begin_like_other_files_are_text(opened: Any, text: str) -> None:
    assert opened(text)[0].kind in ("csv", "text")


def test_bytes_that_are_not_utf8_are_told_by_offset_and_line(opened: Any) -> None:
    data = b"ts,text,n\n1,abc,10\n" + "2,日本,20\n".encode("cp932")
    with pytest.raises(InputError, match=r"some\.log:3: byte 0x93 at offset 21 is not UTF-8") as e:
        opened(data)
    assert "iconv -f CP932" in e.value.hint


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=20),
    st.integers(1, 5),
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]),
)
def test_text_survives_any_cut_of_its_bytes(text: str, size: int, encoding: str) -> None:
    data = ("\ufeff" + text).encode(encoding)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert "".join(decode(chunks, encoding, "x")) == text


@given(st.binary(max_size=40), st.integers(1, 7))
def test_the_bad_byte_is_the_one_python_finds(data: bytes, size: int) -> None:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # Half a surrogate at the end is bad to `bytes.decode`, cut off to the incremental decoder.
        half = error.start == len(data) - 2 and re.search(rb"\xed[\xa0-\xbf]\Z", data)
        if half or error.reason == "unexpected end of data":
            assert "".join(decode(chunks, "utf-8", "x")).endswith("\ufffd")
            return
        line = data.count(b"\n", 0, error.start) + 1
        with pytest.raises(InputError, match=f"x:{line}: .* offset {error.start} "):
            list(decode(chunks, "utf-8", "x"))
    else:
        assert "".join(decode(chunks, "utf-8", "x")) == data.decode().removeprefix("\ufeff")


@given(st.text(st.sampled_from("ab\n\r"), max_size=30), st.integers(1, 7))
def test_lines_are_numbered_however_the_text_is_cut(text: str, size: int) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    expected = list(enumerate(text.split("\n"), 1))
    if expected[-1][1] == "":
        expected.pop()
    assert list(numbered_lines(pieces, "x")) == expected


def test_a_character_cut_by_the_end_of_the_file_costs_one_row(opened: Any) -> None:
    _, rows = opened('{"n": 10}\n{"n": 20, "text": "日本'.encode()[:-1])
    assert [row.value for row in rows] == [{"n": 10}, None]


def test_a_text_log_is_its_lines(opened: Any) -> None:
    container, rows = opened("Connected\r\n\r\nready to serve\r\n")
    assert container == Container("text", encoding="utf-8")
    assert [(row.line, row.value) for row in rows] == [
        (1, {"line": "Connected"}),
        (3, {"line": "ready to serve"}),
    ]


def test_progress_counts_the_bytes_on_the_disk(opened: Any) -> None:
    for data in (_LINES * 50_000, gzip.compress(_LINES * 1000, mtime=0), b"ts,n\n1,2\n"):
        seen: list[int] = []
        opened(data, on_bytes=seen.append)
        assert sum(seen) == len(data)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BytesIO(gzip.compress(_LINES, mtime=0))

    monkeypatch.setattr(sys, "stdin", Piped)
    container, rows = open_container("-")
    assert container.compression == "gzip"
    assert _lengths(list(rows)) == [10, 20, 30]
    Piped.buffer = io.BytesIO(b"")
    with pytest.raises(InputError, match="standard input: the file is empty"):
        open_container("-")


def test_a_file_that_cannot_be_opened_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="cannot be read"):
            open_container(path)


_STARTS = st.sampled_from(
    [
        b"", b"{", b'{"n": 1}', b"[", b'[{"n":', b"ts,n\n", b"\x1f\x8b\x08\x00", b"PAR1", b"(",
        b"\x28\xb5\x2f\xfd", b"\x80\x04", b"\xff\xfe", b"\xef\xbb\xbf", b'a,b\n"', b"c", b"sep=;\n",
        gzip.compress(b'{"n": 1}\n', mtime=0), zstandard.compress(b"ts,n\n1,2\n"),
    ]
)  # fmt: skip
_BODIES = st.binary(max_size=60) | st.text(
    st.sampled_from('{}[]",:;\t|\n\r\\u0dn1. e-INFaN\x1e'), max_size=60
).map(str.encode)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STARTS, _BODIES, st.booleans(), st.booleans())
def test_any_bytes_give_rows_or_an_input_error(
    tmp_path: Path, start: bytes, body: bytes, wrapped: bool, allow: bool
) -> None:
    data = start + body
    path = tmp_path / "any"
    path.write_bytes(gzip.compress(data, mtime=0)[: -3 if allow else None] if wrapped else data)
    found: list[Row] = []
    message, kind = "", ""
    try:
        container, rows = open_container(path, allow_truncated=allow)
        kind = container.kind
        found += rows
    except InputError as error:
        message = str(error)
    assert kind in ("jsonl", "json", "csv", "text") or message
    assert message == "" or message.startswith(str(path))
    assert "\n" not in message
    assert [row.line for row in found] == sorted(row.line for row in found)
    for row in found:
        assert (row.value is None) == bool(row.why)
