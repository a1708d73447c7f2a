"""The account of all rows: filled while they are read, closed when they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import times
from slotwise_workflows.traffic.duplicates import duplicates, rollups
from slotwise_workflows.traffic.formats import Format
from slotwise_workflows.traffic.labels import check_labels
from slotwise_workflows.traffic.model import SourceFile, Traffic
from slotwise_workflows.traffic.reconcile import Request, Verdict
from slotwise_workflows.traffic.table import Timing, frame, timing

_MOST_NOTES = 20


Record = Mapping[str, Any]


@dataclass(slots=True)
class Account:
    """What has been met so far.

    Attributes:
        rows: Records met.
        excluded: Records left out, by reason.
        notes: Places of unusable rows.
        unread: For fields beside the length, how many values cannot be read, and the first place.
        requests: Records kept so far.
        counted: For columns in which missing counts may concentrate: column, value, whether the
            count is missing, to the number of such rows.
        pieces: Request ids and reasons of rows that may be pieces of a call.
        parents: Span id to the id of the span above.
        ambiguous_keys: Whether a JSON key was given twice.
        repaired: Whether faulty JSON was mended.
        cut: Whether a file ended early.
    """

    rows: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    unread: dict[str, tuple[int, str]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    counted: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    pieces: list[tuple[str | None, str]] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    ambiguous_keys: bool = False
    repaired: bool = False
    cut: bool = False


def enter(account: Account, verdict: Verdict, record: Record, place: str, entry: Format) -> None:
    """Enters one record and what was decided on it."""
    account.rows += 1
    if "parent_id" in entry.fields and record.get("parentSpanId"):
        account.parents[str(record.get("spanId"))] = str(record["parentSpanId"])
    if verdict.reason in ("", "no_output"):
        missing = verdict.reason == "no_output"
        if verdict.stream is not None:
            account.counted["stream", "yes" if verdict.stream else "no", missing] += 1
        if verdict.model is not None:
            account.counted["model", verdict.model, missing] += 1
    for name in verdict.unread:
        count, first = account.unread.get(name, (0, place))
        account.unread[name] = (count + 1, first)
    if entry.chunks_share_id and verdict.reason in ("chunk_row", "no_output"):
        account.pieces.append((verdict.id, verdict.reason))
    elif verdict.request is not None:
        account.requests.append(verdict.request)
    else:
        account.excluded[verdict.reason] += 1
        note(account, place, verdict.why)


def exclude(account: Account, reason: str, place: str, why: str = "") -> None:
    """Enters a row that holds no record to decide on."""
    account.rows += 1
    account.excluded[reason] += 1
    note(account, place, why)


def note(account: Account, place: str, why: str) -> None:
    """Notes where something unusable is; the first places are enough."""
    if why and len(account.notes) < _MOST_NOTES:
        account.notes.append(f"{place}: {why}")


def close(
    account: Account,
    entry: Format,
    segments: tuple[str, ...],
    when: times.Options,
    files: tuple[SourceFile, ...],
) -> Traffic:
    """Settles what only all rows together can tell, and draws up the result.

    Raises:
        InputError: No request is left, or the times cannot be read.
        UsageError: A segment is no column of labels.
    """
    requests = account.requests
    flags = list(entry.flags)
    account.excluded.update(_pieces(account.pieces, {r.request_id for r in requests}))
    requests = _leave_out(account, requests, rollups(requests, account.parents), "not_generation")
    dropped = duplicates(requests)
    if dropped.ids_unusable:
        flags.append("ids_unusable")
    requests = _leave_out(account, requests, dropped.positions, "duplicate")
    if requests:
        timed = timing(requests, entry, when)
        if timed.unusable:
            for i in sorted(timed.unusable):
                note(account, requests[i].source, "its time is missing or cannot be read")
            requests = _leave_out(account, requests, timed.unusable, "unparsable")
            timed = timing(requests, entry, when)
        flags += [flag for flag in timed.flags if flag not in flags]
        _note_unread(account, requests, timed)
    if not requests:
        raise _nothing_left(account, files)
    check_labels(segments, [request.segments for request in requests])
    flags += _flags(account, requests)
    return Traffic(
        table=frame(requests, timed, segments),
        format=entry.id,
        rows=account.rows,
        excluded={r: n for r, n in sorted(account.excluded.items()) if n},
        flags=tuple(flags),
        clock=timed.clock,
        segments=segments,
        engine=entry.engine,
        managed=entry.managed,
        offline=entry.offline,
        bench=entry.bench,
        verified=entry.verified,
        notes=tuple(account.notes),
        files=files,
    )


def _note_unread(account: Account, requests: Sequence[Request], timed: Timing) -> None:
    """One note for each field that could not be read somewhere, before those of single rows."""
    unread = dict(account.unread)
    for name, positions in timed.unreadable.items():
        unread[name] = (len(positions), requests[positions[0]].source)
    told = [
        f"{place}: its {name.replace('_', ' ')} cannot be read"
        + (f", nor in {count - 1} more" if count > 1 else "")
        for name, (count, place) in unread.items()
    ]
    account.notes[:] = [*told, *account.notes][:_MOST_NOTES]


def _leave_out(
    account: Account, requests: list[Request], positions: Iterable[int], reason: str
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


def _flags(account: Account, requests: Sequence[Request]) -> list[str]:
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


def _nothing_left(account: Account, files: Sequence[SourceFile]) -> InputError:
    told = ", ".join(f"{reason} {n}" for reason, n in sorted(account.excluded.items()) if n)
    return InputError(
        "0 requests after exclusions",
        where=files[0].name if len(files) == 1 else "",
        why=f"{account.rows} rows: {told}" if account.rows else "the log has no rows",
        hint=re.sub(r"\s+", " ", account.notes[0]) if account.notes else "",
    )
