"""Times, durations and counts that are written another way, or that no request can have."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.measure import inspect
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic
from slotwise_workflows.traffic.fields import AmbiguousNumberError, seconds, with_dot

DAY = 1_788_220_800  # 2026-09-01T00:00:00Z
S = 10**9


def read_text(folder: Path, text: str, options: ReadOptions | None = None) -> Traffic:
    path = folder / "log.csv"
    path.write_text(text, encoding="utf-8")
    traffic = read_traffic([str(path)], options or ReadOptions())
    assert traffic.rows == len(traffic) + sum(traffic.excluded.values())
    inspect(traffic, 0)  # whatever was read, figures can be had of it
    return traffic


# --- decimal commas ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "decimal", "dotted"),
    [
        ("0,653", "auto", "0.653"),
        ("0,653", ",", "0.653"),
        ("1,653", ",", "1.653"),
        ("1,653", ".", "1653"),
        ("1790000000,653", "auto", "1790000000.653"),
        ("1.790.000.000,653", "auto", "1790000000.653"),
        ("1.790.000.000,653", ",", "1790000000.653"),
        ("1,790,000,000.653", ".", "1790000000.653"),
        ("1,790,000,000.653", "auto", "1790000000.653"),
        ("1.790.000.000", "auto", "1790000000"),
        ("1.024", ",", "1024"),
        ("1.024", "auto", "1.024"),
        ("1790000000.653", ",", "1790000000.653"),
        ("-0,5", ",", "-0.5"),
        ("2026-09-01 00:00:00,653", ",", "2026-09-01 00:00:00,653"),
    ],
)
def test_marks_of_a_number(text: str, decimal: str, dotted: str) -> None:
    assert with_dot(text, decimal) == dotted


def test_marks_that_tell_nothing_or_do_not_fit() -> None:
    with pytest.raises(AmbiguousNumberError):
        with_dot("1,024")
    for text, decimal in (("0.653", ","), ("12.5", ","), ("0,653", ".")):
        with pytest.raises(ValueError, match="decimal"):
            with_dot(text, decimal)


@pytest.mark.parametrize(
    ("value", "decimal", "expected"),
    [
        ("0,5", "auto", 0.5),
        ("1.024,5", "auto", 1024.5),
        ("1.024,5 ms", ",", 1.0245),
        ("1,5s", ",", 1.5),
        ("1.024", ",", 1024.0),
        ("1e300", "auto", None),
        ("1e999999999s", "auto", None),
        ("inf", "auto", None),
        (float("inf"), "auto", None),
        (10**400, "auto", None),
        ("9" * 100, "auto", None),
    ],
)
def test_durations(value: object, decimal: str, expected: float | None) -> None:
    assert seconds(value, decimal=decimal) == expected


def test_times_with_decimal_commas(tmp_path: Path) -> None:
    traffic = read_text(
        tmp_path,
        "arrival_s;latency_s;out_tokens\n0,653;1.234,5;10\n1,024;0,5;12\n1.000,5;2;7\n",
    )
    assert traffic.table["start_time"].to_list() == [653_000_000, 1_024_000_000, 1_000_500_000_000]
    assert traffic.table["e2e_latency"].to_list() == [1234.5, 0.5, 2.0]
    assert traffic.flags == ()


def test_epochs_with_decimal_commas(tmp_path: Path) -> None:
    traffic = read_text(
        tmp_path, f"timestamp;out_tokens\n{DAY},653;10\n1.788.220.801,000;10\n{DAY + 2};10\n"
    )
    assert traffic.clock == "epoch"
    start = traffic.table["start_time"].to_list()
    assert start == [DAY * S + 653_000_000, (DAY + 1) * S, (DAY + 2) * S]


def test_a_comma_that_tells_nothing_is_asked_about(tmp_path: Path) -> None:
    text = "arrival_s;out_tokens\n1,653;10\n2,024;12\n"
    with pytest.raises(InputError, match=r"log\.csv:2: arrival_s .*1,653.*--decimal"):
        read_text(tmp_path, text)
    comma = read_text(tmp_path, text, ReadOptions(decimal=","))
    assert comma.table["start_time"].to_list() == [1_653_000_000, 2_024_000_000]
    dot = read_text(tmp_path, text, ReadOptions(decimal="."))
    assert dot.table["start_time"].to_list() == [1653 * S, 2024 * S]


# --- what cannot be ------------------------------------------------------------------------------

NEVER_AS_DATES = [
    *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59", "3000-01-01", "0001-01-01T00:00:00Z"),
    *("0001-01-01", "1900-01-01", "12/31/9999 10:00:00", "31.12.9999 10:00:00"),
]
NEVER_AS_NUMBERS = [
    *("253402300799", "253402300799000", "-62135596800", "32503680000", "1e300", "1e19", "inf"),
    *("-inf", "-1e300"),
]


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("never", NEVER_AS_DATES)
def test_a_date_that_cannot_be(never: str, zone: str | None, tmp_path: Path) -> None:
    rows = "".join(f"2026-09-01T00:00:0{i}Z,10\n" for i in range(4))
    text = f"timestamp,out_tokens\n{rows}{never},5\n"
    traffic = read_text(tmp_path, text, ReadOptions(timezone=zone))
    assert traffic.excluded == {"unparsable": 1}
    assert traffic.table["start_time"].to_list() == [(DAY + i) * S for i in range(4)]
    assert [note.rpartition("log.csv:")[2] for note in traffic.notes] == [
        "6: its time is missing or cannot be read"
    ]


@pytest.mark.parametrize("never", [date for date in NEVER_AS_DATES if "1900" not in date])
def test_dates_none_of_which_can_be(never: str, tmp_path: Path) -> None:
    text = f"timestamp,out_tokens\n{never},5\n{never},6\n"
    traffic = read_text(tmp_path, text, ReadOptions(timezone="Asia/Tokyo"))
    assert traffic.clock is None
    assert traffic.flags == ("no_arrival:unreadable",)
    assert traffic.notes[0].endswith("log.csv:2: its arrival cannot be read, nor in 1 more")


@pytest.mark.parametrize(
    ("header", "row", "faulty"),
    [
        ("timestamp,out_tokens", "{},10", "{},10"),
        ("timestamp [s],out_tokens", "{},10", "{},10"),
        ("completed_at,latency_s,out_tokens", "{},2,10", "{},2,10"),
        ("completed_at,latency_s,out_tokens", "{},2,10", f"{DAY},{{}},10"),
        ("completed_at,latency_ms,out_tokens", "{},2,10", f"{DAY},{{}},10"),
    ],
)
@pytest.mark.parametrize("never", NEVER_AS_NUMBERS)
def test_a_number_that_cannot_be(
    never: str, header: str, row: str, faulty: str, tmp_path: Path
) -> None:
    rows = [row.format(DAY + i) for i in range(4)] + [faulty.format(never)]
    traffic = read_text(tmp_path, "\n".join([header, *rows]) + "\n")
    assert traffic.excluded == {"unparsable": 1}
    assert len(traffic) == 4
    assert any("log.csv:6: its time is missing or cannot be read" in note for note in traffic.notes)


def test_a_mapped_time_that_cannot_be(tmp_path: Path) -> None:
    rows = "".join(f"{1000 * i},10\n" for i in range(4))
    options = ReadOptions(map={"arrival": "when [ms]", "output_tokens": "out"})
    for never in ("1e300", "9" * 30, "4611686018428"):  # 2**62 nanoseconds are 4611686018427 ms
        traffic = read_text(tmp_path, f"when,out\n{rows}{never},5\n", options)
        assert traffic.excluded == {"unparsable": 1}
        assert traffic.table["start_time"].to_list() == [i * S for i in range(4)]


def test_a_fault_beside_the_arrival_is_unknown_and_told(tmp_path: Path) -> None:
    traffic = read_text(
        tmp_path,
        "timestamp,end_time,latency_s,prompt_tokens,out_tokens\n"
        f"{DAY},{DAY + 1},x,5,10\n{DAY + 1},{DAY + 4},1e300,1e30,12\n"
        f"{DAY + 2},253402300799,inf,7,3\n{DAY + 3},{DAY + 5},-1,8,4\n{DAY + 4},,2,9,5\n",
    )
    assert traffic.excluded == {}
    assert traffic.table["e2e_latency"].to_list() == [1.0, 3.0, None, 2.0, 2.0]
    assert traffic.table["gen_ai.usage.input_tokens"].to_list() == [5, None, 7, 8, 9]
    assert [note.rpartition("log.csv:")[2] for note in traffic.notes] == [
        "2: its latency cannot be read, nor in 3 more",
        "3: its prompt tokens cannot be read",
        "4: its end cannot be read",
    ]


def test_counts_that_cannot_be(tmp_path: Path) -> None:
    traffic = read_text(
        tmp_path, "n,out_tokens\na,10\nb,1e30\nc,99999999999999999999\nd,inf\ne,20\n"
    )
    assert traffic.excluded == {"unparsable": 3}
    assert traffic.table["gen_ai.usage.output_tokens"].to_list() == [10, 20]


def test_times_that_nobody_can_read(tmp_path: Path) -> None:
    traffic = read_text(tmp_path, "arrival,out_tokens\nsoon,10\nlater,12\n,7\n")
    assert traffic.flags == ("no_arrival:unreadable",)
    assert traffic.notes[0].endswith("log.csv:2: its arrival cannot be read, nor in 1 more")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
@pytest.mark.parametrize("never", [2**62, -(2**62), 2**63 - 1, -(2**63) + 1])
def test_parquet_times_that_cannot_be(
    never: int, unit: str, zone: str | None, tmp_path: Path
) -> None:
    per_s = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    counts = [DAY * per_s, None, (DAY + 1) * per_s, (DAY + 2) * per_s, never]
    times = pl.Series("timestamp", counts, dtype=pl.Int64).cast(pl.Datetime(unit, zone))  # type: ignore[arg-type]
    path = tmp_path / "log.parquet"
    pl.DataFrame([times, pl.Series("out_tokens", [1, 2, 3, 4, 5])]).write_parquet(path)
    traffic = read_traffic([str(path)])
    assert traffic.excluded == {"unparsable": 2}
    assert traffic.table["start_time"].to_list() == [DAY * S, (DAY + 1) * S, (DAY + 2) * S]


def test_parquet_days_that_cannot_be(tmp_path: Path) -> None:
    days = pl.Series("timestamp", [20_000, 20_001, 20_002, 2**31 - 1]).cast(pl.Int32).cast(pl.Date)
    path = tmp_path / "log.parquet"
    pl.DataFrame([days, pl.Series("out_tokens", [1, 2, 3, 4])]).write_parquet(path)
    traffic = read_traffic([str(path)])
    assert traffic.excluded == {"unparsable": 1}
    assert traffic.table["start_time"].to_list() == [(20_000 + i) * 86400 * S for i in range(3)]
