"""Delimited text: a parser of its own, and how a dialect is found.

The parser follows RFC 4180 and reads what `csv` reads (a test compares the two), with three
differences that logs need: it knows the line a record starts in, a record is bounded by this
project's limit and not by a process-wide setting, and a quote that is never closed is told
instead of swallowing the rest of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers.rows import RECORD_LIMIT, Row
from slotwise_workflows.traffic.containers.streams import too_long

DELIMITERS: Final = (",", ";", "\t", "|")
#: Records looked at to find the dialect.
SAMPLE: Final = 1000

# What a line inside a quoted cell takes in memory beside its characters.
_PER_LINE: Final = 64

_QUOTED: Final = re.compile(r'[^"]*(?:""[^"]*)*')
_NUMBER: Final = re.compile(r"[+-]?(\d[\d.,_]*|\.\d+)([eE][+-]?\d+)?(ns|us|µs|ms|s|%)?")
_STAMP: Final = re.compile(
    r"(?<!\d)(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}:\d{2}:\d{2})"
)
_WHOLE_STAMP: Final = re.compile(r"[\d\-/:.,TZ+ ]+( ?[AaPp]\.?[Mm]\.?)?( ?UTC| ?GMT)?")
_ADDRESS: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}(:\d+)?")
# 1,5 and 0,512 and 1024,500 and 1.024,5 but not 1,024, which may group thousands.
_DECIMAL_COMMA: Final = re.compile(
    r"[+-]?(0,\d+|\d+,(\d{1,2}|\d{4,})|\d{4,},\d+|\d{1,3}(\.\d{3})+,\d+)"
)
_WHOLE_NUMBER: Final = re.compile(r"[+-]?(\d+|\d{1,3}([.,]\d{3})+)")
# A name holds no assignment, no "word: ", no run of spaces, and does not begin like "0.22.535 I".
_SENTENCE: Final = re.compile(r"=|:\s|\s\s|^\d[\d.:]*\s")
_EXCEL_HINT: Final = re.compile(r"sep=(.)\r?")


@dataclass(frozen=True, slots=True)
class Record:
    """The cells of one record; `open_quote` when a quoted cell never ends."""

    line: int
    cells: list[str]
    open_quote: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a table is written.

    Attributes:
        delimiter: Between cells.
        columns: Names from the header.
        header_line: The header's line.
        decimal_comma: Some numeric column shows decimal commas.
    """

    delimiter: str
    columns: tuple[str, ...]
    header_line: int
    decimal_comma: bool


def read_records(
    lines: Iterable[tuple[int, str]], delimiter: str, where: str, *, limit: int = RECORD_LIMIT
) -> Iterator[Record]:
    """The records of a delimited text. Empty lines are no records.

    Args:
        lines: Numbered lines without the line feed; a carriage return may be left.
        delimiter: One character.
        where: The file's name in error messages.
        limit: The longest record in characters.

    Raises:
        InputError: A record is longer than the limit.
    """
    source = iter(lines)
    for number, line in source:
        if '"' not in line:
            text = line.removesuffix("\r")
            if text.strip(" "):
                yield Record(number, text.split(delimiter))
            continue
        yield _quoted_record(number, line, source, delimiter, f"{where}:{number}", limit)


def _quoted_record(
    number: int,
    line: str,
    source: Iterator[tuple[int, str]],
    delimiter: str,
    place: str,
    limit: int,
) -> Record:
    cells: list[str] = []
    position = 0
    size = len(line)
    while True:
        begin = position
        while begin < len(line) and line[begin] == " ":
            begin += 1
        if begin == len(line) or line[begin] != '"':  # a plain cell
            end = line.find(delimiter, position)
            if end < 0:
                cells.append(line[position:].removesuffix("\r"))
                return Record(number, cells)
            cells.append(line[position:end])
            position = end + 1
            continue
        parts: list[str] = []
        position = begin + 1
        while True:
            match = _QUOTED.match(line, position)
            end = match.end() if match else position
            parts.append(line[position:end])
            if end < len(line):
                break
            following = next(source, None)
            if following is None:
                return Record(number, [*cells, "".join(parts)], open_quote=True)
            line = following[1]
            position, size = 0, size + len(line) + _PER_LINE
            if size > limit:
                raise too_long(place, limit)
            parts.append("\n")
        after = line.find(delimiter, end + 1)
        tail = line[end + 1 :] if after < 0 else line[end + 1 : after]
        cell = "".join(parts).replace('""', '"')
        if after < 0:
            cells.append(cell + tail.removesuffix("\r"))
            return Record(number, cells)
        cells.append(cell + tail)
        position = after + 1


def sniff(lines: Sequence[tuple[int, str]], where: str, *, complete: bool) -> Dialect | None:
    """Finds how a table is written, from its first lines.

    The delimiter is the one under which most records have as many cells as the header.

    Args:
        lines: The first numbered lines.
        where: The file's name in error messages.
        complete: Whether these are all the lines there are.

    Returns:
        The dialect, or None when the lines are no table.

    Raises:
        InputError: It is a table, but without a header or with two columns of one name.
    """
    lines = [(number, line) for number, line in lines if line.strip()]
    hint = _EXCEL_HINT.fullmatch(lines[0][1]) if lines else None
    if hint:
        lines = lines[1:]
    if not lines:
        return None
    best: tuple[float, int, str, list[Record]] | None = None
    for delimiter in (hint[1],) if hint else DELIMITERS:
        records = _sample(lines, delimiter, complete)
        width = len(records[0].cells) if records else 0
        if width < 2:
            continue
        rest = records[1:]
        fits = sum(fit(record.cells, width) is not None for record in rest)
        share = fits / len(rest) if rest else 1.0
        if share >= 0.5 and (best is None or (share, width) > best[:2]):
            best = (share, width, delimiter, records)
    if best is None:
        return _single_column(lines)
    _, width, delimiter, records = best
    if not _is_header(records[0], lines[0][1], where):
        return None
    return Dialect(
        delimiter,
        _names(records[0], where),
        records[0].line,
        any(_shows_decimal_comma(column) for column in _columns(records[1:], width)),
    )


def _sample(lines: Sequence[tuple[int, str]], delimiter: str, complete: bool) -> list[Record]:
    records = []
    for record in read_records(lines, delimiter, ""):
        if record.open_quote and not complete:
            break  # it goes on after the sample
        records.append(record)
        if len(records) > SAMPLE:
            break
    return records


def _single_column(lines: Sequence[tuple[int, str]]) -> Dialect | None:
    """A table of one column: a name, then numbers only."""
    first, *rest = (line.strip().strip('"') for _, line in lines[: SAMPLE + 1])
    named = re.fullmatch(r"[^\W\d][\w.\- ]*", first)
    if not named or not rest or not all(_NUMBER.fullmatch(line) for line in rest):
        return None
    return Dialect(",", (first,), lines[0][0], decimal_comma=False)


def _is_header(record: Record, raw: str, where: str) -> bool:
    """Whether the first record names columns; False where the lines are those of a text log.

    Raises:
        InputError: Values stand where the names should be.
    """
    filled = [cell.strip() for cell in record.cells if cell.strip()]
    stamps = sum(bool(_STAMP.search(cell)) for cell in filled)
    values = sum(_is_value(cell) for cell in filled)
    if not stamps and 2 * values < len(filled):
        return not any(len(cell) > 200 or _SENTENCE.search(cell) for cell in filled)
    # A table that lost its header, or the lines of a text log, whose pieces are sentences.
    if any(" " in cell and not _is_value(cell) and f'"{cell[:20]}' not in raw for cell in filled):
        return False
    raise InputError(
        "the table has no header row",
        where=f"{where}:{record.line}",
        why="its first row holds values (numbers, times), not the names of columns",
        hint="Put a line with the columns' names at the top, e.g."
        " timestamp,prompt_tokens,completion_tokens",
    )


def _is_value(cell: str) -> bool:
    """Whether a cell is a number, a time or a network address."""
    if _STAMP.search(cell) and _WHOLE_STAMP.fullmatch(cell):
        return True
    return bool(_NUMBER.fullmatch(cell) or _ADDRESS.fullmatch(cell))


def _names(record: Record, where: str) -> tuple[str, ...]:
    names = tuple(cell.strip() or f"column {index}" for index, cell in enumerate(record.cells, 1))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"two columns are called {', '.join(map(repr, twice[:3]))}",
            where=f"{where}:{record.line}",
            why="their values cannot be told apart",
            hint="Give every column a name of its own",
        )
    return names


def _columns(records: Sequence[Record], width: int) -> Iterator[list[str]]:
    whole = [record.cells for record in records if len(record.cells) == width]
    for index in range(width):
        yield [cells[index].strip() for cells in whole if cells[index].strip()]


def _shows_decimal_comma(cells: Sequence[str]) -> bool:
    """Whether a column is numeric and some of its commas can only be decimal ones."""
    decimal = [bool(_DECIMAL_COMMA.fullmatch(cell)) for cell in cells]
    return any(decimal) and all(
        shown or _WHOLE_NUMBER.fullmatch(cell) for shown, cell in zip(decimal, cells, strict=True)
    )


def fit(cells: list[str], width: int) -> list[str] | None:
    """The cells of a record under a header; empty ones too many at its end are dropped."""
    if len(cells) == width:
        return cells
    if len(cells) > width and not any(cell.strip() for cell in cells[width:]):
        return cells[:width]
    return None


def read_table(records: Iterable[Record], dialect: Dialect, where: str) -> Iterator[Row]:
    """The rows under the header.

    A record with another number of cells than the header, or one that repeats the header (two
    exports in one file), becomes a row without a value.

    Raises:
        InputError: A quote that is never closed has swallowed rows.
    """
    columns, width = dialect.columns, len(dialect.columns)
    header = list(columns)
    for record in records:
        if record.line <= dialect.header_line:
            continue
        if record.open_quote:
            yield _unclosed(record, dialect, where)
            continue
        cells = record.cells if len(record.cells) == width else fit(record.cells, width)
        if cells is None:
            yield Row(record.line, None, _ragged(len(record.cells), width))
        elif cells[0].strip() == header[0] and [cell.strip() for cell in cells] == header:
            yield Row(record.line, None, "repeats the header")
        else:
            yield Row(record.line, dict(zip(columns, cells, strict=True)))


def _ragged(cells: int, width: int) -> str:
    return f"has {cells} field{'s' if cells != 1 else ''}, the header has {width}"


def _unclosed(record: Record, dialect: Dialect, where: str) -> Row:
    """A file copied while it was written ends like this, but so does one with a stray quote."""
    width = len(dialect.columns)
    swallowed = record.cells[-1].split("\n")[1:]
    rows = sum(len(line.split(dialect.delimiter)) == width for line in swallowed)
    if rows:
        raise InputError(
            "a quote that opens here is never closed",
            where=f"{where}:{record.line}",
            why=f"{rows} of the {len(swallowed)} lines after it look like rows of their own",
            hint="Close the quote or delete that row, and double the quotes inside quoted cells",
        )
    return Row(record.line, None, "a quote that opens here is never closed")
