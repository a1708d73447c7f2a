"""Kept requests as the canonical table, with their times made sense of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, cast, get_args

import polars as pl

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import times
from slotwise_workflows.traffic.fields import shown
from slotwise_workflows.traffic.formats import Format, plain
from slotwise_workflows.traffic.model import CANONICAL, Clock
from slotwise_workflows.traffic.reconcile import Request

_NS = 1e9
_TIME_COLUMNS = ("arrival", "end", "first_token")


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of requests, in their order.

    Attributes:
        start: Arrivals in nanoseconds; empty where they are not known.
        end: Ends in nanoseconds by the same clock, None where not known.
        latency_s: Durations of the whole answers.
        ttft_s: Durations until the first token.
        clock: What `start` counts from; None where arrivals are not known.
        flags: What a reader must know of them.
        unusable: Positions of requests whose time is missing or no time, while others have one.
        unreadable: Field to the positions of values that are there but are no time.
    """

    start: list[int | None]
    end: list[int | None]
    latency_s: list[float | None]
    ttft_s: list[float | None]
    clock: Clock | None
    flags: tuple[str, ...]
    unusable: frozenset[int] = frozenset()
    unreadable: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def timing(requests: Sequence[Request], entry: Format, options: times.Options) -> Timing:
    """Reads the times of all requests, each column as a whole.

    Raises:
        InputError: As `times.resolve`, or the rows name several clocks.
    """
    n = len(requests)
    told = _told_clock(requests)
    arrival, end, first = (
        _column(name, [getattr(r, name) for r in requests], requests, entry, options, told)
        for name in _TIME_COLUMNS
    )
    unreadable = {
        name: column.unreadable
        for name, column in zip(_TIME_COLUMNS, (arrival, end, first), strict=True)
        if column is not None and column.unreadable
    }
    flags: list[str] = []
    latency = _latencies(requests, arrival, end)
    if any(
        c is not None and arrival is not None and c.clock != arrival.clock for c in (end, first)
    ):
        flags.append("two_clocks")
    nothing: list[int | None] = [None] * n
    start, clock = nothing, None
    used = arrival
    if arrival is not None and not arrival.ambiguous and _mostly(arrival.ns):
        start, clock = arrival.ns, _clock(arrival, entry, told)
        if arrival.set_back:
            start, clock = nothing, None
            flags.append("backward_jump")
        elif not _ascending(start):
            flags.append("reordered")
    elif arrival is not None and arrival.ambiguous:
        flags.append("ambiguous_date_order")
    elif end is not None and not end.ambiguous and _mostly(end.ns):
        used = end
        start = [
            None if stamp is None or seconds is None else times.within(stamp - round(seconds * _NS))
            for stamp, seconds in zip(end.ns, latency, strict=True)
        ]
        if not _mostly(start):
            start = nothing
            flags.append(
                "no_arrival" if entry.id == plain.ID else "timestamps_are_completion_not_arrival"
            )
        elif end.set_back:
            start = nothing
            flags.append("backward_jump")
        else:
            clock = _clock(end, entry, told)
            flags.append("arrival_derived_from_completion")
    elif any(r.written is not None for r in requests):
        flags.append("timestamps_are_write_time_not_arrival")
    else:
        flags.append("no_arrival:unreadable" if unreadable else "no_arrival")
    flags += _column_flags(used, clock)
    known = clock is not None
    return Timing(
        start,
        nothing if end is None or _refused(end, used, flags) else end.ns,
        latency,
        _first_tokens(requests, arrival, end, first, latency),
        clock,
        tuple(flags),
        frozenset(i for i, stamp in enumerate(start) if stamp is None) if known else frozenset(),
        unreadable,
    )


def frame(requests: Sequence[Request], when: Timing, segments: Sequence[str]) -> pl.DataFrame:
    """The canonical table, then one column a segment."""
    columns: dict[str, list[Any]] = {
        "request_id": [r.request_id for r in requests],
        "start_time": list(when.start),
        "end_time": list(when.end),
        "clock": [when.clock] * len(requests),
        "gen_ai.request.model": [r.model for r in requests],
        "gen_ai.response.model": [r.response_model for r in requests],
        "gen_ai.provider.name": [r.provider for r in requests],
        "gen_ai.operation.name": [r.operation for r in requests],
        "gen_ai.usage.input_tokens": [r.prompt_tokens for r in requests],
        "gen_ai.usage.cache_read.input_tokens": [r.cached_tokens for r in requests],
        "gen_ai.usage.output_tokens": [r.output_tokens for r in requests],
        "gen_ai.usage.reasoning.output_tokens": [r.reasoning_tokens for r in requests],
        "gen_ai.response.finish_reasons": [r.finish_reason for r in requests],
        "gen_ai.request.max_tokens": [r.max_tokens for r in requests],
        "gen_ai.request.stream": [r.stream for r in requests],
        "gen_ai.request.choice.count": [r.choices for r in requests],
        "gen_ai.response.time_to_first_chunk": list(when.ttft_s),
        "e2e_latency": list(when.latency_s),
        "gen_ai.conversation.id": [r.conversation for r in requests],
        "prefix_hash_ids": [r.prefix_hash_ids for r in requests],
        "error.type": [r.error_type for r in requests],
        "cache_hit": [r.cache_hit for r in requests],
        "truncated": [r.truncated for r in requests],
        "aborted": [r.aborted for r in requests],
        "source": [r.source for r in requests],
    }
    series = [pl.Series(name, columns[name], dtype=kind) for name, kind in CANONICAL.items()]
    series += [
        pl.Series(name, [r.segments[i] for r in requests], dtype=pl.String())
        for i, name in enumerate(segments)
    ]
    return pl.DataFrame(series)


# --- times ---------------------------------------------------------------------------------------


def _column(
    name: str,
    values: list[Any],
    requests: Sequence[Request],
    entry: Format,
    options: times.Options,
    told: Clock | None,
) -> times.Column | None:
    if all(value is None for value in values):
        return None
    specs = entry.alternatives(name)
    return times.resolve(
        values,
        lambda i: requests[i].source,
        name=specs[0] if specs else name,
        unit=options.unit if options.unit != "auto" else entry.time_unit,
        zone=options.zone,
        utc=entry.utc,
        date_order=entry.date_order,
        begins=frozenset(
            i for i, (a, b) in enumerate(pairwise(requests), 1) if _file(a) != _file(b)
        ),
        clock=_kind(told) if told is not None and options.unit == "auto" else None,
    )


def _told_clock(requests: Sequence[Request]) -> Clock | None:
    """The clock that the rows themselves name; None where they name none."""
    told: str | None = None
    for request in requests:
        own = request.clock
        if own is None:
            continue
        if own not in get_args(Clock):
            raise InputError(
                f"there is no clock {shown(own)!r}",
                where=request.source,
                hint=f"The clocks are {', '.join(get_args(Clock))}",
            )
        if told is not None and own != told:
            raise InputError(
                f"the clock changes ({told} -> {own})",
                where=request.source,
                why="times of two clocks have no common order",
                hint="Run once for each",
            )
        told = own
    return cast("Clock | None", told)


def _kind(clock: Clock) -> Literal["epoch", "relative"]:
    return "epoch" if clock == "epoch" else "relative"


def _file(request: Request) -> str:
    return request.source.rpartition(":")[0]


def _refused(end: times.Column, used: times.Column | None, flags: Sequence[str]) -> bool:
    """Whether ends are of another clock than the arrivals, or of one that could not be used.

    They would give arrivals where there are none when the table is read again.
    """
    if not {"backward_jump", "ambiguous_date_order"}.isdisjoint(flags):
        return True
    return used is not None and used.clock != end.clock


def _clock(column: times.Column, entry: Format, told: Clock | None) -> Clock:
    if column.clock == "epoch":
        return "epoch"
    if told is not None and _kind(told) == "relative":
        return told
    return "monotonic" if entry.monotonic else "relative"


def _latencies(
    requests: Sequence[Request],
    arrival: times.Column | None,
    end: times.Column | None,
) -> list[float | None]:
    """The duration the log names; else end minus arrival, where both are of one clock."""
    told = [r.latency if r.latency is not None and r.latency >= 0 else None for r in requests]
    if arrival is None or end is None or arrival.ambiguous or end.ambiguous:
        return told
    if arrival.clock != end.clock:
        return told
    return [
        seconds if seconds is not None else _between(a, b)
        for seconds, a, b in zip(told, arrival.ns, end.ns, strict=True)
    ]


def _first_tokens(
    requests: Sequence[Request],
    arrival: times.Column | None,
    end: times.Column | None,
    first: times.Column | None,
    latency: Sequence[float | None],
) -> list[float | None]:
    """Times to the first token of streamed calls.

    A first token that comes with the last one, of an answer of several tokens, is that of a call
    that was not streamed: it says nothing about the first token.
    """
    same_clock = (
        arrival is not None
        and first is not None
        and not (arrival.ambiguous or first.ambiguous)
        and arrival.clock == first.clock
    )
    found: list[float | None] = []
    for i, request in enumerate(requests):
        seconds = request.ttft
        if seconds is None and same_clock and arrival is not None and first is not None:
            ended = end.ns[i] if end is not None else None
            if ended is None or ended != first.ns[i]:
                seconds = _between(arrival.ns[i], first.ns[i])
        whole = latency[i]
        at_once = (
            request.stream is not True
            and request.output_tokens > 1
            and seconds is not None
            and whole is not None
            and seconds >= whole
        )
        usable = seconds is not None and seconds > 0 and request.stream is not False and not at_once
        found.append(seconds if usable else None)
    return found


def _between(a: int | None, b: int | None) -> float | None:
    return None if a is None or b is None or b < a else (b - a) / _NS


def _column_flags(used: times.Column | None, clock: Clock | None) -> list[str]:
    if used is None:
        return []
    flags = []
    if used.assumed_utc and (clock is not None or used.set_back):
        flags.append("naive_timestamps_assumed_utc")
    if clock is not None and used.unit_assumed:
        flags.append("time_unit_assumed:s")
    stamps = [stamp for stamp in used.ns if stamp is not None]
    step = times.resolution_s(stamps, used.written_to_s) if clock or used.ambiguous else 0
    if step:
        flags.append(f"time_resolution:{step:g}s")
    return flags


def _mostly(stamps: Sequence[int | None]) -> bool:
    known = sum(stamp is not None for stamp in stamps)
    return 2 * known >= len(stamps) and known > 0


def _ascending(stamps: Sequence[int | None]) -> bool:
    known = [stamp for stamp in stamps if stamp is not None]
    return all(a <= b for a, b in pairwise(known))
