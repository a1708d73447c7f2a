"""Parquet in batches, with every digit of its values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers import open_container
from slotwise_workflows.traffic.containers.parquet import open_parquet


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    pl.DataFrame(
        {"ts": range(10), "n": [10 * n for n in range(10)], "model": ["a", None] * 5}
    ).write_parquet(path)
    return path


def test_rows_are_numbered_records(written: Path) -> None:
    container, rows = open_container(written)
    assert (container.kind, container.columns) == ("parquet", ("ts", "n", "model"))
    assert (container.encoding, container.compression, container.delimiter) == ("", "", "")
    assert [(row.line, row.value) for row in rows] == [
        (n + 1, {"ts": n, "n": 10 * n, "model": "a" if n % 2 == 0 else None}) for n in range(10)
    ]


@pytest.mark.parametrize("batch_rows", [1, 3, 10, 99])
def test_batches_do_not_change_the_rows(written: Path, batch_rows: int) -> None:
    _, rows = open_parquet(written, "x", batch_rows=batch_rows)
    assert [(row.line, row.value["n"]) for row in rows if row.value] == [
        (n + 1, 10 * n) for n in range(10)
    ]


def test_a_table_without_rows(tmp_path: Path) -> None:
    pl.DataFrame({"n": pl.Series([], dtype=pl.Int64)}).write_parquet(tmp_path / "p")
    container, rows = open_container(tmp_path / "p")
    assert (container.columns, list(rows)) == (("n",), [])


def test_values_keep_every_digit(tmp_path: Path) -> None:
    path = tmp_path / "p"
    ns = 1788220800123456789
    pl.DataFrame(
        [
            pl.Series("naive", [ns], dtype=pl.Datetime("ns")),
            pl.Series("zoned", [ns], dtype=pl.Datetime("ns", "Asia/Tokyo")),
            pl.Series("us", [datetime(2026, 9, 1, 0, 0, 0, 250000, tzinfo=UTC)]),
            pl.Series("day", [date(2026, 9, 1)]),
            pl.Series("took", [1_500_000_000], dtype=pl.Duration("ns")),
            pl.Series("price", [Decimal("0.000123")]),
            pl.Series("kind", ["chat"], dtype=pl.Categorical),
            pl.Series("blob", [b"\x80\x04"]),
            pl.Series("id", [ns]),
            pl.Series("usage", [{"prompt": 3, "output": [1, 2]}]),
        ]
    ).write_parquet(path)
    _, rows = open_container(path)
    assert [row.value for row in rows] == [
        {
            "naive": "2026-09-01T00:00:00.123456789",
            "zoned": "2026-09-01T00:00:00.123456789Z",
            "us": "2026-09-01T00:00:00.250Z",
            "day": "2026-09-01",
            "took": 1.5,
            "price": "0.000123",
            "kind": "chat",
            "blob": None,
            "id": ns,
            "usage": {"prompt": 3, "output": [1, 2]},
        }
    ]


@pytest.mark.parametrize("keep", [4, 8, 11, 100, -1])
def test_a_file_that_is_cut_is_refused(written: Path, keep: int) -> None:
    written.write_bytes(written.read_bytes()[:keep])
    with pytest.raises(InputError, match="Parquet file ends early"):
        open_container(written)


def test_a_damaged_file_is_refused_not_crashed_on(written: Path) -> None:
    data = written.read_bytes()
    for footer in (2**31, len(data), 40):
        written.write_bytes(data[:-8] + footer.to_bytes(4, "little") + b"PAR1")
        with pytest.raises(InputError, match="Parquet file cannot be read"):
            open_container(written)


def test_damage_in_the_middle_is_an_input_error_or_other_values(written: Path) -> None:
    data = written.read_bytes()
    for at in range(4, len(data) - 8, 7):
        written.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        message = "Parquet"
        try:
            assert all(row.value is not None for row in open_container(written)[1])
        except InputError as error:
            message = str(error)
        assert "Parquet" in message


def test_progress_reaches_the_size_of_the_file(written: Path) -> None:
    seen: list[int] = []
    _, rows = open_container(written, on_bytes=seen.append)
    list(rows)
    assert sum(seen) == written.stat().st_size


def test_a_name_with_wildcards_is_one_file(tmp_path: Path) -> None:
    frame: Any = pl.DataFrame({"n": [1]})
    frame.write_parquet(tmp_path / "a[1].parquet")
    _, rows = open_container(tmp_path / "a[1].parquet")
    assert len(list(rows)) == 1
