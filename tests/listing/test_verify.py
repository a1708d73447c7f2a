"""`bundle verify`: each way a bundle can be wrong, made by hand and refused."""

from __future__ import annotations

import hashlib
import io
import stat
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_listing.archive import canonical_zip, checksums
from slotwise_listing.verify import verify_bundle
from slotwise_workflows.errors import InputError

FILES = {
    "README.md": b"read me\n",
    "template.yaml": b"kind: WorkflowTemplate\n",
    "wheels/slotwise-0.1.0-py3-none-any.whl": bytes(range(256)),
}


def _bundle(files: Mapping[str, bytes] = FILES, sums: bytes | None = None) -> bytes:
    listed = checksums(files) if sums is None else sums
    return canonical_zip(dict(sorted({**files, "SHA256SUMS": listed}.items())))


def _zip(
    entries: Iterable[tuple[str, bytes]],
    compression: int = zipfile.ZIP_STORED,
    mode: int = 0o100644,
) -> bytes:
    """As another program might pack it: entries in the order given, twice the same if asked."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = mode << 16
            info.create_system = 3
            archive.writestr(info, content, compress_type=compression)
    return buffer.getvalue()


def _entries(files: Mapping[str, bytes] = FILES, **extra: bytes) -> list[tuple[str, bytes]]:
    return [*files.items(), ("SHA256SUMS", checksums(files)), *extra.items()]


def _refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "bundle.zip"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        verify_bundle(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_checksums_are_those_that_sha256sum_reads() -> None:
    assert checksums({"b": b"", "a": b"abc"}).decode() == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
    )


def test_a_whole_bundle(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(_bundle())
    verified = verify_bundle(path)
    assert verified.files == 4
    assert verified.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_files_give_the_same_bytes_and_read_back() -> None:
    content = _bundle()
    assert content == _bundle(dict(reversed(FILES.items())))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in FILES} == FILES
        assert archive.namelist() == sorted(archive.namelist())


def test_missing(tmp_path: Path) -> None:
    sums = checksums({**FILES, "LICENSE": b"text"})
    assert "LICENSE is missing" in _refusal(tmp_path, _bundle(sums=sums))


@pytest.mark.parametrize("name", ["SHA256SUMS", "template.yaml"])
def test_an_essential_is_missing(tmp_path: Path, name: str) -> None:
    entries = [entry for entry in _entries() if entry[0] != name]
    assert f"{name} is missing" in _refusal(tmp_path, _zip(entries))


def test_extra(tmp_path: Path) -> None:
    files = {**FILES, "setup.py": b"import os"}
    assert "setup.py is not in SHA256SUMS" in _refusal(
        tmp_path, _bundle(files, sums=checksums(FILES))
    )


def test_changed(tmp_path: Path) -> None:
    files = {**FILES, "README.md": b"read mE\n"}
    message = _refusal(tmp_path, _bundle(files, sums=checksums(FILES)))
    assert "README.md was changed" in message


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/etc/evil",
        "a//b",
        "./a",
        "a/",
        "C:/evil",
        "a\\b",
        "a\u202eb",
        "a\nb",
        "..",
        "con./x",
        "a ",
    ],
)
def test_names_that_could_write_elsewhere(tmp_path: Path, name: str) -> None:
    files = {**FILES, name: b"x"}
    assert "no plain relative path" in _refusal(tmp_path, _zip(_entries(files)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["README.md", "readme.MD"])
def test_duplicates(tmp_path: Path, name: str) -> None:
    assert "is there 2 times" in _refusal(tmp_path, _zip([*_entries(), (name, b"other")]))


def test_a_file_listed_twice(tmp_path: Path) -> None:
    sums = checksums(FILES)
    message = _refusal(tmp_path, _bundle(sums=sums + sums.splitlines(keepends=True)[0]))
    assert "SHA256SUMS:4 is no line of its own" in message


def test_compressed(tmp_path: Path) -> None:
    content = _zip(_entries(), compression=zipfile.ZIP_DEFLATED)
    assert "is compressed" in _refusal(tmp_path, content)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, 0])
def test_links_and_other_kinds(tmp_path: Path, kind: int) -> None:
    content = _zip(_entries(), mode=kind | 0o644)
    assert "no regular file" in _refusal(tmp_path, content)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"#!/bin/sh\n" + content,
        lambda content: content + b"trailing",
        lambda _content: _zip(_entries(), mode=0o100755),
    ],
)
def test_bytes_beside_the_files(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    message = _refusal(tmp_path, change(_bundle()))
    assert "packed by another program" in message or "no zip" in message


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all", _bundle()[:-30]])
def test_no_zip(tmp_path: Path, content: bytes) -> None:
    assert "is no zip that can be read" in _refusal(tmp_path, content)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        verify_bundle(tmp_path / "none.zip")


@given(position=st.integers(0, len(_bundle()) - 1), bit=st.integers(0, 7))
def test_no_bit_can_be_changed(
    tmp_path_factory: pytest.TempPathFactory, position: int, bit: int
) -> None:
    content = bytearray(_bundle())
    content[position] ^= 1 << bit
    path = tmp_path_factory.getbasetemp() / "flipped.zip"
    path.write_bytes(content)
    with pytest.raises(InputError):
        verify_bundle(path)
