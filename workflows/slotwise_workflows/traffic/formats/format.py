"""What one log format is, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Record = Mapping[str, Any]
Specs = str | tuple[str, ...]

# What a format, or `--map`, may say where to find. Specs are those of `traffic.fields`.
FIELDS: Mapping[str, str] = {
    "arrival": "when the request was sent",
    "end": "when its answer was complete",
    "first_token": "when its first token came",
    "written": "when the row was written, which is neither of them",
    "clock": "what the times count from: epoch, relative or monotonic",
    "latency": "duration of the whole answer",
    "ttft": "duration until the first token",
    "output_tokens": "tokens generated, reasoning included",
    "prompt_tokens": "tokens of the whole prompt, cached ones included",
    "cached_tokens": "prompt tokens read from a cache",
    "reasoning_tokens": "reasoning tokens",
    "total_tokens": "prompt and output together; tells whether reasoning stands apart",
    "max_tokens": "the cap the request was sent with",
    "choices": "how many answers were asked for at once",
    "request_id": "what names one request",
    "conversation": "session or conversation",
    "model": "model asked for",
    "response_model": "model that answered",
    "provider": "who serves the model",
    "operation": "what kind of call it was",
    "path": "URL path of the call",
    "user_agent": "who called",
    "stream": "whether the answer was streamed",
    "status": "an HTTP status or a word",
    "error": "an error; anything but empty means the call failed",
    "finish_reason": "why the answer ended",
    "cache_hit": "whether a gateway answered from its response cache",
    "prefix_hash_ids": "ids of the prompt's blocks",
    "span_id": "id of a trace span",
    "parent_id": "id of the span above",
}


TIMES = ("arrival", "end", "first_token", "written")
DURATIONS = ("latency", "ttft")
COUNTS = (
    *("output_tokens", "prompt_tokens", "cached_tokens", "reasoning_tokens", "total_tokens"),
    *("max_tokens", "choices"),
)


def whole(record: Record) -> Iterable[Record]:
    """The record as it is."""
    return (record,)


@dataclass(frozen=True, slots=True)
class Format:
    """One log format.

    Attributes:
        id: Short name, as `--format` takes it.
        title: What a reader calls it.
        needs: The smallest set of paths that tells this format from others; ``a|b`` is either.
            Of several formats that fit, the one that needs most is meant.
        fields: Field of `FIELDS` to its spec, or to alternatives of which the first present counts.
        unpack: Turns one record of the container into the format's own records.
        time_unit: Unit of numeric times; ``auto`` reads it off the number of digits.
        monotonic: Whether times count from a moment without a meaning of its own.
        utc: Whether times without a zone are UTC by the format's definition.
        date_order: How slash dates are written; empty where that is not defined.
        chunk: Conditions under which a row is a piece of a call, not a call.
        not_generation: Conditions under which a row is not a generation.
        failed: Conditions, beyond `status` and `error`, under which a call failed.
        cancelled: Conditions, beyond `finish_reason` and `status`, under which the client left.
        chunks_share_id: Whether the pieces of one call carry the call's id.
        engine: ``batches`` for a log written by an engine that batches continuously by default.
        managed: Whether somebody else runs the server; None where the format does not tell.
        offline: Whether these are batch jobs.
        bench: Whether a load generator chose the lengths, so that they prove nothing about spread.
        verified: Whether the reader was checked on a real export.
        flags: What always holds for the format and a reader of the figures must know.

    A condition is ``path=value``, ``path!=value`` or several of them joined by `` & ``; an empty
    value means missing.
    """

    id: str
    title: str
    needs: tuple[str, ...]
    fields: Mapping[str, Specs]
    unpack: Callable[[Record], Iterable[Record]] = whole
    time_unit: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    monotonic: bool = False
    utc: bool = False
    date_order: Literal["", "mdy", "dmy"] = ""
    chunk: tuple[str, ...] = ()
    not_generation: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    chunks_share_id: bool = False
    engine: Literal["batches", "unknown"] = "unknown"
    managed: bool | None = None
    offline: bool = False
    bench: bool = False
    verified: bool = False
    flags: tuple[str, ...] = field(default=())

    def alternatives(self, name: str) -> tuple[str, ...]:
        """The specs of one field, the preferred one first."""
        specs = self.fields.get(name, ())
        return (specs,) if isinstance(specs, str) else specs
