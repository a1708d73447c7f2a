"""Files that are no log: told by their first bytes, refused with what to do instead."""

from __future__ import annotations

import pickletools
import re
from typing import Final

from slotwise_workflows.errors import InputError

_EXPORT: Final = "Export the requests as CSV, JSON Lines or Parquet"
_UNPACK: Final = "Unpack it first; gzip and zstd are read as they are"
_COLUMNS: Final = "Write it as Parquet instead, e.g. with pandas `to_parquet` or polars"
_SHEET: Final = "In the spreadsheet program save the sheet as CSV UTF-8"
_PICKLE: Final = (
    "Unpickling can run any program, so it is never done. In the program that wrote it, write"
    " the table as CSV, JSON Lines or Parquet"
)
_PROTOBUF: Final = (
    "If these are OpenTelemetry spans in Protocol Buffers, export them as OTLP JSON; otherwise"
    " as CSV, JSON Lines or Parquet"
)

# (offset, bytes, what it is, what to do)
_SIGNATURES: Final = (
    (0, b"PK\x05\x06", "an empty ZIP archive", _UNPACK),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Office file", _SHEET),
    (0, b"SQLite format 3\0", "an SQLite database", _EXPORT + ", e.g. `sqlite3 -csv -header`"),
    (0, b"%PDF-", "a PDF", _EXPORT),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG picture", _EXPORT),
    (0, b"\xff\xd8\xff", "a JPEG picture", _EXPORT),
    (0, b"GIF87a", "a GIF picture", _EXPORT),
    (0, b"GIF89a", "a GIF picture", _EXPORT),
    (0, b"Obj\x01", "an Avro file", _COLUMNS),
    (0, b"ARROW1\0\0", "an Arrow IPC (Feather) file", _COLUMNS),
    (0, b"\x93NUMPY", "a NumPy array file", _COLUMNS),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", _COLUMNS),
    (4, b"1AY&SY", "a bzip2 file", _UNPACK),
    (0, b"\xfd7zXZ\0", "an xz file", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (0, b"\x04\x22\x4d\x18", "an LZ4 file", _UNPACK),
    (0, b"\xff\x06\x00\x00sNaPpY", "a Snappy file", _UNPACK),
    (0, b"\x7fELF", "a program", _EXPORT),
    (257, b"ustar", "a tar archive", "Unpack it first and name the log inside"),
    (
        0,
        b"version https://git-lfs.github.com/",
        "a Git LFS pointer, not the data",
        "`git lfs pull`",
    ),
    (0, b"\xff\xfe\0\0", "UTF-32 text", "Save it as UTF-8"),
    (0, b"\0\0\xfe\xff", "UTF-32 text", "Save it as UTF-8"),
)

# These begin like a word; what follows them in such a file is no text.
_WORDS: Final = (
    (b"ORC", "an ORC file", _COLUMNS),
    (b"PARE", "an encrypted Parquet file", "Write it without encryption"),
)
# A mark, an empty list or dict, or a global: a module and a name, each on a line of its own.
_ASCII_PICKLE: Final = re.compile(rb"[(\]}]|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n")
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\b\x1b\x1e")
_LOOKED_AT: Final = 4096


def refuse_foreign(head: bytes, where: str, *, inside: str = "") -> None:
    """Stops at bytes that are known to be something other than a log.

    Args:
        head: The first bytes of the file, or of what was compressed in it.
        where: The file's name.
        inside: The compression the bytes came out of.

    Raises:
        InputError: The bytes belong to another kind of file.
    """
    within = f" inside {inside}" if inside else ""
    for offset, magic, what, hint in _SIGNATURES:
        if head.startswith(magic, offset):
            raise InputError(f"this is {what}{within}, not a log", where=where, hint=hint)
    for magic, what, hint in _WORDS:
        if head.startswith(magic) and b"\0" in head:
            raise InputError(f"this is {what}{within}, not a log", where=where, hint=hint)
    if head.startswith(b"PK\x03\x04"):
        sheet = b"xl/" in head or b"[Content_Types].xml" in head
        what, hint = ("an Excel workbook", _SHEET) if sheet else ("a ZIP archive", _UNPACK)
        raise InputError(f"this is {what}{within}, not a log", where=where, hint=hint)
    if inside and head.startswith((b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        what = "a Parquet file" if head.startswith(b"PAR1") else "another compressed file"
        raise InputError(f"there is {what}{within}", where=where, hint="Unpack it once")
    if is_pickle(head):
        raise InputError(f"this is a Python pickle{within}", where=where, hint=_PICKLE)
    start = head[:256].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise InputError(
            f"this is a web page (HTML){within}, not a log",
            where=where,
            hint="A download that asked for a login is often saved like this; fetch it again",
        )
    if start.startswith(b"<?xml"):
        raise InputError(f"this is XML{within}, not a log", where=where, hint=_EXPORT)


def refuse_binary(head: bytes, where: str) -> None:
    """Stops at bytes that no text holds. UTF-16 must have been told apart before.

    Raises:
        InputError: There are NUL bytes or many control characters.
    """
    if b"\0" in head:
        if looks_utf16(head):
            raise InputError(
                "this looks like UTF-16 without a byte order mark",
                where=where,
                hint="Save it as UTF-8, e.g. `iconv -f UTF-16LE -t UTF-8 OLD > NEW`",
            )
        raise InputError(
            f"this is binary data: a NUL byte at offset {head.index(0)}",
            where=where,
            hint=_PROTOBUF,
        )
    sample = head[:_LOOKED_AT]
    odd = sum(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in sample)
    if odd * 50 > len(sample):
        raise InputError(
            f"this is binary data: {odd} control characters in the first {len(sample)} bytes",
            where=where,
            hint=_PROTOBUF,
        )


def looks_utf16(head: bytes) -> bool:
    """Whether every other byte of a text is NUL, as ASCII in UTF-16 has it."""
    sample = head[: _LOOKED_AT // 2 * 2]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    return half > 0 and max(even, odd) > 0.7 * half and min(even, odd) < 0.05 * half


def is_pickle(head: bytes) -> bool:
    """Whether the bytes are a Python pickle. They are only looked at, never executed."""
    if len(head) >= 2 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return True
    # Protocols 0 and 1 have no mark; disassembling is the one sure test.
    if not _ASCII_PICKLE.match(head):
        return False
    steps = 0
    try:
        for operation, _, _ in pickletools.genops(head[:_LOOKED_AT]):
            steps += 1
            if operation.name == "STOP":
                return steps >= 3
    except Exception:
        return steps >= 40
    return steps >= 40
