"""`read_traffic`: files in, one account of all their rows out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.traffic import times
from slotwise_workflows.traffic.containers import Container, open_container
from slotwise_workflows.traffic.detect import Plan, check_path, known, plan
from slotwise_workflows.traffic.duplicates import Drop, duplicates, rollups
from slotwise_workflows.traffic.fields import spec_paths, split_unit
from slotwise_workflows.traffic.formats import COUNTS, DURATIONS, FIELDS, TIMES, Format, plain
from slotwise_workflows.traffic.model import CANONICAL, SourceFile, Traffic
from slotwise_workflows.traffic.paths import LogFile, fingerprint, log_files
from slotwise_workflows.traffic.reconcile import Condition, Judge, Request, judge, where_condition
from slotwise_workflows.traffic.refusals import text_refusal
from slotwise_workflows.traffic.table import frame, timing

Record = Mapping[str, Any]
Progress = Callable[[int, int], None]

_SAMPLE = 500
_MOST_NOTES = 20
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


@dataclass(slots=True)
class _Account:
    """What has been met so far; filled while the rows are read, and nowhere else."""

    rows: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    counted: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    pieces: list[tuple[str | None, str]] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    ambiguous_keys: bool = False
    repaired: bool = False
    cut: bool = False


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
        UsageError: An option is wrong.
    """
    when = times.Options(options.time_unit, _zone(options.timezone))
    _check(options)
    conditions = [where_condition(text) for text in options.where]
    with log_files(paths) as files:
        plans = _plans(files, options, conditions)
        account = _Account()
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
    return _traffic(account, plans[0].format, options, when, sources)


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
    told = "; ".join(
        f"{file.name} is {entry.format.title if isinstance(entry, Plan) else _short(entry)}"
        for file, entry in islice(zip(files, found, strict=True), 20)
    )
    raise InputError(
        "the files are not logs of one format",
        why=told,
        hint="Name files of one format, or run once for each",
    )


def _short(error: InputError) -> str:
    return f"not usable ({error.what})"


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
    account: _Account,
    advance: Callable[[int], None],
) -> None:
    container, rows = open_container(
        file.path, name=file.name, allow_truncated=options.allow_truncated, on_bytes=advance
    )
    entry = found.format
    segments = [entry.alternatives(segment) or (segment,) for segment in options.segments]
    decide = judge(entry, decimal=_decimal(container, options), where=conditions, segments=segments)
    output = {path for spec in entry.alternatives("output_tokens") for path in spec_paths(spec)}
    for row in rows:
        if row.value is None:
            _exclude(account, "unparsable", f"{file.name}:{row.line}", row.why)
            continue
        value: Record = row.value
        if row.duplicate_keys:
            account.ambiguous_keys = True
            value = _without(value, row.duplicate_keys)
        place = f"{file.name}:{row.line}"
        for record in _records(found, value):
            if record is None:
                _exclude(account, "not_generation", place)
            elif row.duplicate_keys and _touches(row.duplicate_keys, output):
                _exclude(account, "unparsable", place, "its output tokens are given twice")
            else:
                _take(account, decide, record, place, entry)
    account.repaired |= bool(container.repaired)
    account.cut |= container.truncated_at is not None


def _records(found: Plan, value: Record) -> Iterator[Record | None]:
    """The records of a row; None for a row that has none, such as a log line between others."""
    inner = found.view(value)
    if not inner:
        yield None
    for record in inner:
        yield from found.format.unpack(record)


def _take(account: _Account, decide: Judge, record: Record, place: str, entry: Format) -> None:
    verdict = decide(record, place)
    account.rows += 1
    if "parent_id" in entry.fields and record.get("parentSpanId"):
        account.parents[str(record.get("spanId"))] = str(record["parentSpanId"])
    if verdict.reason in ("", "no_output"):
        missing = verdict.reason == "no_output"
        if verdict.stream is not None:
            account.counted["stream", "yes" if verdict.stream else "no", missing] += 1
        if verdict.model is not None:
            account.counted["model", verdict.model, missing] += 1
    if entry.chunks_share_id and verdict.reason in ("chunk_row", "no_output"):
        account.pieces.append((verdict.id, verdict.reason))
        return
    if verdict.request is not None:
        account.requests.append(verdict.request)
        return
    account.excluded[verdict.reason] += 1
    if verdict.reason == "unparsable":
        _note(account, place, verdict.why)


def _exclude(account: _Account, reason: str, place: str, why: str = "") -> None:
    account.rows += 1
    account.excluded[reason] += 1
    if why:
        _note(account, place, why)


def _note(account: _Account, place: str, why: str) -> None:
    if len(account.notes) < _MOST_NOTES:
        account.notes.append(f"{place}: {why}")


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


# --- the account ---------------------------------------------------------------------------------


def _traffic(
    account: _Account,
    entry: Format,
    options: ReadOptions,
    when: times.Options,
    files: tuple[SourceFile, ...],
) -> Traffic:
    requests = account.requests
    flags = list(entry.flags)
    account.excluded.update(_pieces(account.pieces, {r.request_id for r in requests}))
    requests = _leave_out(account, requests, rollups(requests, account.parents), "not_generation")
    dropped: Drop = duplicates(requests)
    if dropped.ids_unusable:
        flags.append("ids_unusable")
    requests = _leave_out(account, requests, dropped.positions, "duplicate")
    if requests:
        timed = timing(requests, entry, when)
        if timed.unusable:
            for i in sorted(timed.unusable):
                _note(account, requests[i].source, "its time is missing or cannot be read")
            requests = _leave_out(account, requests, timed.unusable, "unparsable")
            timed = timing(requests, entry, when)
        flags += [flag for flag in timed.flags if flag not in flags]
    if not requests:
        raise _nothing_left(account, files)
    flags += _flags(account, requests)
    return Traffic(
        table=frame(requests, timed, options.segments),
        format=entry.id,
        rows=account.rows,
        excluded={r: n for r, n in sorted(account.excluded.items()) if n},
        flags=tuple(flags),
        clock=timed.clock,
        segments=options.segments,
        engine=entry.engine,
        managed=entry.managed,
        offline=entry.offline,
        verified=entry.verified,
        notes=tuple(account.notes),
        files=files,
    )


def _leave_out(
    account: _Account, requests: list[Request], positions: Iterable[int], reason: str
) -> list[Request]:
    out = frozenset(positions)
    if not out:
        return requests
    account.excluded[reason] += len(out)
    return [request for i, request in enumerate(requests) if i not in out]


def _pieces(pieces: Sequence[tuple[str | None, str]], counted: set[str | None]) -> Counter[str]:
    """Rows of calls that are written in pieces.

    Pieces of a call whose counts stand in another row are chunk rows. Of a call that has counts
    nowhere, one row stands for the call, with no output known.
    """
    reasons: Counter[str] = Counter()
    seen: set[str] = set()
    for identity, reason in pieces:
        if identity is None or identity in counted:
            reasons["chunk_row" if identity is not None else reason] += 1
        elif identity in seen:
            reasons["chunk_row"] += 1
        else:
            seen.add(identity)
            reasons["no_output"] += 1
    return reasons


def _flags(account: _Account, requests: Sequence[Request]) -> list[str]:
    n = len(requests)
    flags = []
    truncated = sum(r.truncated for r in requests)
    aborted = sum(r.aborted for r in requests)
    models = {r.model or r.response_model for r in requests} - {None}
    if truncated:
        flags.append(f"truncated:{truncated}/{n}")
    if aborted:
        flags.append(f"aborted:{aborted}/{n}")
    if len(models) > 1:
        flags.append(f"multiple_models:{len(models)}")
    if any((r.reasoning_tokens or 0) > r.output_tokens for r in requests):
        flags.append("inconsistent_reasoning")
    flags += _biased(account.counted)
    if account.ambiguous_keys:
        flags.append("duplicate_keys")
    if account.repaired:
        flags.append("repaired_json")
    if account.cut:
        flags.append("input_cut_off")
    if n == 1:
        flags.append("too_few_requests")
    return flags


def _biased(counted: Mapping[tuple[str, str, bool], int]) -> list[str]:
    """Where missing counts concentrate, what is left is no sample of the traffic.

    A value of a column is concentrated when at least two of its calls, and half of them, lack a
    count, and no other value lacks half as often.
    """
    flags = []
    for column in ("stream", "model"):
        shares = {}
        for value in {v for c, v, _ in counted if c == column}:
            missing, present = counted[column, value, True], counted[column, value, False]
            shares[value] = (missing, missing / (missing + present))
        bad = [v for v, (missing, share) in shares.items() if missing >= 2 and share >= 0.5]
        rest = [share for v, (_, share) in shares.items() if v not in bad]
        if bad and rest and min(rest) < 0.25:
            flags.append(f"biased_missing:{column}")
    return flags


def _nothing_left(account: _Account, files: Sequence[SourceFile]) -> InputError:
    told = ", ".join(f"{reason} {n}" for reason, n in sorted(account.excluded.items()) if n)
    return InputError(
        "0 requests after exclusions",
        where=files[0].name if len(files) == 1 else "",
        why=f"{account.rows} rows: {told}" if account.rows else "the log has no rows",
        hint=re.sub(r"\s+", " ", account.notes[0]) if account.notes else "",
    )
