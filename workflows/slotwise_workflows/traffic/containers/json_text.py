"""JSON in every shape logs come in: lines, arrays, documents, objects back to back.

Parsing is Python's own `json`, so numbers keep every digit. Two things are added: keys that an
object holds twice are reported instead of silently losing one value, and a document is read
record by record, so that an array of any length takes the memory of one record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers.rows import NO_KEYS, RECORD_LIMIT, Row
from slotwise_workflows.traffic.containers.streams import too_long

_SPACE: Final = re.compile(r"[ \t\r\n\x1e\ufeff]*")  # RS: JSON text sequences (RFC 7464)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
# Outside strings, valid JSON never has "}" before "{"; a "{" that opens a line begins a record.
_NEXT_OBJECT: Final = re.compile(r"\}[ \t\r\n\x1e]*(?=\{)|\n(?=\{)")
_TRAILING_COMMA: Final = re.compile(r",[ \t\r\n]*[\]}]")
_MAX_REPAIRS: Final = 16


class _DuplicateKeyError(Exception):
    """Some object of the text holds a key twice."""


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, every pair kept."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _DuplicateKeyError
    return value


_FAST: Final = json.JSONDecoder(object_pairs_hook=_unique)
_SLOW: Final = json.JSONDecoder(object_pairs_hook=_Pairs)


def parse_value(text: str, start: int = 0) -> tuple[Any, int, frozenset[str]]:
    """One JSON value.

    Args:
        text: The text that holds it.
        start: Where it begins; no white space is skipped.

    Returns:
        The value, the position after it, and the dotted paths of duplicate keys.

    Raises:
        ValueError: Not valid JSON (`json.JSONDecodeError`), or an integer with more digits than
            Python converts.
        RecursionError: Nested more deeply than Python's parser goes.
    """
    try:
        value, end = _FAST.raw_decode(text, start)
        keys = NO_KEYS
    except _DuplicateKeyError:
        pairs, end = _SLOW.raw_decode(text, start)
        found: set[str] = set()
        value = _plain(pairs, "", found)
        keys = frozenset(found)
    if text.find("\\u", start, end) >= 0:
        value = _without_surrogates(value)
    return value, end, keys


def _plain(value: Any, path: str, found: set[str]) -> Any:
    """Pairs as a dict, the last of a key's values kept; notes the paths of duplicates."""
    if isinstance(value, _Pairs):
        result: dict[str, Any] = {}
        for key, item in value:
            inner = f"{path}.{key}" if path else key
            if key in result:
                found.add(inner)
            result[key] = _plain(item, inner, found)
        return result
    if isinstance(value, list):
        return [_plain(item, f"{path}[]", found) for item in value]
    return value


def _without_surrogates(value: Any) -> Any:
    """Half a character (a text cut between two escapes) as U+FFFD: it cannot be encoded."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def as_row(line: int, value: Any, keys: frozenset[str] = NO_KEYS) -> Row:
    """A parsed value as a row; only an object is a record."""
    if isinstance(value, dict):
        return Row(line, value, "", keys)
    names = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return Row(line, None, f"is {names.get(type(value), 'a number')}, not an object")


def read_lines(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """JSON Lines: an object a line; several objects on one line are several rows.

    A line that cannot be parsed becomes a row without a value. Empty lines are no rows.
    """
    for number, line in lines:
        text = line.strip()
        if not text:
            continue
        try:
            value, end, keys = parse_value(text)
        except (ValueError, RecursionError) as error:
            if not text.startswith("\ufeff"):
                yield Row(number, None, why_not(error, text))
                continue
            end = 0
        if end == len(text):
            yield as_row(number, value, keys)
        else:
            yield from _several(number, text)


def _several(number: int, text: str) -> Iterator[Row]:
    """The values of a line that holds more than one, or something after the first."""
    position = 0
    while (position := _skip_space(text, position)) < len(text):
        try:
            value, end, keys = parse_value(text, position)
        except (ValueError, RecursionError) as error:
            yield Row(number, None, why_not(error, text))
            return
        if not isinstance(value, dict):
            yield Row(number, None, "not valid JSON: something other than an object in the line")
            return
        yield as_row(number, value, keys)
        position = end


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def why_not(error: Exception, text: str) -> str:
    """Why a record could not be parsed, without quoting it."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return "holds an integer with too many digits"
    if is_cut(error, text):
        return "the record is cut off before its end"
    return f"not valid JSON: {error.msg}"


def is_cut(error: json.JSONDecodeError, text: str) -> bool:
    """Whether parsing failed for want of more text rather than for a fault in it."""
    # A literal or an escape cut in two is reported where it starts; -Infinity and a pair of
    # \uXXXX escapes are the longest, and no closing bracket can be behind a cut.
    rest = text[error.pos :]
    cut_token = len(rest) <= 12 and "}" not in rest and "]" not in rest
    return cut_token or not rest.strip() or error.msg.startswith("Unterminated string")


class Window:
    """The piece of a text that is being parsed; the one mutable thing here.

    Attributes:
        text: What is held.
        pos: Where the next value begins in it.
        line: The 1-based line of that position in the whole text.
        ended: Whether the whole text has been seen.
    """

    def __init__(self, texts: Iterable[str], where: str, limit: int = RECORD_LIMIT) -> None:
        self.text = ""
        self.pos = 0
        self.line = 1
        self.ended = False
        self.where = where
        self._passed = 0  # characters dropped from the front
        self._texts = iter(texts)
        self._limit = limit

    @property
    def place(self) -> str:
        """``file:line`` of the position."""
        return f"{self.where}:{self.line}"

    def advance(self, to: int) -> None:
        """Moves on to a position of `text`."""
        self.line += self.text.count("\n", self.pos, to)
        self.pos = to

    def grow(self) -> None:
        """Drops what is behind and at least doubles what is ahead, so that work stays linear.

        Raises:
            InputError: More than one record's worth is held already.
        """
        rest = self.text[self.pos :]
        if len(rest) > self._limit:
            raise too_long(self.place, self._limit)
        self._passed += self.pos
        parts, size = [rest], len(rest)
        while size <= 2 * len(rest):
            piece = next(self._texts, None)
            if piece is None:
                self.ended = True
                break
            parts.append(piece)
            size += len(piece)
        self.text, self.pos = "".join(parts), 0

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            self.advance(_skip_space(self.text, self.pos))
            if self.pos < len(self.text):
                return self.text[self.pos]
            if self.ended:
                return ""
            self.grow()

    def take(self) -> tuple[Any, frozenset[str]]:
        """The value at the position, which is moved behind it.

        Raises:
            ValueError: As `parse_value`; the position stays.
            RecursionError: As `parse_value`.
            InputError: The value is longer than the limit.
        """
        while True:
            try:
                value, end, keys = parse_value(self.text, self.pos)
            except json.JSONDecodeError as error:
                if self.ended or not is_cut(error, self.text):
                    raise
            else:
                # A number at the very end may go on in the next piece.
                if end < len(self.text) or self.ended or isinstance(value, dict | list | str):
                    self.advance(end)
                    return value, keys
            self.grow()

    def mend_comma(self, error: Exception) -> str:
        """Blanks a comma before a closing bracket, where the parser stopped for it.

        Returns:
            What was mended; empty when the fault is another one.
        """
        if not isinstance(error, json.JSONDecodeError):
            return ""
        # Python 3.13 stops at the comma, older ones at the bracket behind it.
        comma = self.text.rfind(",", self.pos, error.pos + 1)
        found = _TRAILING_COMMA.match(self.text, max(comma, 0))
        if comma < 0 or not found or error.pos >= found.end():
            return ""
        self.text = f"{self.text[:comma]} {self.text[comma + 1 :]}"
        line = self.line + self.text.count("\n", self.pos, comma)
        bracket = found.group()[-1]
        return f"trailing comma before {bracket} at character {self._passed + comma}, line {line}"

    def next_object(self) -> bool:
        """Moves on to where the next object seems to begin; False when there is none."""
        self.advance(min(self.pos + 1, len(self.text)))
        while True:
            if found := _NEXT_OBJECT.search(self.text, self.pos):
                self.advance(found.end())
                return True
            if self.ended:
                self.advance(len(self.text))
                return False
            self.advance(max(self.pos, len(self.text) - 64))
            self.grow()


def read_document(window: Window, *, by_number: bool) -> Iterator[Row]:
    """The records of a JSON text: the items of its arrays and its bare objects, in order.

    Args:
        window: The text, at a value or white space.
        by_number: Number the rows instead of giving their lines (JSON written on one line).

    Raises:
        InputError: An array is broken in its middle, so that what follows cannot be told apart.
    """
    for number, row in enumerate(_values(window), 1):
        yield Row(number, row.value, row.why, row.duplicate_keys) if by_number else row


def _values(window: Window) -> Iterator[Row]:
    while first := window.peek():
        if first == "[":
            window.advance(window.pos + 1)
            yield from _items(window)
            continue
        if first == ",":
            raise InputError(
                "a comma stands between objects that are in no array",
                where=window.place,
                hint="Put [ before the first object and ] behind the last",
            )
        line = window.line
        try:
            value, keys = window.take()
        except (ValueError, RecursionError) as error:
            yield Row(line, None, why_not(error, window.text))
            window.next_object()
        else:
            yield as_row(line, value, keys)


def _items(window: Window) -> Iterator[Row]:
    """The items of an array whose opening bracket has been passed."""
    while (first := window.peek()) not in ("", "]"):
        line = window.line
        try:
            value, keys = window.take()
        except (ValueError, RecursionError) as error:
            cut = isinstance(error, json.JSONDecodeError) and is_cut(error, window.text)
            if not cut:
                raise _broken(window, error) from error
            yield Row(line, None, "the file ends inside this record")
            window.advance(len(window.text))
            return
        yield as_row(line, value, keys)
        first = window.peek()
        if first == ",":
            window.advance(window.pos + 1)
        elif first not in ("", "]"):
            raise _broken(window, None)
    if first:
        window.advance(window.pos + 1)
    else:
        yield Row(window.line, None, "the file ends inside the array: records may be missing")


def _broken(window: Window, error: Exception | None) -> InputError:
    line = window.line
    why = "a comma or the closing bracket is missing"
    if isinstance(error, json.JSONDecodeError):
        line += window.text.count("\n", window.pos, error.pos)
        why = f"{error.msg}, column {error.colno}" if "\n" in window.text else error.msg
    elif error is not None:
        why = why_not(error, window.text)
    return InputError(
        "the JSON is broken here, and what follows cannot be told apart",
        where=f"{window.where}:{line}",
        why=why,
        hint="Export again, or as JSON Lines (one object a line)",
    )


def first_object(window: Window) -> tuple[Row, tuple[str, ...]]:
    """The first object of a document, trailing commas inside it mended.

    Args:
        window: The text, its position at the object's opening brace.

    Returns:
        The row, without a value if it cannot be parsed, and what was mended. The position is
        behind the object, or behind what could not be parsed.

    Raises:
        InputError: It cannot be parsed and no other object follows.
    """
    line = window.line
    notes: list[str] = []
    while True:
        try:
            value, keys = window.take()
        except (ValueError, RecursionError) as error:
            note = window.mend_comma(error) if len(notes) < _MAX_REPAIRS else ""
            if note:
                notes.append(note)
                continue
            broken, why = _broken(window, error), why_not(error, window.text)
            if not window.next_object():
                raise broken from error
            return Row(line, None, why), tuple(notes)
        return as_row(line, value, keys), tuple(notes)
