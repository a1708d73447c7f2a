"""What a file is: its format, told by the keys its records have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from typing import Any, cast

from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.traffic.fields import has, parse_nested, shown, spec_paths, split_unit
from slotwise_workflows.traffic.formats import FORMATS, TIMES, Format, plain
from slotwise_workflows.traffic.refusals import (
    REFUSALS,
    Refusal,
    aggregate,
    has_any,
    matches,
    no_output,
    refuse,
)
from slotwise_workflows.traffic.times import Unit

Record = Mapping[str, Any]
View = Callable[[Record], Sequence[Record]]

# Where exporters, log shippers and API pages put the record itself, as an object, a list of
# objects, or the JSON text of either.
WRAPPERS = (
    *("data", "results", "records", "items", "logs", "entries", "rows", "observations", "requests"),
    *("response.body", "response", "body", "result", "message", "log", "msg", "event", "payload"),
    *("_source", "hits.hits._source", "jsonPayload", "json_payload", "record", "fields", "value"),
)
_ENOUGH = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of one file become the records of one format."""

    format: Format
    view: View


def plan(
    sample: Sequence[Record], where: str, *, wanted: str = "auto", mapped: Mapping[str, str]
) -> Plan:
    """Finds the format of a file.

    Args:
        sample: Its first rows.
        where: The file's name, for errors.
        wanted: A format's id, or ``auto``.
        mapped: Fields whose place the user named.

    Raises:
        InputError: No format fits, two fit equally, or what it is cannot answer.
    """
    if wanted not in ("auto", plain.ID):
        return _with_map(_plan_for(known(wanted), sample, where), sample, mapped, where)
    views: list[View] = [_whole, *(_through(wrapper) for wrapper in WRAPPERS)]
    if wanted == "auto":
        for view in views:
            found = _specific(sample, view, where)
            if found is not None:
                return _with_map(found, sample, mapped, where)
    for view in views:
        records = _records(sample, view)
        table = plain.describe(records)
        if table is None and "output_tokens" in mapped and records:
            table = Format(plain.ID, plain.TITLE, (), {})
        if table is None:
            continue
        totals = None if wanted == plain.ID or mapped else aggregate(records, where)
        if totals is not None:
            raise totals
        return _with_map(Plan(table, view), sample, mapped, where)
    raise no_output(sample, where)


def known(wanted: str) -> Format:
    """The format of that id.

    Raises:
        UsageError: There is none.
    """
    found = {entry.id: entry for entry in FORMATS}
    if wanted in found:
        return found[wanted]
    near = get_close_matches(wanted, [*found, plain.ID], n=1)
    raise UsageError(
        f"--format {wanted}: there is no such format",
        hint=f"Did you mean {near[0]}?" if near else f"Known: {', '.join([*found, plain.ID])}",
    )


def _specific(sample: Sequence[Record], view: View, where: str) -> Plan | None:
    """The format, or the refusal, that needs most of what the records show."""
    records = _records(sample, view)
    if not records:
        return None
    fitting: list[Format | Refusal] = [
        entry for entry in FORMATS if _fits(entry, entry.unpack, records)
    ]
    fitting += [entry for entry in REFUSALS if any(matches(entry, r) for r in records)]
    if not fitting:
        return None
    most = max(len(entry.needs) for entry in fitting)
    best = [entry for entry in fitting if len(entry.needs) == most]
    if len(best) > 1:
        names = " and ".join(e.id if isinstance(e, Format) else e.title for e in best)
        raise InputError(
            f"the log fits {names} equally well",
            where=where,
            hint="Say which with --format",
        )
    if isinstance(best[0], Refusal):
        raise refuse(best[0], where)
    return Plan(best[0], view)


def _fits(
    entry: Format, unpack: Callable[[Record], Iterable[Record]], records: Sequence[Record]
) -> bool:
    unpacked = (item for record in records for item in unpack(record))
    return any(
        all(has_any(item, need) for need in entry.needs) for item in islice(unpacked, _ENOUGH)
    )


def _plan_for(entry: Format, sample: Sequence[Record], where: str) -> Plan:
    views: list[View] = [_whole, *(_through(wrapper) for wrapper in WRAPPERS)]
    for view in views:
        records = _records(sample, view)
        if records and _fits(entry, entry.unpack, records):
            return Plan(entry, view)
    raise InputError(
        f"this is not {entry.title}",
        where=where,
        why=f"no record has {', '.join(entry.needs)}",
        hint="Leave --format out to have the format found",
    )


def _with_map(found: Plan, sample: Sequence[Record], mapped: Mapping[str, str], where: str) -> Plan:
    """The plan with the user's own places put before the format's."""
    if not mapped:
        return found
    records = [
        item for record in _records(sample, found.view) for item in found.format.unpack(record)
    ]
    for field, spec in mapped.items():
        for path in spec_paths(spec):
            check_path(path, records, where, f"--map {field}")
    unit = split_unit(mapped.get("arrival", ""))[1] or found.format.time_unit
    places = {
        field: split_unit(spec)[0] if field in TIMES else spec for field, spec in mapped.items()
    }
    fields: dict[str, str | tuple[str, ...]] = {**_without(found.format, mapped), **places}
    told = {f"unit_unknown:{field}" for field in mapped}
    flags = tuple(flag for flag in found.format.flags if flag not in told)
    mended = replace(found.format, fields=fields, time_unit=cast(Unit, unit), flags=flags)
    return replace(found, format=mended)


def _without(entry: Format, mapped: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The format's places without columns to which the user gives another meaning."""
    meant: set[tuple[str, ...]] = set()
    for field, spec in mapped.items():
        own = {spec_paths(known) for known in entry.alternatives(field)}
        meant |= {(path,) for path in spec_paths(spec)} - own
    kept = {
        field: tuple(spec for spec in entry.alternatives(field) if spec_paths(spec) not in meant)
        for field in entry.fields
    }
    return {field: specs for field, specs in kept.items() if specs}


def check_path(path: str, records: Sequence[Record], where: str, option: str) -> None:
    """Refuses a path that no record has.

    Raises:
        InputError: With the nearest path there is.
    """
    if not records or any(has(record, path) for record in records):
        return
    paths = plain.key_paths(records[:50])
    near = get_close_matches(path, paths, n=1)
    there = ", ".join(shown(found) for found in paths[:12])
    hint = f"Did you mean {shown(near[0])}?" if near else f"There are {there}"
    raise InputError(f"{option}: no record has {path!r}", where=where, hint=hint)


def _records(sample: Sequence[Record], view: View) -> list[Record]:
    return [record for row in sample for record in islice(view(row), _ENOUGH)][:_ENOUGH]


def _whole(record: Record) -> Sequence[Record]:
    return (record,)


def _through(wrapper: str) -> View:
    keys = wrapper.split(".")

    def view(record: Record) -> Sequence[Record]:
        found: list[Any] = [record]
        for key in keys:
            inner: list[Any] = []
            for owner in found:
                value = owner.get(key) if isinstance(owner, Mapping) else None
                value = parse_nested(value) if isinstance(value, str) else value
                inner += value if isinstance(value, list) else [] if value is None else [value]
            found = inner
        return [item for item in found if isinstance(item, Mapping)]

    return view
