"""What a file is, by its content, and the rows in it.

The order of the questions: the bytes (Parquet, compression, files that are no log), the encoding,
then the text: JSON, a table, or the lines of a log. Names and extensions are never asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers import json_text, magic, parquet, streams, tables
from slotwise_workflows.traffic.containers.rows import Compression, Container, Row
from slotwise_workflows.traffic.paths import spooled

#: Bytes and characters that are looked at before anything is decided.
HEAD: Final = 256 * 1024
#: Lines by which JSON Lines are told from text.
SAMPLE: Final = 1000

_TAIL: Final = 64 * 1024
_ARRAY: Final = re.compile(r"\[[ \t\r\n]*([\[{\"\]\-\d]|true|false|null|NaN|Infinity|$)")
_OBJECT: Final = re.compile(r"\{[ \t\r\n]*([\"}]|$)")
_TRAILING_COMMA: Final = re.compile(rb",[ \t\r\n]*\][ \t\r\n]*$")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text whose beginning has been looked at."""

    where: str
    head: str
    complete: bool
    pieces: Iterator[str]

    def lines(self) -> Iterator[tuple[int, str]]:
        return streams.numbered_lines(self.pieces, self.where, newline=self.newline)

    def head_lines(self) -> list[tuple[int, str]]:
        """The lines wholly in the head."""
        lines = self.head.split(self.newline)
        if not self.complete:
            lines = lines[:-1]
        return list(enumerate(lines, 1))

    @property
    def newline(self) -> str:
        return "\r" if "\r" in self.head and "\n" not in self.head else "\n"


def open_container(
    path: Path | str,
    *,
    name: str = "",
    allow_truncated: bool = False,
    on_bytes: Callable[[int], None] | None = None,
) -> tuple[Container, Iterator[Row]]:
    """Opens a file of any of the known kinds.

    The beginning decides; the rest is read as rows are asked for (only what must be known before,
    such as where a compressed stream is cut, costs a pass of its own). Memory is bounded by the
    longest record (`rows.RECORD_LIMIT`), whatever the size of the file.

    Args:
        path: The file, or ``-`` for standard input.
        name: The file's name in error messages; `path` when empty.
        allow_truncated: Read the whole lines before the cut of a compressed stream that ends
            early, instead of refusing it.
        on_bytes: Called with the number of bytes just read from the disk.

    Returns:
        What the file is, and its rows in order.

    Raises:
        InputError: Not readable, empty, not a log, damaged; damage further on is raised while
            the rows are read.
    """
    if str(path) == "-":
        return _open_stdin(name or "standard input", allow_truncated, on_bytes)
    path = Path(path)
    where = name or str(path)
    raw = streams.read_bytes(path, where, on_bytes)
    head, raw = _peek_bytes(raw)
    if not head:
        raise _empty(where)
    if head.startswith(parquet.MAGIC):
        rest = (lambda size: on_bytes(max(size - len(head), 0))) if on_bytes else None
        columns, rows = parquet.open_parquet(path, where, on_done=rest)
        return Container("parquet", columns=columns), rows
    compression = streams.compression_of(head)
    if not compression:
        magic.refuse_foreign(head, where)
    cut = _find_cut(path, compression, where) if allow_truncated and compression else None
    inner, chunks = head, raw
    if compression:
        inner, chunks = _peek_bytes(streams.decompress(raw, compression, where))
        if not inner:
            next(chunks, None)  # a stream that ends before its first byte says so here
            raise _empty(where)
        magic.refuse_foreign(inner, where, inside=compression)
    encoding = _encoding(inner, where)
    texts = streams.decode(chunks, encoding, where)
    if cut is not None:
        texts = streams.whole_lines(texts, where)
    text = _peek_text(texts, where)
    if text.complete and not text.head.strip():
        raise _empty(where, cut)
    container, rows = _open_text(text, lambda: _array_faults(path, compression, where))
    found = replace(container, compression=compression, encoding=encoding, truncated_at=cut)
    return found, rows


def _open_stdin(
    where: str, allow_truncated: bool, on_bytes: Callable[[int], None] | None
) -> tuple[Container, Iterator[Row]]:
    with ExitStack() as stack:
        path = stack.enter_context(spooled(sys.stdin.buffer))
        container, rows = open_container(
            path, name=where, allow_truncated=allow_truncated, on_bytes=on_bytes
        )
        copy = stack.pop_all()  # goes on living until the last row
    return container, _within(copy, rows)


def _within(copy: ExitStack, rows: Iterator[Row]) -> Iterator[Row]:
    with copy:
        yield from rows


def _peek_bytes(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first `HEAD` bytes, more if they come together, and the whole stream again.

    A stream that breaks off within them gives what came before; the error comes when the rest
    is read.
    """
    parts: list[bytes] = []
    size = 0
    rest = chunks
    while size < HEAD:
        try:
            chunk = next(chunks, None)
        except streams.StreamEndsEarlyError as error:
            rest = _raising(error)
            break
        if chunk is None:
            break
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts), chain(parts, rest)


def _raising(error: InputError) -> Iterator[bytes]:
    raise error
    yield b""


def _peek_text(texts: Iterator[str], where: str) -> _Text:
    parts: list[str] = []
    size, complete = 0, False
    while size < HEAD:
        text = next(texts, None)
        if text is None:
            complete = True
            break
        parts.append(text)
        size += len(text)
    return _Text(where, "".join(parts), complete, chain(parts, texts))


def _empty(where: str, cut: int | None = None) -> InputError:
    if cut is not None:
        return InputError("no whole line comes before the cut", where=where, hint="Fetch it again")
    return InputError(
        "the file is empty", where=where, hint="Check the export; nothing was written to it"
    )


def _find_cut(path: Path, compression: Compression, where: str) -> int | None:
    """Decompressed bytes before the cut of a stream that ends early; None for a whole one."""
    size = 0
    try:
        for chunk in streams.decompress(streams.read_bytes(path, where, None), compression, where):
            size += len(chunk)
    except streams.StreamEndsEarlyError:
        return size
    return None


def _encoding(head: bytes, where: str) -> str:
    if head.startswith(b"\xff\xfe"):
        return "utf-16-le"
    if head.startswith(b"\xfe\xff"):
        return "utf-16-be"
    magic.refuse_binary(head, where)
    return "utf-8"


def _open_text(
    text: _Text, array_faults: Callable[[], tuple[str, ...]]
) -> tuple[Container, Iterator[Row]]:
    start = text.head.lstrip(" \t\r\n\x1e\ufeff")
    lines = text.head_lines()
    if _ARRAY.match(start) and _is_array(start, text.complete):
        window = json_text.Window(text.pieces, text.where)
        rows = json_text.read_document(window, by_number=_on_one_line(text.head))
        return Container("json", repaired=array_faults()), rows
    bad, seen = _bad_lines(lines)
    if len(seen) > 1 and 2 * len(bad) <= len(seen):
        return Container("jsonl"), json_text.read_lines(text.lines())
    # A first line that is a whole object, in lines most of which are none: a log, no document.
    if _OBJECT.match(start) and (len(seen) <= 1 or seen[0] in bad):
        return _open_object(text)
    looked_at = lines[: 4 * tables.SAMPLE]
    complete = text.complete and len(looked_at) == len(lines)
    dialect = tables.sniff(looked_at, text.where, complete=complete)
    if dialect is not None:
        records = tables.read_records(text.lines(), dialect.delimiter, text.where)
        container = Container(
            "csv",
            delimiter=dialect.delimiter,
            columns=dialect.columns,
            decimal_comma=dialect.decimal_comma,
        )
        return container, tables.read_table(records, dialect, text.where)
    return Container("text"), _read_log(text.lines())


def _read_log(lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
    for number, line in lines:
        text = line.removesuffix("\r")
        if text.strip():
            yield Row(number, {"line": text})


def _on_one_line(head: str) -> bool:
    return "\n" not in head.strip()


def _bad_lines(lines: list[tuple[int, str]]) -> tuple[set[int], list[int]]:
    """The numbers of the first lines that are not wholly JSON objects, and of all looked at."""
    filled = [(number, line) for number, line in lines if line.strip()][:SAMPLE]
    bad = {row.line for row in json_text.read_lines(filled) if row.value is None}
    return bad, [number for number, _ in filled]


def _is_array(start: str, complete: bool) -> bool:
    """Whether a text that begins with a bracket is a JSON array: ``[2026-09-01`` is none."""
    items = json_text.Window([start], "")
    items.peek()
    items.advance(items.pos + 1)
    if items.peek() in ("", "]", "{"):
        return True
    try:
        items.take()
    except (ValueError, RecursionError) as error:
        return isinstance(error, RecursionError) or (not complete and bool(start))
    return items.peek() in ("", ",", "]")


def _open_object(text: _Text) -> tuple[Container, Iterator[Row]]:
    """A document that begins with an object, which is read at once."""
    window = json_text.Window(text.pieces, text.where)
    window.peek()
    first, repaired = json_text.first_object(window)
    by_number = _on_one_line(text.head)
    rest = json_text.read_document(window, by_number=False)

    def rows() -> Iterator[Row]:
        for number, row in enumerate(chain([first], rest), 1):
            yield Row(number, row.value, row.why, row.duplicate_keys) if by_number else row

    return Container("json", repaired=repaired), rows()


def _array_faults(path: Path, compression: Compression, where: str) -> tuple[str, ...]:
    """What will be mended at the end of an array: a comma too many."""
    tail, size = b"", 0
    if compression:
        raw = streams.read_bytes(path, where, None)
        try:
            for chunk in streams.decompress(raw, compression, where):
                size += len(chunk)
                tail = (tail + chunk)[-_TAIL:]
        except InputError:
            return ()  # told when the rows are read
    else:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - _TAIL))
            tail = file.read()
    if not _TRAILING_COMMA.search(tail.replace(b"\0", b"")):  # NUL: every other byte of UTF-16
        return ()
    return (f"trailing comma before ] at byte {size - len(tail) + tail.rindex(b',')}",)
