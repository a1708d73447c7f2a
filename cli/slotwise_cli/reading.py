"""From the reading options of the command line to how a log is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from slotwise_workflows.errors import UsageError

if TYPE_CHECKING:
    from slotwise_workflows.traffic import ReadOptions


def read_options(
    base: ReadOptions,
    *,
    format_: str,
    map_: Sequence[str] | None,
    time_unit: Literal["auto", "s", "ms", "us", "ns"] | None,
    time_zone: str | None,
    decimal: Literal["auto", ".", ","] | None,
    where: Sequence[str] | None,
    segment: Sequence[str] | None,
    allow_truncated: bool,
) -> ReadOptions:
    """What the workload file says, with what was said on the command line put over it.

    Raises:
        UsageError: A ``--map`` is not FIELD=COLUMN, or the time zone is unknown.
    """
    if time_zone is not None:
        _check_zone(time_zone)
    return replace(
        base,
        format=base.format if format_ == "auto" else format_,
        map={**base.map, **_pairs(map_ or ())},
        time_unit=time_unit or base.time_unit,
        timezone=time_zone or base.timezone,
        decimal=decimal or base.decimal,
        where=(*base.where, *(where or ())),
        segments=(*base.segments, *(segment or ())),
        allow_truncated=allow_truncated or base.allow_truncated,
    )


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        field, equals, column = word.partition("=")
        if not (field and equals and column):
            raise UsageError(
                f"--map {word!r} is not FIELD=COLUMN", hint="For example --map arrival=ts"
            )
        pairs[field.strip()] = column.strip()
    return pairs


def _check_zone(name: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise UsageError(
            f"--tz {name!r} is no IANA time zone", hint="For example --tz Asia/Tokyo, --tz UTC"
        ) from None
