"""What every container gives: rows, and a description of the container itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["jsonl", "json", "csv", "parquet", "text"]
Compression = Literal["", "gzip", "zstd"]

#: The longest single record or line that is held in memory, in characters.
RECORD_LIMIT: Final = 64 * 1024 * 1024

NO_KEYS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Row:
    """One record met in a file.

    Attributes:
        line: The 1-based line of the decompressed text where the record starts; the record's
            number where lines mean nothing (Parquet, JSON written on a single line).
        value: The record, or None when it cannot be parsed. JSON values are as Python parses
            them (integers exact, NaN and Infinity as floats), CSV cells are strings, the lines
            of a text log are ``{"line": text}``.
        why: Why it could not be parsed; never quotes the record, which may hold a prompt.
        duplicate_keys: Keys that a JSON object holds twice, as dotted paths; list steps are
            written ``[]``, as in ``requests[].Output Length``. The last value is the one kept.
    """

    line: int
    value: Mapping[str, Any] | None
    why: str = ""
    duplicate_keys: frozenset[str] = NO_KEYS


@dataclass(frozen=True, slots=True)
class Container:
    """How a file holds its records.

    Attributes:
        kind: ``json`` is a document (one object, an array, objects back to back), ``jsonl`` an
            object a line, ``text`` lines that are neither JSON nor a table.
        compression: What the bytes were wrapped in.
        encoding: ``utf-8``, ``utf-16-le`` or ``utf-16-be``; empty for Parquet.
        delimiter: Between the cells of a CSV row, else empty.
        columns: Names from the header of a CSV or Parquet file.
        decimal_comma: Some numeric column of a CSV file shows decimal commas (``1,5``), so a
            dot in another one groups thousands.
        repaired: Faults of the JSON that were mended, and where.
        truncated_at: Decompressed bytes before the cut, when a stream that ends early was
            allowed; None for a whole file.
    """

    kind: Kind
    compression: Compression = ""
    encoding: str = ""
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    decimal_comma: bool = False
    repaired: tuple[str, ...] = ()
    truncated_at: int | None = None
