"""One row, one fate: a request that is kept, or the first reason that leaves it out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import fields
from slotwise_workflows.traffic.conditions import Condition, any_of
from slotwise_workflows.traffic.formats import COUNTS, DURATIONS, TIMES, Format
from slotwise_workflows.traffic.labels import Labels

Record = Mapping[str, Any]

#: In the order in which they are asked; `duplicate` and `unparsable` times come after all rows.
REASONS = (
    "unparsable",
    "filtered",
    "chunk_row",
    "not_generation",
    "failed",
    "cache_hit",
    "no_output",
    "multi_choice",
    "duplicate",
)


class Request(NamedTuple):
    """A row that is a request, times still as the log writes them."""

    source: str
    output_tokens: int
    prompt_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    max_tokens: int | None
    choices: int | None
    arrival: Any
    end: Any
    first_token: Any
    written: Any
    clock: str | None
    latency: float | None
    ttft: float | None
    request_id: str | None
    conversation: str | None
    model: str | None
    response_model: str | None
    provider: str | None
    operation: str | None
    finish_reason: str | None
    stream: bool | None
    prefix_hash_ids: list[int] | None
    span_id: str | None
    error_type: str | None
    cache_hit: bool | None
    truncated: bool
    aborted: bool
    segments: Labels


class Verdict(NamedTuple):
    """What becomes of one row.

    Attributes:
        reason: Empty for a request that is kept.
        why: Told for unparsable rows.
        request: The request, where it is kept.
        stream: Whether it was streamed, to see whether missing counts concentrate there.
        model: Its model, for the same.
        id: Its request id, for formats whose calls come in pieces.
        unread: Fields beside the length that hold something that cannot be read.
    """

    reason: str
    why: str = ""
    request: Request | None = None
    stream: bool | None = None
    model: str | None = None
    id: str | None = None
    unread: tuple[str, ...] = ()


Judge = Callable[[Record, str], Verdict]
Values = Mapping[str, Any]

_TEXTS = (
    *("request_id", "conversation", "model", "response_model", "provider", "operation"),
    *("finish_reason", "path", "user_agent", "span_id", "clock"),
)
_RAWS = ("status", "error", "cache_hit")
_OTHER_CALLS = re.compile(
    r"embed|rerank|moderation|image|speech|audio|transcri|translation|tool|agent|mcp|retriev"
    r"|vector|search|ocr|health|ping|list_|file|vote|feedback|tokeniz|count_tokens|create_batch",
    re.IGNORECASE,
)
_OTHER_PATHS = re.compile(
    r"/(health\w*|healthz|livez?|readyz?|liveness|readiness|ping|metrics|version|status|models"
    r"|embeddings?|rerank|score|moderations|tokenize|detokenize|audio|images|files)(/|\?|$)",
    re.IGNORECASE,
)
_PROBES = re.compile(
    r"kube-probe|ELB-HealthChecker|GoogleHC|HealthCheck|Prometheus/|Pingdom|UptimeRobot"
    r"|Blackbox|Consul Health",
    re.IGNORECASE,
)
_PROBE_IDS = re.compile(r"health[_-]?check", re.IGNORECASE)
_EMBEDDERS = re.compile(r"embed|rerank|(^|[/-])bge-|(^|[/-])gte-|(^|[/-])e5-", re.IGNORECASE)
_FAILED = re.compile(
    r"err(or(ed)?)?|fail(ed|ure)?|timeout|timed_?out|exception|rejected|denied|expired|invalid"
    r"|rate_?limit(ed|_?exceeded)?|overloaded|unavailable|server_error|.*(error|exception)",
    re.IGNORECASE,
)
_CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit"}
)
_ABORTED = frozenset(
    {"abort", "aborted", "cancel", "cancelled", "canceled", "client_disconnect", "disconnected"}
)
_HITS = frozenset({"true", "1", "yes", "hit", "semantic hit", "semantic_hit"})
_GOOD = frozenset({"ok", "success", "succeeded", "completed", "complete", "none", "null", "unset"})


def judge(
    entry: Format,
    *,
    decimal: str = "auto",
    where: Sequence[Condition] = (),
    labels: Callable[[Record, str], Labels] = lambda _, __: (),
) -> Judge:
    """How the rows of a format are judged.

    Args:
        entry: The format.
        decimal: The decimal mark of numbers written as text.
        where: Conditions of the user's; a row that misses one is ``filtered``.
        labels: Reads the segments of a record; see `labels.label_reader`.

    Returns:
        A function of a record and its ``file:line``.
    """
    getters = _getters(entry, decimal)
    beside = _beside(entry)
    chunk, other = any_of(entry.chunk), any_of(entry.not_generation)
    failing, cancelled = any_of(entry.failed), any_of(entry.cancelled)

    def decide(record: Record, source: str) -> Verdict:
        if not all(condition(record) for condition in where):
            return Verdict("filtered")
        try:
            value = {name: get(record) for name, get in getters.items()}
        except fields.AmbiguousNumberError as error:
            raise _ambiguous(entry, _at_fault(getters, record), str(error), source) from None
        except ValueError as error:
            return Verdict("unparsable", f"its output tokens are {error}")
        value["finish_reason"] = _finish(value.get("finish_reason"))
        value["cancelled"] = cancelled(record)
        if chunk(record):
            reason = "chunk_row"
        elif other(record) or _is_other_call(value):
            reason = "not_generation"
        else:
            reason = _reason(value, record, failing)
        request = None
        unread: tuple[str, ...] = ()
        if not reason:
            unread = tuple(name for name in beside if _is_unread(value, name, beside[name], record))
            request = _request(value, source, labels(record, source))
        model = value.get("model") or value.get("response_model")
        identity = value.get("request_id")
        return Verdict(reason, "", request, value.get("stream"), model, identity, unread)

    return decide


def _at_fault(getters: Mapping[str, fields.Getter], record: Record) -> str:
    """The field whose number can be read two ways."""
    for name, get in getters.items():
        try:
            get(record)
        except fields.AmbiguousNumberError:
            return name
    return "output_tokens"


def _is_unread(value: dict[str, Any], name: str, paths: Sequence[str], record: Record) -> bool:
    """Whether a field holds something, but nothing that can be; then it is made unknown."""
    found = value[name]
    if found is None:
        return any(_cannot_be(name, fields.lookup(record, path)) for path in paths)
    if name in DURATIONS and not 0 <= found <= fields.MOST_SECONDS:
        value[name] = None
        return True
    return False


def _getters(entry: Format, decimal: str) -> dict[str, fields.Getter]:
    """A reader of each field that the format has; only that of the output raises ValueError."""
    converters: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(_TEXTS, fields.text),
        **dict.fromkeys(COUNTS, partial(_loose_count, decimal=decimal)),
        **dict.fromkeys(_RAWS, fields.raw),
        **dict.fromkeys(TIMES, partial(fields.instant, decimal=decimal)),
        **dict.fromkeys(DURATIONS, partial(fields.seconds, decimal=decimal)),
        "output_tokens": partial(fields.count, decimal=decimal),
        "stream": _truth,
        "prefix_hash_ids": _hashes,
    }
    return {
        name: fields.first_of(entry.alternatives(name), convert)
        for name, convert in converters.items()
        if entry.alternatives(name)
    }


def _cannot_be(name: str, raw: Any) -> bool:
    if name in DURATIONS or fields.is_missing(raw):
        return not fields.is_missing(raw)
    try:
        fields.count(raw)
    except fields.AmbiguousNumberError:
        return False
    except ValueError:
        return True
    return False


def _beside(entry: Format) -> dict[str, tuple[str, ...]]:
    """The paths of fields beside the length that are numbers, where one path alone is one."""
    specs = {name: entry.alternatives(name) for name in (*DURATIONS, *COUNTS)}
    return {
        name: tuple(path[0] for path in map(fields.spec_paths, alternatives) if len(path) == 1)
        for name, alternatives in specs.items()
        if alternatives and name != "output_tokens"
    }


def _reason(value: Values, record: Record, failing: Condition) -> str:
    """Why a call that is a generation is left out; empty where it is kept."""
    tokens = value.get("output_tokens")
    if not _was_aborted(value) and (
        failing(record) or _is_failure(value.get("status"), value.get("error"))
    ):
        # A call that shows a first token generated something, however it ended: where its count
        # is missing (and not zero) its length is unknown, which is no_output.
        began = value.get("ttft") is not None or value.get("first_token") is not None
        return "no_output" if tokens is None and began else "failed"
    if str(value.get("cache_hit")).strip().lower() in _HITS:
        return "cache_hit"
    if not tokens:
        return "no_output"
    choices = record.get("choices")
    many = isinstance(choices, list) and len(choices) > 1
    return "multi_choice" if many or (value.get("choices") or 1) > 1 else ""


def _request(value: Values, source: str, segments: Labels) -> Request:
    get = value.get
    aborted = _was_aborted(value)
    return Request(
        source=source,
        output_tokens=_with_reasoning(value),
        prompt_tokens=get("prompt_tokens"),
        cached_tokens=get("cached_tokens"),
        reasoning_tokens=get("reasoning_tokens"),
        max_tokens=get("max_tokens"),
        choices=get("choices"),
        arrival=get("arrival"),
        end=get("end"),
        first_token=get("first_token"),
        written=get("written"),
        clock=_shared(get("clock")),
        latency=get("latency"),
        ttft=get("ttft"),
        request_id=get("request_id"),
        conversation=get("conversation"),
        model=_shared(get("model")),
        response_model=_shared(get("response_model")),
        provider=_shared(get("provider")),
        operation=_shared(get("operation")),
        finish_reason=_shared(get("finish_reason")),
        stream=get("stream"),
        prefix_hash_ids=get("prefix_hash_ids"),
        span_id=get("span_id"),
        error_type=_error_type(value.get("status")) if aborted else None,
        cache_hit=None if get("cache_hit") is None else False,  # a hit is left out
        truncated=get("finish_reason") in _CUT,
        aborted=aborted,
        segments=segments,
    )


# --- parts of the judgement ---------------------------------------------------------------


def _is_other_call(value: Values) -> bool:
    signs = (
        ("operation", _OTHER_CALLS),
        ("path", _OTHER_PATHS),
        ("user_agent", _PROBES),
        ("request_id", _PROBE_IDS),
    )
    if any(value.get(name) and pattern.search(value[name]) for name, pattern in signs):
        return True
    model = value.get("model") or value.get("response_model") or ""
    return not value.get("output_tokens") and bool(_EMBEDDERS.search(model))


def _was_aborted(value: Values) -> bool:
    """Cut off by the client or at a benchmark's end, with tokens out."""
    if not value.get("output_tokens"):
        return False
    status = str(value.get("status")).strip().lower()
    told = value["cancelled"] or status == "499"
    return told or value.get("finish_reason") in _ABORTED or status in _ABORTED


def _error_type(status: Any) -> str | None:
    """How an answer that was cut off ended: its status, where that is a code or a known word.

    An error's own text is never kept: it may quote the prompt.
    """
    word = str(status).strip().lower()
    plain = word in _ABORTED or re.fullmatch(r"-?\d{1,3}", word)
    return _shared(word) if plain and _is_failure(status, None) else None


def _is_failure(status: Any, error: Any) -> bool:
    if not _is_empty_error(error):
        return True
    if status is None:
        return False
    if isinstance(status, bool):
        return not status
    word = str(status).strip().lower()
    if word in _GOOD:
        return False
    number = re.match(r"-?\d+(?=$|\D)", word)
    if number is None:
        return bool(_FAILED.fullmatch(word)) or word in _ABORTED
    code = int(number[0]) if len(number[0]) < 9 else 0
    return code < 0 or (100 <= code < 600 and not 200 <= code < 300)


def _is_empty_error(error: Any) -> bool:
    if isinstance(error, str):
        nested = fields.parse_nested(error)
        error = error if nested is None else nested
    if isinstance(error, Mapping):
        return all(_is_empty_error(value) for value in error.values())
    if isinstance(error, list):
        return all(_is_empty_error(value) for value in error)
    return fields.is_missing(error) or str(error).strip().lower() in ("false", "0")


def _with_reasoning(value: Values) -> int:
    """Reasoning is decoded too: added where the total shows that it stands apart."""
    tokens: int = value["output_tokens"]
    reasoning: int = value.get("reasoning_tokens") or 0
    prompt, total = value.get("prompt_tokens"), value.get("total_tokens")
    if reasoning and prompt is not None and total == prompt + tokens + reasoning:
        return tokens + reasoning
    return tokens


def _finish(reason: str | None) -> str | None:
    if not reason:
        return None
    word = reason.strip().lower()
    return word[len("finish_reason_") :] if word.startswith("finish_reason_") else word


def _ambiguous(entry: Format, name: str, number: str, source: str) -> InputError:
    column = ", ".join(entry.alternatives(name))
    mark = "comma" if "," in number else "dot"
    return InputError(
        f"{column} is {'not an integer' if name in COUNTS else 'no clear number'} ({number})",
        where=source,
        why=f"the {mark} may group thousands or mark decimals, and no other column tells which",
        hint="Set --decimal , where commas mark decimals, or --decimal . where dots do",
    )


def _loose_count(value: Any, decimal: str) -> int | None:
    """A count that is not the length itself: unreadable is unknown."""
    try:
        return fields.count(value, decimal=decimal)
    except fields.AmbiguousNumberError:
        raise
    except ValueError:
        return None


def _truth(value: Any) -> bool | None:
    return None if value is None else fields.truth(value)


def _hashes(value: Any) -> list[int] | None:
    if isinstance(value, list) and all(type(item) is int and abs(item) < 2**63 for item in value):
        return value
    return None


def _shared(text: str | None) -> str | None:
    """One string object for equal labels: a million rows name few models."""
    return None if text is None else sys.intern(text)
