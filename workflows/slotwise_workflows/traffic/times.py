"""Reading a column of times, exactly, in integer nanoseconds.

What a time means is decided on the whole column: the unit of numbers by how many digits they have,
the order of day and month by the values above twelve, and whether a naive clock was set back by
what comes after what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo
from decimal import Decimal
from itertools import pairwise
from statistics import median
from typing import Any, Literal

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.fields import is_missing
from slotwise_workflows.traffic.stamps import (
    EPOCH,
    SECOND,
    Date,
    DateOrder,
    Slashed,
    parse,
    unslash,
)

PER_UNIT = {"s": SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FIRST_EPOCH_S, _LAST_EPOCH_S = 631_152_000, 4_102_444_800  # 1990 .. 2100
_MOST_NS = 2**62 - 1  # so that the distance of any two is a number of 64 bits
Unit = Literal["auto", "s", "ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about times: the unit of numbers, the zone of times that name none."""

    unit: Unit = "auto"
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of times.

    Attributes:
        ns: Nanoseconds, None where missing or unreadable; since 1970 if `clock` is ``epoch``.
        clock: What the numbers count from.
        unreadable: Positions that hold something that is no time.
        assumed_utc: Whether times without a zone were taken as UTC.
        set_back: Whether a naive clock was set back within the column, so that it is no clock.
        ambiguous: Whether day and month cannot be told apart, so that nothing was read.
        unit_assumed: Whether numbers were taken as seconds for want of anything that tells.
        written_to_s: Seconds that one step of the written form stands for, 0 if below one second.
    """

    ns: list[int | None]
    clock: Literal["epoch", "relative"]
    unreadable: tuple[int, ...] = ()
    assumed_utc: bool = False
    set_back: bool = False
    ambiguous: bool = False
    unit_assumed: bool = False
    written_to_s: int = 0


def resolve(
    values: Sequence[Any],
    place: Callable[[int], str],
    *,
    name: str = "time",
    unit: Unit = "auto",
    zone: tzinfo | None = None,
    utc: bool = False,
    date_order: DateOrder = "",
    begins: frozenset[int] = frozenset(),
    clock: Literal["epoch", "relative"] | None = None,
) -> Column:
    """Reads a whole column.

    Args:
        values: What the log holds, in its order.
        place: ``file:line`` of a position, for errors.
        name: The column's name, for errors.
        unit: Unit of numbers; ``auto`` reads it off their digits.
        zone: The zone of times that name none; None is UTC.
        utc: Whether UTC is a fact and not an assumption.
        date_order: How ``9/1/2026`` is to be read; empty refuses to guess.
        begins: Positions at which another file begins: no clock is set back there.
        clock: What the log itself says that numbers of a known unit count from; None reads it off
            their digits.

    Raises:
        InputError: The unit changes within the column, or dates and numbers mix.
    """
    if all(v is None or type(v) is int for v in values):
        numbers: list[Decimal | int | None] = list(values)
        dates: list[Date | Slashed | None] = []
    else:
        parsed = [parse(value) for value in values]
        numbers = [p if isinstance(p, Decimal | int) else None for p in parsed]
        dates = [p if isinstance(p, Date | Slashed) else None for p in parsed]
    first_number = next((i for i, number in enumerate(numbers) if number is not None), None)
    first_date = next((i for i, date in enumerate(dates) if date is not None), None)
    if first_number is not None and first_date is not None:
        raise InputError(
            f"{name} holds dates and numbers",
            where=place(max(first_number, first_date)),
            why="they cannot be told to be the same clock",
            hint="convert the column to one form",
        )
    if first_date is not None:
        column = _from_dates(dates, zone, utc=utc, date_order=date_order, begins=begins)
    else:
        column = _from_numbers(numbers, place, name, unit, clock)
    unreadable = tuple(
        i
        for i, (value, ns) in enumerate(zip(values, column.ns, strict=True))
        if ns is None and not is_missing(value) and not column.ambiguous
    )
    return replace(column, unreadable=unreadable)


def resolution_s(ns: Sequence[int], written_to_s: int = 0) -> int | float:
    """The step of the clock in seconds where it is coarse enough to matter, else 0.

    A clock shows its step by equal stamps: where there are none it is fine enough. Stamps that are
    all whole minutes or seconds tell the step themselves; else, where equal stamps are the rule,
    the usual distance between different ones is it.
    """
    if written_to_s:
        return written_to_s
    distinct = sorted(set(ns))
    if len(distinct) == len(ns) or len(distinct) < 2:
        return 0
    for step in (86400, 3600, 60, 1):
        if all(stamp % (step * SECOND) == 0 for stamp in distinct):
            return step
    if len(distinct) > 0.7 * len(ns):
        return 0
    usual = median(b - a for a, b in pairwise(distinct)) / SECOND
    typical_gap = (distinct[-1] - distinct[0]) / SECOND / (len(ns) - 1)
    if usual <= typical_gap:
        return 0
    return round(usual) if usual >= 1 else float(f"{usual:.2g}")


def is_descending(ns: Sequence[int]) -> bool:
    """Whether the stamps run backwards from end to end, as newest-first exports do."""
    return len(ns) > 1 and all(b <= a for a, b in pairwise(ns)) and ns[0] != ns[-1]


def rfc3339(ns: int) -> str:
    """Nanoseconds since 1970 as RFC 3339 in UTC, to the second, or 3, 6 or 9 digits behind it."""
    whole, rest = divmod(ns, SECOND)
    fraction = f".{rest:09d}".removesuffix("000").removesuffix("000") if rest else ""
    return (EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def within(ns: int) -> int | None:
    """A stamp that 64 bits hold, and its distance to any other; None where they do not."""
    return ns if abs(ns) <= _MOST_NS else None


# --- numbers -------------------------------------------------------------------------------------


def _from_numbers(
    numbers: Sequence[Decimal | int | None],
    place: Callable[[int], str],
    name: str,
    unit: Unit,
    clock: Literal["epoch", "relative"] | None,
) -> Column:
    if clock is not None and unit != "auto":
        return Column(_in_ns(numbers, unit), clock)
    digits = [None if number is None else _unit_by_digits(number) for number in numbers]
    if any(digits) and 2 * sum(map(_is_beyond, numbers)) < len(numbers):
        # Among moments of our days those of no days are faults of their rows, not another unit.
        numbers = [None if _is_beyond(number) else number for number in numbers]
    if unit not in ("auto", *digits):
        # Counted in the unit that was said, and in it none is a moment of our days: no epoch.
        _refuse_too_many_digits(numbers, digits, place, name, unit)
        epoch = None
    else:
        epoch = _one_unit(numbers, digits, place, name)
    ns = _in_ns(numbers, epoch or ("s" if unit == "auto" else unit))
    if epoch:
        ns = [stamp or None for stamp in ns]  # 0 among dates of our days stands for none
    return Column(
        ns,
        "epoch" if epoch else "relative",
        unit_assumed=unit == "auto" and epoch is None and any(ns),
    )


def _in_ns(numbers: Sequence[Decimal | int | None], unit: Unit) -> list[int | None]:
    factor = PER_UNIT[unit]
    exact = (
        None if n is None else n * factor if type(n) is int else round(n * factor) for n in numbers
    )
    return [None if ns is None else within(ns) for ns in exact]


def _one_unit(
    numbers: Sequence[Decimal | int | None],
    digits: Sequence[Unit | None],
    place: Callable[[int], str],
    name: str,
) -> Unit | None:
    """The unit of all numbers by their digits; None for a relative clock. Zeros tell nothing."""
    seen: Unit | None = None
    first = True
    for i, number in enumerate(numbers):
        if not number:
            continue
        if first:
            seen, first = digits[i], False
        elif digits[i] != seen:
            raise InputError(
                f"the unit of {name} changes at data row {i + 1} "
                f"({_unit_name(seen)} -> {_unit_name(digits[i])})",
                where=place(i),
                why="two exports seem to be joined",
                hint="convert the column to one unit",
            )
    return seen


def _refuse_too_many_digits(
    numbers: Sequence[Decimal | int | None],
    digits: Sequence[Unit | None],
    place: Callable[[int], str],
    name: str,
    unit: Unit,
) -> None:
    order = list(PER_UNIT)
    for i, told in enumerate(digits):
        if told is not None and order.index(told) > order.index(unit):
            raise InputError(
                f"{name} holds {numbers[i]}, which has the digits of {UNIT_NAMES[told]} since 1970",
                where=place(i),
                why=f"as {UNIT_NAMES[unit]} it would be no time of our days",
                hint=f"use --time-unit {told} or auto",
            )


def _unit_by_digits(number: Decimal | int) -> Unit | None:
    """The unit in which a number is a moment between 1990 and 2100; None where it is in none."""
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        if _FIRST_EPOCH_S * factor <= number < _LAST_EPOCH_S * factor:
            return unit  # type: ignore[return-value]
    return None


def _is_beyond(number: Decimal | int | None) -> bool:
    """Whether a number is a moment of our days in no unit, and no small count since a start."""
    return (
        number is not None and not 0 <= number < _FIRST_EPOCH_S and _unit_by_digits(number) is None
    )


def _unit_name(unit: Unit | None) -> str:
    return "a relative clock" if unit is None else UNIT_NAMES[unit]


# --- dates ---------------------------------------------------------------------------------------


def _from_dates(
    dates: Sequence[Date | Slashed | None],
    zone: tzinfo | None,
    *,
    utc: bool,
    date_order: DateOrder,
    begins: frozenset[int],
) -> Column:
    slashed = [date for date in dates if isinstance(date, Slashed)]
    steps = [date.step_s for date in dates if date is not None]
    written_to_s = min(steps) if steps else 0
    order = date_order or (_order_of(slashed) if slashed else "mdy")
    if not order:
        nothing: list[int | None] = [None] * len(dates)
        return Column(nothing, "epoch", ambiguous=True, written_to_s=written_to_s)
    told = (unslash(date, order) if isinstance(date, Slashed) else date for date in dates)
    plain = _without_faults(list(told))
    naive = [date for date in plain if date is not None and date.offset_s is None]
    if zone is not None and naive:
        return Column(_in_zone(plain, zone), "epoch", written_to_s=written_to_s)
    named_utc = any(d is not None and d.offset_s == 0 for d in plain) and all(
        d is None or d.offset_s in (None, 0) for d in plain
    )
    assumed = bool(naive) and not utc and not named_utc
    ns = [None if d is None else d.ns - (d.offset_s or 0) * SECOND for d in plain]
    return Column(
        ns,
        "epoch",
        assumed_utc=assumed,
        set_back=assumed and _set_back(ns, begins),
        written_to_s=written_to_s,
    )


def _without_faults(dates: Sequence[Date | None]) -> list[Date | None]:
    """Dates without those that no request can have, such as the years 1 and 9999 for "none".

    Among dates of our days (as for numbers, from 1990 to 2100) all others are faults; else those
    are whose nanoseconds 64 bits do not hold.
    """
    ours = [d is not None and _FIRST_EPOCH_S <= d.ns // SECOND < _LAST_EPOCH_S for d in dates]
    if 2 * sum(ours) > sum(date is not None for date in dates):
        return [date if own else None for date, own in zip(dates, ours, strict=True)]
    day = 86400 * SECOND  # more than any zone is away from UTC
    return [d if d is None or within(abs(d.ns) + day) else None for d in dates]


def _set_back(ns: Sequence[int | None], begins: frozenset[int]) -> bool:
    """Rising times with one step back of at most an hour: a clock put back to winter time."""
    known = [(i, stamp) for i, stamp in enumerate(ns) if stamp is not None]
    back = [a - b for (_, a), (i, b) in pairwise(known) if b < a and i not in begins]
    return len(back) == 1 and len(known) > 2 and back[0] <= 3600 * SECOND


def _in_zone(dates: Sequence[Date | None], zone: tzinfo) -> list[int | None]:
    """Local times as UTC; an hour that happens twice is told apart by the order of the file."""
    local = [date.ns for date in dates if date is not None]
    backwards = is_descending(local)
    ns: list[int | None] = [None] * len(dates)
    latest: int | None = None
    order = range(len(dates) - 1, -1, -1) if backwards else range(len(dates))
    for i in order:
        date = dates[i]
        if date is None:
            continue
        if date.offset_s is not None:
            ns[i] = date.ns - date.offset_s * SECOND
            continue
        first, second = (date.ns - _offset_s(date.ns, zone, fold) * SECOND for fold in (0, 1))
        stamp = second if second > first and latest is not None and first < latest else first
        latest = stamp if latest is None else max(latest, stamp)
        ns[i] = stamp
    return ns


def _offset_s(local_ns: int, zone: tzinfo, fold: int) -> int:
    moment = (EPOCH + timedelta(seconds=local_ns // SECOND)).replace(tzinfo=zone, fold=fold)
    offset = moment.utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _order_of(dates: Sequence[Slashed]) -> DateOrder:
    """Day and month by the values above twelve; empty where none, or both, are."""
    if all(date.parts[0] > 31 for date in dates):
        return "mdy"  # year first: nothing to tell apart
    if all(date.mark == "." for date in dates):
        return "dmy"
    first_is_day = any(12 < date.parts[0] <= 31 for date in dates)
    second_is_day = any(date.parts[1] > 12 and date.parts[0] <= 31 for date in dates)
    if first_is_day == second_is_day:
        return ""
    return "dmy" if first_is_day else "mdy"
