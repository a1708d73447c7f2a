"""One written time: what it says, and what it leaves open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from slotwise_workflows.traffic.fields import is_missing

SECOND = 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION = re.compile(r"[.,](\d+)")
_SLASHED = re.compile(
    r"(\d{1,4})([/.])(\d{1,2})\2(\d{1,4})(?:,?[ T]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"\s*([AaPp]\.?[Mm]\.?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?"
)

DateOrder = Literal["", "mdy", "dmy"]


@dataclass(frozen=True, slots=True)
class Date:
    """A written date: nanoseconds as if it were UTC, and the offset it names, if any."""

    ns: int
    offset_s: int | None
    step_s: int = 0


@dataclass(frozen=True, slots=True)
class Slashed:
    """A date written with slashes or dots, day and month not yet told apart."""

    parts: tuple[int, int, int]
    mark: str
    hour: int
    minute: int
    second: int
    nanos: int
    offset_s: int | None
    step_s: int


def parse(value: Any) -> Decimal | int | Date | Slashed | None:
    """What one value says of time: a number, a date, a date to be told apart; or nothing."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        return _parse_text(value.strip())
    if isinstance(value, datetime):
        return _of_datetime(value)
    if isinstance(value, bool) or is_missing(value):
        return None
    if isinstance(value, float):
        return Decimal(repr(value)) if abs(value) < 1e20 else None
    if isinstance(value, Decimal):
        return value if value.is_finite() and abs(value) < Decimal(10) ** 20 else None
    return None


def _parse_text(text: str) -> Decimal | int | Date | Slashed | None:
    if len(text) > 64 or not text or not text[0].isascii():
        return None
    if len(text) > 9 and text[4] == "-" and text[7] == "-":
        return _parse_iso(text)
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    match = _SLASHED.fullmatch(text)
    if match:
        return _parse_slashed(match)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) < Decimal(10) ** 20 else None


def _parse_iso(text: str) -> Date | None:
    fraction = _FRACTION.search(text, 10)
    nanos = int(fraction[1][:9].ljust(9, "0")) if fraction else 0
    base = text[: fraction.start()] + text[fraction.end() :] if fraction else text
    if base.endswith(" UTC"):
        base = base[:-4] + "Z"
    base = base[:10] + base[10:].replace(" ", "T", 1).replace(" ", "") if len(base) > 10 else base
    try:
        moment = datetime.fromisoformat(base)
    except ValueError:
        return None
    offset = moment.utcoffset()
    to_the_minute = base[13:14] == ":" and base[16:17] != ":"
    step = 86400 if len(base) == 10 else 60 if to_the_minute else 0
    whole = _seconds_of(moment.replace(tzinfo=UTC))
    return Date(
        whole * SECOND + nanos,
        None if offset is None else round(offset.total_seconds()),
        0 if nanos else step,
    )


def _parse_slashed(match: re.Match[str]) -> Slashed | None:
    a, mark, b, c, hour, minute, second, fraction, half, offset = match.groups()
    if len(a) == 3 or len(c) == 3 or (len(a) != 4 and len(c) not in (2, 4)):
        return None
    if mark == "." and hour is None:
        return None  # 1.2.2026 is a date, 10.20.30 a version: without a time of day neither counts
    hours = int(hour or 0)
    if half:
        hours = hours % 12 + (12 if half[0] in "pP" else 0)
    third = int(c) + (2000 if len(c) == 2 and len(a) != 4 else 0)
    return Slashed(
        (int(a), int(b), third),
        mark,
        hours,
        int(minute or 0),
        int(second or 0),
        int((fraction or "0")[:9].ljust(9, "0")),
        _offset_of(offset),
        0 if second else 60 if minute else 86400,
    )


def _offset_of(text: str | None) -> int | None:
    if text is None:
        return None
    if text in ("Z", "UTC"):
        return 0
    digits = text[1:].replace(":", "")
    size = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -size if text[0] == "-" else size


def _of_datetime(value: datetime) -> Date:
    offset = value.utcoffset()
    whole = _seconds_of(value.replace(tzinfo=UTC, microsecond=0))
    seconds = None if offset is None else round(offset.total_seconds())
    return Date(whole * SECOND + value.microsecond * 1000, seconds)


def _seconds_of(moment: datetime) -> int:
    delta = moment - EPOCH
    return delta.days * 86400 + delta.seconds


def unslash(date: Slashed, order: DateOrder) -> Date | None:
    """The date, given the order of day and month; None where there is no such day."""
    a, b, c = date.parts
    year, month, day = (a, b, c) if a > 31 else (c, b, a) if order == "dmy" else (c, a, b)
    try:
        moment = datetime(year, month, day, date.hour, date.minute, date.second, tzinfo=UTC)
    except ValueError:
        return None
    return Date(_seconds_of(moment) * SECOND + date.nanos, date.offset_s, date.step_s)
