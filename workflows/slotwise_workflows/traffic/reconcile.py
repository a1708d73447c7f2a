"""One row, one fate: a request that is kept, or the first reason that leaves it out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.traffic import fields
from slotwise_workflows.traffic.formats import Format

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
    truncated: bool
    aborted: bool
    segments: tuple[str | None, ...]


class Verdict(NamedTuple):
    """What becomes of one row.

    Attributes:
        reason: Empty for a request that is kept.
        why: Told for unparsable rows.
        request: The request, where it is kept.
        stream: Whether it was streamed, to see whether missing counts concentrate there.
        model: Its model, for the same.
        id: Its request id, for formats whose calls come in pieces.
    """

    reason: str
    why: str = ""
    request: Request | None = None
    stream: bool | None = None
    model: str | None = None
    id: str | None = None


Judge = Callable[[Record, str], Verdict]
Condition = Callable[[Record], bool]

_TEXTS = (
    *("request_id", "conversation", "model", "response_model", "provider", "operation"),
    *("finish_reason", "path", "user_agent", "span_id"),
)
_COUNTS = ("prompt_tokens", "cached_tokens", "reasoning_tokens", "total_tokens", "max_tokens")

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
    segments: Sequence[tuple[str, ...]] = (),
) -> Judge:
    """How the rows of a format are judged.

    Args:
        entry: The format.
        decimal: The decimal mark of numbers written as text.
        where: Conditions of the user's; a row that misses one is ``filtered``.
        segments: The specs of each segment column.

    Returns:
        A function of a record and its ``file:line``.
    """
    specs = {name: entry.alternatives(name) for name in fields_read()}
    texts = {n: fields.first_of(specs[n], fields.text) for n in _TEXTS if specs[n]}
    loose = partial(_loose_count, decimal=decimal)
    counts = {n: fields.first_of(specs[n], loose) for n in (*_COUNTS, "choices") if specs[n]}
    raws = {
        n: fields.first_of(specs[n], fields.raw)
        for n in ("arrival", "end", "first_token", "written", "status", "error", "cache_hit")
        if specs[n]
    }
    durations = {
        n: fields.first_of(specs[n], fields.seconds) for n in ("latency", "ttft") if specs[n]
    }
    output = fields.first_of(specs["output_tokens"], partial(fields.count, decimal=decimal))
    stream = fields.first_of(specs["stream"], _truth) if specs["stream"] else None
    hashes = (
        fields.first_of(specs["prefix_hash_ids"], _hashes) if specs["prefix_hash_ids"] else None
    )
    labels = tuple(fields.first_of(spec, _label) for spec in segments)
    chunk = any_of(entry.chunk)
    other = any_of(entry.not_generation)
    failing = any_of(entry.failed)

    def decide(record: Record, source: str) -> Verdict:
        if where and not all(condition(record) for condition in where):
            return Verdict("filtered")
        try:
            tokens = output(record)
        except fields.AmbiguousNumberError as error:
            raise _ambiguous(entry, str(error), source) from None
        except ValueError as error:
            return Verdict("unparsable", f"output tokens: {error}")
        text = {name: get(record) for name, get in texts.items()}
        raw = {name: get(record) for name, get in raws.items()}
        streamed = stream(record) if stream else None
        model = text.get("model") or text.get("response_model")
        seen = partial(Verdict, stream=streamed, model=model, id=text.get("request_id"))
        if chunk(record):
            return seen("chunk_row")
        if other(record) or _is_other_call(text, tokens):
            return seen("not_generation")
        duration = {name: get(record) for name, get in durations.items()}
        finish = _finish(text.get("finish_reason"))
        aborted = bool(tokens) and (finish in _ABORTED or _is_abort(raw.get("status")))
        if not aborted and (failing(record) or _is_failure(raw.get("status"), raw.get("error"))):
            # A call that shows a first token generated something, however it ended: where its
            # count is missing (and not zero) its length is unknown, which is no_output.
            began = duration.get("ttft") is not None or raw.get("first_token") is not None
            return seen("no_output" if tokens is None and began else "failed")
        if str(raw.get("cache_hit")).strip().lower() in _HITS:
            return seen("cache_hit")
        if not tokens:
            return seen("no_output")
        try:
            number = {name: get(record) for name, get in counts.items()}
        except fields.AmbiguousNumberError as error:
            raise _ambiguous(entry, str(error), source) from None
        if (number.get("choices") or 1) > 1 or _many_choices(record):
            return seen("multi_choice")
        request = Request(
            source,
            _with_reasoning(tokens, number),
            number.get("prompt_tokens"),
            number.get("cached_tokens"),
            number.get("reasoning_tokens"),
            number.get("max_tokens"),
            number.get("choices"),
            raw.get("arrival"),
            raw.get("end"),
            raw.get("first_token"),
            raw.get("written"),
            duration.get("latency"),
            duration.get("ttft"),
            text.get("request_id"),
            text.get("conversation"),
            _shared(text.get("model")),
            _shared(text.get("response_model")),
            _shared(text.get("provider")),
            _shared(text.get("operation")),
            _shared(finish),
            streamed,
            hashes(record) if hashes else None,
            text.get("span_id"),
            finish in _CUT,
            aborted,
            tuple(label(record) for label in labels),
        )
        return seen("", request=request)

    return decide


def fields_read() -> tuple[str, ...]:
    """The fields a judge asks for."""
    return (
        *_TEXTS,
        *_COUNTS,
        *("choices", "arrival", "end", "first_token", "written", "status", "error", "cache_hit"),
        *("latency", "ttft", "output_tokens", "stream", "prefix_hash_ids"),
    )


# --- conditions ----------------------------------------------------------------------------------


def any_of(rules: Sequence[str]) -> Condition:
    """Whether a record meets one of the conditions of a format's entry."""
    compiled = tuple(tuple(_clause(part) for part in rule.split(" & ")) for rule in rules)
    if not compiled:
        return lambda _: False
    return lambda record: any(all(clause(record) for clause in rule) for rule in compiled)


def _clause(text: str) -> Condition:
    path, operator, wanted = re.fullmatch(r"(.+?)(!?=)(.*)", text.strip()).groups()  # type: ignore[union-attr]

    def meets(record: Record) -> bool:
        value = fields.lookup(record, path)
        same = fields.is_missing(value) if not wanted else str(value).lower() == wanted.lower()
        return same is (operator == "=")

    return meets


def where_condition(text: str) -> tuple[str, Condition]:
    """One ``--where``: its path, and the condition.

    Numbers are compared as numbers where both sides are; else as text. A missing value meets only
    ``!=``.

    Raises:
        UsageError: It is not ``column=value`` or the like.
    """
    match = re.fullmatch(r"\s*([^=!<>]+?)\s*(!=|<=|>=|<|>|==?)\s*(.*?)\s*", text, re.DOTALL)
    if not match:
        raise UsageError(
            f"--where {text!r} is not a condition", hint="Write column=value (also != < <= > >=)"
        )
    path, operator, wanted = match.groups()
    wanted = wanted.strip("\"'") if wanted[:1] in "\"'" else wanted

    def meets(record: Record) -> bool:
        value = fields.lookup(record, path)
        if fields.is_missing(value):
            return operator == "!=" and wanted != ""
        left, right = _comparable(value, wanted)
        return {
            "=": lambda: left == right,
            "==": lambda: left == right,
            "!=": lambda: left != right,
            "<": lambda: left < right,
            "<=": lambda: left <= right,
            ">": lambda: left > right,
            ">=": lambda: left >= right,
        }[operator]()

    return path, meets


def _comparable(value: Any, wanted: str) -> tuple[Any, Any]:
    try:
        return float(value), float(wanted)
    except (TypeError, ValueError):
        if isinstance(value, bool):
            return str(value).lower(), wanted.lower()
        return str(value), wanted


# --- parts of the judgement ----------------------------------------------------------------------


def _is_other_call(text: Mapping[str, str | None], tokens: int | None) -> bool:
    operation, path = text.get("operation"), text.get("path")
    if operation and _OTHER_CALLS.search(operation):
        return True
    if path and _OTHER_PATHS.search(path):
        return True
    agent = text.get("user_agent")
    if agent and _PROBES.search(agent):
        return True
    identity = text.get("request_id")
    if identity and _PROBE_IDS.search(identity):
        return True
    model = text.get("model") or text.get("response_model")
    return not tokens and bool(model) and bool(_EMBEDDERS.search(model or ""))


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
    try:
        code = float(word)
    except ValueError:
        return bool(_FAILED.fullmatch(word)) or word in _ABORTED
    return code < 0 or (100 <= code < 600 and not 200 <= code < 300)


def _is_abort(status: Any) -> bool:
    return status is not None and str(status).strip().lower() in (*_ABORTED, "499")


def _is_empty_error(error: Any) -> bool:
    if isinstance(error, str):
        nested = fields.parse_nested(error)
        error = error if nested is None else nested
    if isinstance(error, Mapping):
        return all(_is_empty_error(value) for value in error.values())
    if isinstance(error, list):
        return all(_is_empty_error(value) for value in error)
    return error is False or error == 0 or fields.is_missing(error) or str(error) == "False"


def _many_choices(record: Record) -> bool:
    """Several answers in one record, whatever `n` says."""
    choices = record.get("choices")
    return isinstance(choices, list) and len(choices) > 1


def _with_reasoning(tokens: int, number: Mapping[str, int | None]) -> int:
    """Reasoning is decoded too: added where the total shows that it stands apart."""
    reasoning, prompt, total = (
        number.get(name) for name in ("reasoning_tokens", "prompt_tokens", "total_tokens")
    )
    if reasoning and prompt is not None and total == prompt + tokens + reasoning:
        return tokens + reasoning
    return tokens


def _finish(reason: str | None) -> str | None:
    if not reason:
        return None
    word = reason.strip().lower()
    return word[len("finish_reason_") :] if word.startswith("finish_reason_") else word


def _ambiguous(entry: Format, number: str, source: str) -> InputError:
    column = ", ".join(entry.alternatives("output_tokens"))
    return InputError(
        f"{column} is not an integer ({number})",
        where=source,
        why="the dot may group thousands or mark decimals, and no other column tells which",
        hint="Set --decimal , where dots group thousands, or --decimal . where they mark decimals",
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


def _label(value: Any) -> str | None:
    return _shared(fields.text(value))


def _hashes(value: Any) -> list[int] | None:
    if isinstance(value, list) and all(type(item) is int and abs(item) < 2**63 for item in value):
        return value
    return None


def _shared(text: str | None) -> str | None:
    """One string object for equal labels: a million rows name few models."""
    return None if text is None else sys.intern(text)
