"""Parquet, in batches of bounded size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import polars as pl

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers.rows import Row

MAGIC: Final = b"PAR1"
_BATCH_BYTES: Final = 64 * 1024 * 1024
_SMALLEST_BATCH: Final = 1024
_YEAR_1_S, _YEAR_9999_S = -62_135_596_800, 253_402_300_799  # beyond them no date can be written
_NO_DATE: Final = pl.lit("out of range")
_HINT: Final = "Write or fetch the file again"


def open_parquet(
    path: Path,
    where: str,
    *,
    batch_rows: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> tuple[tuple[str, ...], Iterator[Row]]:
    """The columns and rows of a Parquet file; `Row.line` is the record's number.

    Times and dates come as ISO 8601 text with all their digits (up to nine of a second), those
    with a zone in UTC with ``Z``; decimals as text; durations in seconds; binary columns as None.

    Args:
        path: The file.
        where: Its name in error messages.
        batch_rows: Rows held at once; from the file's size when None.
        on_done: Called with the file's size in bytes after the last row.

    Raises:
        InputError: The file is cut off or damaged; also while rows are read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - 8, 0))
        tail = file.read()
    if size < 12 or not tail.endswith(MAGIC):
        raise InputError(
            "the Parquet file ends early", where=where, why="its footer is missing", hint=_HINT
        )
    if int.from_bytes(tail[:4], "little") > size - 12:
        raise _damaged(where, "its footer is longer than the file")
    try:
        scan = pl.scan_parquet(path, glob=False)
        schema = scan.collect_schema()
        height = int(scan.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _damaged(where, _first_line(error)) from error
    plain = scan.with_columns(_plain(name, kind) for name, kind in schema.items())
    if batch_rows is None:
        batches = max(1, math.ceil(size / _BATCH_BYTES))
        batch_rows = max(_SMALLEST_BATCH, math.ceil(height / batches))
    rows = _rows(plain, height, batch_rows, where)
    return tuple(schema), rows if on_done is None else _then(rows, on_done, size)


def _then(rows: Iterator[Row], on_done: Callable[[int], None], size: int) -> Iterator[Row]:
    yield from rows
    on_done(size)


def _rows(scan: pl.LazyFrame, height: int, batch_rows: int, where: str) -> Iterator[Row]:
    number = 1
    for start in range(0, height, batch_rows):
        try:
            batch = scan.slice(start, batch_rows).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise _damaged(where, _first_line(error)) from error
        for number, value in enumerate(batch.iter_rows(named=True), number):  # noqa: B020
            yield Row(number, value)
        number += 1


def _plain(name: str, kind: pl.DataType) -> pl.Expr:
    """A column as values that keep every digit in plain Python."""
    column = pl.col(name)
    if isinstance(kind, pl.Datetime):
        per_s = {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.time_unit]
        count = column.to_physical()
        held = count.is_between(_YEAR_1_S * per_s, _YEAR_9999_S * per_s)
        zone = "" if kind.time_zone is None else "Z"
        stamp = pl.when(held).then(count).cast(pl.Datetime(kind.time_unit))
        text = stamp.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.f{zone}")
        return pl.when(held | count.is_null()).then(text).otherwise(_NO_DATE).alias(name)
    if isinstance(kind, pl.Date):
        days = column.to_physical()
        held = days.is_between(_YEAR_1_S // 86400, _YEAR_9999_S // 86400)
        text = pl.when(held).then(column).cast(pl.String)
        return pl.when(held | days.is_null()).then(text).otherwise(_NO_DATE).alias(name)
    if isinstance(kind, pl.Duration):
        return (column.dt.total_nanoseconds() / 1e9).alias(name)
    if isinstance(kind, pl.Time | pl.Decimal | pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if isinstance(kind, pl.Binary):
        return pl.lit(None).alias(name)
    return column


def _damaged(where: str, why: str) -> InputError:
    return InputError("the Parquet file cannot be read", where=where, why=why, hint=_HINT)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
