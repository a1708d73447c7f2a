"""From a file to decoded text, piece by piece, whatever it is wrapped in.

Every function here is a generator from one stream to the next, so that a file of any size (or a
few bytes that unpack into gigabytes) takes bounded memory:

    read_bytes -> decompress -> decode -> (whole_lines) -> numbered_lines
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import zstandard

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers.rows import RECORD_LIMIT, Compression

#: Bytes read or unpacked at once.
CHUNK: Final = 256 * 1024

# One byte of zstd can stand for 32 KiB of output, and its streaming interface has no limit on
# what one call returns: feeding this much keeps a call's output under the limit of a record.
_ZSTD_STEP: Final = 2 * 1024

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class StreamEndsEarlyError(InputError):
    """A compressed stream stops before its own end mark, e.g. after a broken download."""


def read_bytes(path: Path, where: str, on_bytes: Callable[[int], None] | None) -> Iterator[bytes]:
    """The file's bytes as they lie on the disk.

    Args:
        path: The file.
        where: Its name in error messages.
        on_bytes: Called with the number of bytes just read, for progress.

    Raises:
        InputError: The file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                if on_bytes is not None:
                    on_bytes(len(chunk))
                yield chunk
    except OSError as error:
        raise InputError(
            "the file cannot be read", where=where, why=error.strerror or type(error).__name__
        ) from error


def compression_of(head: bytes) -> Compression:
    """The compression that a file's first bytes announce."""
    if head.startswith(_GZIP):
        return "gzip"
    skippable = len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"
    if head.startswith(_ZSTD) or skippable:
        return "zstd"
    return ""


def decompress(chunks: Iterable[bytes], compression: Compression, where: str) -> Iterator[bytes]:
    """Unpacks gzip (any number of members) and zstd (any number of frames).

    Raises:
        StreamEndsEarlyError: The last member or frame is not complete.
        InputError: The compressed data is damaged.
    """
    if compression == "gzip":
        return _gunzip(iter(chunks), where)
    if compression == "zstd":
        return _unzstd(iter(chunks), where)
    return iter(chunks)


def _gunzip(chunks: Iterator[bytes], where: str) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    begun = False  # the member now open has had input
    for chunk in chunks:
        data = chunk
        while data:
            if not begun:
                data = data.lstrip(b"\0")  # padding between members and at the end
                if not data:
                    break
                begun = True
            try:
                out = member.decompress(data, CHUNK)
            except zlib.error as error:
                raise InputError(
                    "the gzip data is damaged",
                    where=where,
                    why=str(error),
                    hint="Fetch or compress the file again",
                ) from error
            if out:
                yield out
            if member.eof:
                data = member.unused_data
                member, begun = zlib.decompressobj(wbits=31), False
            else:
                data = member.unconsumed_tail
    if begun:
        raise _ends_early("gzip", where)


def _unzstd(chunks: Iterator[bytes], where: str) -> Iterator[bytes]:
    unpacker = zstandard.ZstdDecompressor()
    frame = unpacker.decompressobj()
    begun = False
    for chunk in chunks:
        for start in range(0, len(chunk), _ZSTD_STEP):
            data = chunk[start : start + _ZSTD_STEP]
            while data:
                begun = True
                try:
                    out = frame.decompress(data)
                except zstandard.ZstdError as error:
                    raise InputError(
                        "the zstd data is damaged",
                        where=where,
                        why=str(error),
                        hint="Fetch or compress the file again",
                    ) from error
                for at in range(0, len(out), CHUNK):
                    yield out[at : at + CHUNK]
                data = b""
                if frame.eof:
                    data = frame.unused_data
                    frame, begun = unpacker.decompressobj(), False
    if begun:
        raise _ends_early("zstd", where)


def _ends_early(compression: Compression, where: str) -> StreamEndsEarlyError:
    return StreamEndsEarlyError(
        f"the {compression} stream ends early",
        where=where,
        why="the file is cut off in the middle",
        hint="Fetch it again, or read the whole lines before the cut with --allow-truncated",
    )


def decode(chunks: Iterable[bytes], encoding: str, where: str) -> Iterator[str]:
    """Bytes as text, strictly; a character cut off by the end of the file becomes U+FFFD.

    A byte order mark is dropped.

    Raises:
        InputError: Bytes that the encoding does not know, with their offset and line.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    fed, lines, first = 0, 1, True
    for chunk in chunks:
        pending = decoder.getstate()[0]
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError as error:
            bad = error.start
            raise _not_text(
                error.object[bad],
                fed - len(pending) + bad,
                lines + error.object.count(b"\n", 0, bad),
                encoding,
                where,
            ) from error
        fed += len(chunk)
        lines += text.count("\n")
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        if text:
            yield text
    if decoder.getstate()[0]:
        yield "\ufffd"


def _not_text(byte: int, offset: int, line: int, encoding: str, where: str) -> InputError:
    if encoding != "utf-8":
        return InputError(f"bytes at offset {offset} are not {encoding}", where=f"{where}:{line}")
    return InputError(
        f"byte 0x{byte:02x} at offset {offset} is not UTF-8",
        where=f"{where}:{line}",
        hint="Save the file as UTF-8, e.g. `iconv -f CP932 -t UTF-8 OLD > NEW` for Japanese"
        " Windows or `iconv -f CP1252 -t UTF-8 OLD > NEW` for Western Windows",
    )


def whole_lines(texts: Iterable[str], where: str, *, limit: int = RECORD_LIMIT) -> Iterator[str]:
    """The text up to its last whole line where a compressed stream ends early.

    A stream that is complete passes unchanged.

    Raises:
        InputError: A line is longer than the limit.
    """
    held = ""
    try:
        for text in texts:
            end = text.rfind("\n") + 1
            if end:
                yield held + text[:end]
                held = text[end:]
            else:
                held += text
            if len(held) > limit:
                raise too_long(where, limit)
    except StreamEndsEarlyError:
        return
    if held:
        yield held


def numbered_lines(
    texts: Iterable[str], where: str, *, newline: str = "\n", limit: int = RECORD_LIMIT
) -> Iterator[tuple[int, str]]:
    """The lines of a text, each with its 1-based number and without its line end.

    Args:
        texts: Pieces of text, cut anywhere.
        where: The file's name in error messages.
        newline: What ends a line; a carriage return before it stays.
        limit: The longest line in characters.

    Raises:
        InputError: A line is longer than the limit.
    """
    number = 1
    held: list[str] = []
    size = 0
    for text in texts:
        parts = text.split(newline)
        held.append(parts[0])
        size += len(parts[0])
        if size > limit:
            raise too_long(f"{where}:{number}", limit)
        if len(parts) == 1:
            continue
        yield number, "".join(held)
        for number, line in enumerate(parts[1:-1], number + 1):  # noqa: B020
            yield number, line
        number += 1
        held, size = [parts[-1]], len(parts[-1])
    last = "".join(held)
    if last:
        yield number, last


def too_long(where: str, limit: int) -> InputError:
    """The error for a record that does not fit into the memory set aside for one."""
    return InputError(
        f"a single record is longer than {limit >> 20} MiB",
        where=where,
        why="no log of requests holds such a record",
        hint="Export one record a line, without the texts of prompts and answers",
    )
