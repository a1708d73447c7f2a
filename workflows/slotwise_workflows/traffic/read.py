"""`read_traffic`: files in, one account of all their rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.traffic import times
from slotwise_workflows.traffic.account import Account, close, enter, exclude
from slotwise_workflows.traffic.conditions import Condition, where_condition
from slotwise_workflows.traffic.containers import Container, open_container
from slotwise_workflows.traffic.detect import Plan, check_path, known, plan
from slotwise_workflows.traffic.fields import spec_paths, split_unit
from slotwise_workflows.traffic.formats import COUNTS, DURATIONS, FIELDS, TIMES, plain
from slotwise_workflows.traffic.labels import label_reader
from slotwise_workflows.traffic.model import CANONICAL, SourceFile, Traffic
from slotwise_workflows.traffic.paths import LogFile, fingerprint, log_files
from slotwise_workflows.traffic.reconcile import judge
from slotwise_workflows.traffic.refusals import text_refusal

Record = Mapping[str, Any]
Progress = Callable[[int, int], None]

_NAMED = 3
_SAMPLE = 500
_MOST_SEGMENT_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a log is to be read; the defaults find everything out.

    Attributes:
        format: A format's id, ``plain``, or ``auto``.
        map: Field of `formats.FIELDS` to the column or dotted path that holds it.
        time_unit: Unit of numeric times.
        timezone: IANA name of the zone of times that name none.
        decimal: The decimal mark of numbers written as text.
        where: Conditions ``column=value`` (also ``!= < <= > >=``) that rows must meet.
        segments: Columns or paths to keep, to split the figures by.
        allow_truncated: Read a compressed file up to where it is cut off.
    """

    format: str = "auto"
    map: Mapping[str, str] = field(default_factory=dict)
    time_unit: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    timezone: str | None = None
    decimal: Literal["auto", ".", ","] = "auto"
    where: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    allow_truncated: bool = False


def read_traffic(
    paths: Sequence[str],
    options: ReadOptions = ReadOptions(),
    *,
    on_progress: Progress | None = None,
) -> Traffic:
    """Reads logs of one format into one table, and accounts for every row.

    Args:
        paths: Files, directories, globs, or ``-`` for standard input.
        options: What the user knows about them.
        on_progress: Told the bytes read so far and the bytes in all.

    Raises:
        InputError: A file cannot be read, is no log, or cannot answer; or no request is left.
        UsageError: An option is wrong, or a segment is no column of labels.
    """
    when = times.Options(options.time_unit, _zone(options.timezone))
    options = replace(options, segments=tuple(dict.fromkeys(options.segments)))
    _check(options)
    conditions = [where_condition(text) for text in options.where]
    with log_files(paths) as files:
        plans = _plans(files, options, conditions)
        account = Account()
        total = sum(file.size for file in files)
        done = 0
        for file, found in zip(files, plans, strict=True):

            def advance(read: int) -> None:
                nonlocal done
                done += read
                if on_progress is not None:
                    on_progress(min(done, total), total)

            _read_file(file, found, options, [c for _, c in conditions], account, advance)
        sources = tuple(SourceFile(file.name, *fingerprint(file.path)) for file in files)
    return close(account, plans[0].format, options.segments, when, sources)


# --- what the files are --------------------------------------------------------------------------


def _plans(
    files: Sequence[LogFile], options: ReadOptions, conditions: Sequence[tuple[str, Condition]]
) -> list[Plan]:
    found: list[Plan | InputError] = []
    for file in files:
        try:
            found.append(_plan(file, options, conditions))
        except InputError as error:
            if len(files) == 1:
                raise
            found.append(error)
    plans = [entry for entry in found if isinstance(entry, Plan)]
    if len(plans) == len(found) and len({(p.format.id, p.format.time_unit) for p in plans}) == 1:
        return plans
    if not plans:
        raise next(entry for entry in found if isinstance(entry, InputError))
    kinds: dict[str, list[str]] = {}
    for file, entry in zip(files, found, strict=True):
        kind = entry.format.title if isinstance(entry, Plan) else f"not usable ({entry.what})"
        kinds.setdefault(kind, []).append(file.name)
    raise InputError(
        "the files are not logs of one format",
        why="; ".join(f"{_several(names)} {kind}" for kind, names in kinds.items()),
        hint="Name files of one format, or run once for each",
    )


def _several(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} is"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more} are each"


def _plan(file: LogFile, options: ReadOptions, conditions: Sequence[tuple[str, Condition]]) -> Plan:
    container, rows = open_container(
        file.path, name=file.name, allow_truncated=options.allow_truncated
    )
    sample = [row.value for row in islice(rows, _SAMPLE) if row.value is not None]
    if container.kind == "text":
        raise text_refusal([str(record.get("line", "")) for record in sample], file.name)
    if not sample:
        if not container.columns:
            raise InputError("0 requests: the file holds no readable record", where=file.name)
        sample = [dict.fromkeys(container.columns, "")]
    found = plan(sample, file.name, wanted=options.format, mapped=options.map)
    records = [
        item
        for record in sample
        for row in found.view(record)
        for item in islice(found.format.unpack(row), _SAMPLE)
    ]
    for path, _ in conditions:
        check_path(path, records, file.name, "--where")
    for segment in options.segments:
        if not found.format.alternatives(segment):
            check_path(segment, records, file.name, "--segment")
    return found


def _check(options: ReadOptions) -> None:
    if options.format not in ("auto", plain.ID):
        known(options.format)
    for name, spec in options.map.items():
        if name not in FIELDS:
            near = get_close_matches(name, list(FIELDS), n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Fields: {', '.join(FIELDS)}"
            raise UsageError(f"--map {name}={spec}: there is no field {name!r}", hint=hint)
        if not spec.strip() or not all(spec_paths(spec)):
            raise UsageError(f"--map {name}= names no column")
        if split_unit(spec)[1] and name not in (*TIMES, *DURATIONS):
            raise UsageError(f"--map {name}={spec}: {name} has no unit of time")
        if len(spec_paths(spec)) > 1 and name not in (*DURATIONS, *COUNTS):
            raise UsageError(f"--map {name}={spec}: {name} cannot be computed")
    taken = sorted(set(options.segments) & set(CANONICAL))
    if taken:
        raise UsageError(f"--segment {taken[0]}: a column of that name is in the table anyway")
    if len(options.segments) > _MOST_SEGMENT_COLUMNS:
        raise UsageError(f"more than {_MOST_SEGMENT_COLUMNS} segments are asked for")


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"there is no time zone {name!r}", hint="Use an IANA name, e.g. Asia/Tokyo"
        ) from None


# --- reading -------------------------------------------------------------------------------------


def _read_file(
    file: LogFile,
    found: Plan,
    options: ReadOptions,
    conditions: Sequence[Condition],
    account: Account,
    advance: Callable[[int], None],
) -> None:
    container, rows = open_container(
        file.path, name=file.name, allow_truncated=options.allow_truncated, on_bytes=advance
    )
    entry = found.format
    labels = label_reader({name: entry.alternatives(name) or (name,) for name in options.segments})
    decide = judge(entry, decimal=_decimal(container, options), where=conditions, labels=labels)
    output = {path for spec in entry.alternatives("output_tokens") for path in spec_paths(spec)}
    for row in rows:
        if row.value is None:
            exclude(account, "unparsable", f"{file.name}:{row.line}", row.why)
            continue
        value: Record = row.value
        if row.duplicate_keys:
            account.ambiguous_keys = True
            value = _without(value, row.duplicate_keys)
        place = f"{file.name}:{row.line}"
        for record in _records(found, value):
            if record is None:
                exclude(account, "not_generation", place)
            elif row.duplicate_keys and _touches(row.duplicate_keys, output):
                exclude(account, "unparsable", place, "its output tokens are given twice")
            else:
                enter(account, decide(record, place), record, place, entry)
    account.repaired |= bool(container.repaired)
    account.cut |= container.truncated_at is not None


def _records(found: Plan, value: Record) -> Iterator[Record | None]:
    """The records of a row; None for a row that has none, such as a log line between others."""
    inner = found.view(value)
    if not inner:
        yield None
    for record in inner:
        yield from found.format.unpack(record)


def _decimal(container: Container, options: ReadOptions) -> str:
    if options.decimal != "auto":
        return options.decimal
    return "," if container.decimal_comma else "auto"


def _touches(twice: Iterable[str], paths: Iterable[str]) -> bool:
    """Whether a key given twice is on the way to one of the paths, whatever wraps them."""
    ends = [key.replace("[]", "") for key in twice]
    return any(
        path == key or path.startswith(key + ".") or key.endswith("." + path)
        for key in ends
        for path in paths
    )


def _without(value: Record, twice: Iterable[str]) -> Record:
    """The record without its keys that are given twice: which value counts cannot be told."""
    for key in twice:
        value = _drop(value, key.split("."))
    return value


def _drop(value: Any, steps: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_drop(item, steps) for item in value]
    if not isinstance(value, Mapping):
        return value
    for size in range(len(steps), 0, -1):
        name = ".".join(steps[:size]).removesuffix("[]")
        if name in value:
            rest = {k: v for k, v in value.items() if k != name}
            return rest if size == len(steps) else {**value, name: _drop(value[name], steps[size:])}
    return value
