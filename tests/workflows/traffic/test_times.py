"""Columns of times, exactly."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import times
from slotwise_workflows.traffic.stamps import SECOND
from slotwise_workflows.traffic.times import Column, resolution_s, resolve, rfc3339

DAY_S = 1_788_220_800  # 2026-09-01T00:00:00Z


def read(values: Sequence[object], **options: object) -> Column:
    return resolve(values, lambda i: f"f:{i + 1}", name="ts", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (DAY_S, DAY_S * SECOND),
        (str(DAY_S), DAY_S * SECOND),
        (DAY_S * 1000 + 250, DAY_S * SECOND + 250_000_000),
        (DAY_S * 10**6 + 1, DAY_S * SECOND + 1000),
        (DAY_S * 10**9 + 1, DAY_S * SECOND + 1),
        (f"{DAY_S}.000000001", DAY_S * SECOND + 1),
        (1787267980.0827403, 1787267980082740300),
        (Decimal("1787267980.0827403"), 1787267980082740300),
        ("2026-09-01T00:00:00Z", DAY_S * SECOND),
        ("2026-09-01 00:00:00.1234567", DAY_S * SECOND + 123_456_700),
        ("2026-09-01T00:00:00.123456789+00:00", DAY_S * SECOND + 123_456_789),
        ("2026-09-01T00:00:00.1234567891Z", DAY_S * SECOND + 123_456_789),
        ("2026-09-01 00:00:00 UTC", DAY_S * SECOND),
        ("2026-09-01 00:00:00 +00:00", DAY_S * SECOND),
        ("2026-09-01T09:00:00+09:00", DAY_S * SECOND),
        ("2026-08-31T19:00:00-0500", DAY_S * SECOND),
        ("2026-09-01T00:00", DAY_S * SECOND),
        ("2026-09-01", DAY_S * SECOND),
        ("2026/09/01 00:00:00", DAY_S * SECOND),
        ("01.09.2026 00:00:00", DAY_S * SECOND),
        (datetime(2026, 9, 1, tzinfo=UTC), DAY_S * SECOND),
        (datetime(2026, 9, 1, 0, 0, 0, 5, tzinfo=UTC), DAY_S * SECOND + 5000),
    ],
)
def test_one_moment(value: object, ns: int) -> None:
    column = read([value])
    assert column.ns == [ns]
    assert column.clock == "epoch"


@pytest.mark.parametrize(
    "value", ["soon", "2026-13-01T00:00:00Z", "1.2.3", "x" * 99, "NaT", [], {}]
)
def test_no_moment_is_told(value: object) -> None:
    column = read([value, DAY_S] if value != "2026-13-01T00:00:00Z" else [value, "2026-09-01"])
    assert column.ns[0] is None
    assert column.unreadable == (() if value is None else (0,))


@given(
    st.datetimes(datetime(1991, 1, 1), datetime(2099, 1, 1)),  # noqa: DTZ001
    st.integers(-14 * 60, 14 * 60),
    st.integers(0, 999),
)
def test_iso_agrees_with_the_standard_library(naive: datetime, minutes: int, nanos: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    seconds = round(
        (moment.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    )
    fraction = f".{naive.microsecond:06d}{nanos:03d}"
    offset = moment.strftime("%z")
    text = naive.replace(microsecond=0).isoformat() + fraction + f"{offset[:3]}:{offset[3:]}"
    want = seconds * SECOND + naive.microsecond * 1000 + nanos
    assert read([text]).ns == [want]
    assert read([rfc3339(want)]).ns == [want]


@given(st.lists(st.integers(700_000_000, 4_000_000_000), min_size=1, max_size=20))
def test_unit_is_read_off_the_digits(seconds: list[int]) -> None:
    for factor in (1, 10**3, 10**6, 10**9):
        column = read([s * factor for s in seconds])
        assert column.ns == [s * SECOND for s in seconds]
        assert column.clock == "epoch"


def test_change_of_unit_is_refused_at_its_place() -> None:
    with pytest.raises(
        InputError, match=r"f:3: the unit of ts changes at data row 3 \(seconds -> milliseconds\)"
    ):
        read([DAY_S, DAY_S + 1, DAY_S * 1000])
    with pytest.raises(InputError, match="relative clock"):
        read([DAY_S, 17])


def test_relative_clock() -> None:
    column = read([0, 3000, 6001], unit="ms")
    assert (column.clock, column.ns, column.unit_assumed) == (
        "relative",
        [0, 3 * SECOND, 6001 * 10**6],
        False,
    )
    assert read([0.5, 17], unit="auto").unit_assumed
    # A relative clock in ns passes through numbers that would be seconds since 1970.
    assert read([46926808, 3555912370], unit="ns").ns == [46926808, 3555912370]


def test_unit_that_was_said_wrongly_is_refused() -> None:
    with pytest.raises(InputError, match="--time-unit ms"):
        read([DAY_S * 1000], unit="s")


def test_zero_of_an_epoch_column_is_missing() -> None:
    assert read([DAY_S, 0]).ns == [DAY_S * SECOND, None]


def test_dates_and_numbers_do_not_mix() -> None:
    with pytest.raises(InputError, match="f:2: ts holds dates and numbers"):
        read(["2026-09-01T00:00:00Z", DAY_S])


def test_naive_times() -> None:
    assert read(["2026-09-01 00:00:00"]).assumed_utc
    assert not read(["2026-09-01 00:00:00"], utc=True).assumed_utc
    assert not read(["2026-09-01 00:00:00", "2026-09-01 00:00:01Z"]).assumed_utc
    assert read(["2026-09-01 00:00:00", "2026-09-01 00:00:01+09:00"]).assumed_utc
    tokyo = read(["2026-09-01 09:00:00"], zone=ZoneInfo("Asia/Tokyo"))
    assert tokyo.ns == [DAY_S * SECOND]
    assert not tokyo.assumed_utc


def test_repeated_hour_forwards_and_backwards() -> None:
    local = [
        "2026-10-25 02:59:50",
        "2026-10-25 02:00:10",
        "2026-10-25 02:30:00",
        "2026-10-25 03:00:00",
    ]
    berlin = ZoneInfo("Europe/Berlin")
    forwards = read(local, zone=berlin).ns
    assert [b - a for a, b in itertools.pairwise(forwards)] == [  # type: ignore[operator]
        20 * SECOND,
        1790 * SECOND,
        1800 * SECOND,
    ]
    whole_day = ["2026-10-25 05:00:00", "2026-10-25 01:00:00"]
    assert read(whole_day, zone=berlin).ns == list(reversed(read(whole_day[::-1], zone=berlin).ns))


def test_clock_set_back() -> None:
    assert read(["2026-10-25 02:59:50", "2026-10-25 02:00:10", "2026-10-25 02:30:00"]).set_back
    assert not read(["2026-10-25 02:59:50", "2026-10-25 01:00:10", "2026-10-25 02:30:00"]).set_back
    assert not read(
        ["2026-10-25 02:59:50Z", "2026-10-25 02:00:10Z", "2026-10-25 02:30:00Z"]
    ).set_back


@pytest.mark.parametrize(
    ("values", "ambiguous", "first"),
    [
        (["9/1/2026 0:00", "9/2/2026 0:00"], True, None),
        (["9/1/2026 0:00", "9/13/2026 0:00"], False, DAY_S),
        (["1/9/2026 0:00", "13/9/2026 0:00"], False, DAY_S),
        (["13/9/2026 0:00", "9/13/2026 0:00"], True, None),
        (["9/1/26 12:00:00 AM", "9/13/26 1:00:00 PM"], False, DAY_S),
    ],
)
def test_order_of_day_and_month(values: list[object], ambiguous: bool, first: int | None) -> None:
    column = read(values)
    assert column.ambiguous is ambiguous
    assert column.ns[0] == (None if first is None else first * SECOND)
    assert read(values[:1], date_order="mdy").ambiguous is False


@pytest.mark.parametrize(
    ("stamps_ms", "step"),
    [
        ([0, 0, 0, 3000, 3000, 6001, 6001, 8999], 3),
        ([0, 0, 1000, 5000], 1),
        ([0, 1000, 2000], 0),
        ([0, 60_000, 60_000], 60),
        ([1, 2, 3, 3, 4, 5, 6, 8], 0),
        ([5, 5], 0),
        ([], 0),
    ],
)
def test_resolution(stamps_ms: list[int], step: float) -> None:
    assert resolution_s([ms * 10**6 for ms in stamps_ms]) == step


def test_resolution_of_the_written_form() -> None:
    assert read(["2026-09-01 00:00", "2026-09-01 00:07"]).written_to_s == 60
    assert read(["2026-09-01", "2026-09-02"]).written_to_s == 86400
    assert read(["2026-09-01 00:00", "2026-09-01 00:07:01"]).written_to_s == 0


@given(st.lists(st.none() | st.integers() | st.floats() | st.text() | st.booleans(), max_size=6))
def test_nothing_breaks_a_column(values: list[object]) -> None:
    try:
        column = times.resolve(values, lambda i: str(i))
    except InputError:
        return
    assert len(column.ns) == len(values)
    assert all(ns is None or isinstance(ns, int) for ns in column.ns)


@pytest.mark.parametrize(
    ("ns", "told"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_500_000_000, "1970-01-01T00:00:01.500Z"),
        (1_000_010_000, "1970-01-01T00:00:01.000010Z"),
        (1_000_000_001, "1970-01-01T00:00:01.000000001Z"),
        (-1_000_000, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_told_in_thousandths_of_thousandths(ns: int, told: str) -> None:
    assert rfc3339(ns) == told
