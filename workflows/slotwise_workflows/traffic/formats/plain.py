"""A plain table of one's own: columns that mean what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from slotwise_workflows.traffic.fields import literal, parse_nested
from slotwise_workflows.traffic.formats.format import Format

ID = "plain"
TITLE = "plain table"

# Obvious names, the preferred one first; camelCase, spaces, dashes and capitals make no difference.
_TIMES: Mapping[str, tuple[str, ...]] = {
    "arrival": (
        *("arrival_time", "arrival", "arrival_timestamp", "arrived_at", "arrived"),
        *("start_time", "started_at", "start", "start_timestamp", "request_start"),
        *("request_start_time", "request_received_ts", "received_at", "request_created_at"),
        *("requested_at", "request_time_utc", "timestamp", "ts", "t", "time"),
        *("time_generated", "created_at", "created", "date_time", "datetime"),
    ),
    "end": (
        *("completed_at", "finished_at", "end_time", "ended_at", "end", "end_timestamp"),
        *("finish_time", "completion_timestamp", "request_finished_ts", "response_created_at"),
    ),
    "first_token": ("completion_start_time", "first_token_at", "first_token_time", "first_token"),
}
_DURATIONS: Mapping[str, tuple[str, ...]] = {
    "latency": (
        *("latency", "e2e_latency", "request_latency", "total_latency", "duration", "elapsed"),
        *("elapsed_time", "total_time", "request_duration", "response_time"),
    ),
    "ttft": ("ttft", "time_to_first_token", "first_token_latency", "time_to_first_chunk"),
}
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "output_tokens": (
        *("completion_tokens", "output_tokens", "out_tokens", "tokens_completion", "tokens_out"),
        *("tokens_output", "generated_tokens", "num_decode_tokens", "response_tokens"),
        *("num_output_tokens", "n_output_tokens", "num_completion_tokens", "output_token_count"),
        *("completion_token_count", "candidates_token_count", "output_length", "output_len"),
        *("output_toks", "decode_tokens", "gen_tokens"),
    ),
    "prompt_tokens": (
        *("prompt_tokens", "input_tokens", "in_tokens", "tokens_prompt", "tokens_in"),
        *("tokens_input", "context_tokens", "num_prefill_tokens", "request_tokens"),
        *("num_input_tokens", "n_input_tokens", "num_prompt_tokens", "input_token_count"),
        *("prompt_token_count", "input_length", "input_len", "input_toks", "prefill_tokens"),
    ),
    "cached_tokens": ("cached_tokens", "cache_read_input_tokens", "tokens_cached"),
    "reasoning_tokens": ("reasoning_tokens", "tokens_reasoning", "reasoning_output_tokens"),
    "total_tokens": ("total_tokens", "tokens_total", "total_token_count"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
    "choices": ("n", "num_choices", "choice_count", "num_sequences", "best_of"),
    "request_id": (
        *("request_id", "req_id", "rid", "x_request_id", "generation_id", "completion_id"),
        *("response_id", "call_id", "id", "uuid"),
    ),
    "conversation": ("conversation_id", "session_id", "chat_id", "thread_id"),
    "model": ("model", "model_name", "request_model", "model_id", "deployment", "deployment_name"),
    "response_model": ("response_model",),
    "provider": ("provider", "provider_name", "custom_llm_provider"),
    "operation": ("call_type", "operation", "operation_name", "request_type", "task"),
    "path": ("path", "endpoint", "route_path", "url", "request_path", "uri"),
    "user_agent": ("user_agent",),
    "stream": ("stream", "streamed", "is_stream", "streaming", "is_streaming"),
    "status": ("status", "status_code", "response_status", "http_status", "response_code"),
    "error": ("error", "error_message", "exception", "error_type", "error_code", "errors"),
    "finish_reason": ("finish_reason", "stop_reason", "finish_reasons", "done_reason"),
    "cache_hit": ("cache_hit", "cached", "cache_status", "from_cache"),
    "prefix_hash_ids": ("hash_ids",),
}
OUTPUT_NAMES = frozenset(_OTHERS["output_tokens"])
# Objects inside which a field may stand; elsewhere its name may mean something else.
_CONTAINERS = frozenset(
    {
        *("usage", "usage_object", "usage_details", "token_usage", "tokens", "metadata", "meta"),
        *("metrics", "response", "request", "body", "params", "parameters", "attributes", "data"),
        *("timings", "completion_tokens_details", "output_tokens_details", "stats", "llm"),
        *("prompt_tokens_details", "input_tokens_details", "sampling_params", "extra", "context"),
    }
)
_UNITS = ("s", "ms", "us", "ns")
_DEEPEST = 4


def describe(records: Sequence[Mapping[str, Any]]) -> Format | None:
    """The format of a table by the names of its columns; None without an output-token column.

    Args:
        records: The first records of the log.
    """
    names = _names(records)
    if _counts_rows(records, names.get("n", ())):
        del names["n"]
    fields: dict[str, tuple[str, ...]] = {}
    unit = "auto"
    for field, wanted in _TIMES.items():
        found = [(path, u) for name in wanted for path, u in _with_units(names, name)]
        if found:
            # One clock needs one unit: alternatives in another unit are no alternatives.
            unit = found[0][1] or "auto" if field == "arrival" else unit
            fields[field] = tuple(literal(path) for path, u in found if u == found[0][1])
    durations = _durations(names)
    fields.update({field: specs for field, specs in durations.items() if specs})
    for field, wanted in _OTHERS.items():
        plain = [literal(path) for name in wanted for path in names.get(name, ())]
        if plain:
            fields[field] = tuple(plain)
    if "output_tokens" not in fields:
        return None
    if "prompt_tokens" in fields:
        fields["prompt_tokens"] = tuple(_whole_prompt(path) for path in fields["prompt_tokens"])
    return Format(
        id=ID,
        title=TITLE,
        needs=(),
        fields=fields,
        time_unit=unit,  # type: ignore[arg-type]
        chunk=("object=chat.completion.chunk & usage.completion_tokens=",),
        chunks_share_id=any(record.get("object") == "chat.completion.chunk" for record in records),
        # A wrong guess would be off by a thousand.
        flags=tuple(f"unit_unknown:{field}" for field, specs in durations.items() if not specs),
    )


def key_paths(records: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Every path to a value in the records, in the order met; for suggestions in errors."""
    return tuple(
        dict.fromkeys(path for paths in _names(records, every=True).values() for path in paths)
    )


@lru_cache(maxsize=1 << 16)  # more than a table has columns: one that is too small is no use
def normalise(name: str) -> str:
    """``startTime``, ``Start Time`` and ``start-time [UTC]`` are ``start_time``; units stay."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    bracket = re.search(r"[\[(](.*?)[\])]", spaced)
    unit = bracket[1].strip().lower() if bracket else ""
    bare = spaced[: bracket.start()] if bracket else spaced
    words = re.sub(r"[^a-z0-9]+", "_", bare.lower()).strip("_")
    return f"{words}_{unit}" if unit in _UNITS else words


def _durations(names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The durations that are there, and where; nowhere for one whose unit nothing tells."""
    found = {
        field: [(path, unit) for name in wanted for path, unit in _with_units(names, name)]
        for field, wanted in _DURATIONS.items()
    }
    return {
        field: tuple(f"{literal(path)} [{unit}]" for path, unit in places if unit)
        for field, places in found.items()
        if places
    }


def _counts_rows(records: Sequence[Mapping[str, Any]], paths: tuple[str, ...]) -> bool:
    """Whether ``n`` numbers the rows and is no number of choices."""
    values = [str(record.get(path)) for path in paths for record in records if path in record]
    return len(values) > 3 and len(set(values)) == len(values)


def _whole_prompt(path: str) -> str:
    """Counts in the style of Anthropic leave the cached part out; it is added where it stands."""
    parent, _, leaf = path.rpartition(".")
    if leaf != "input_tokens":
        return path
    stem = f"{parent}." if parent else ""
    return f"{path} + {stem}cache_creation_input_tokens + {stem}cache_read_input_tokens"


def _with_units(names: Mapping[str, tuple[str, ...]], name: str) -> list[tuple[str, str]]:
    found = [(path, "") for path in names.get(name, ())]
    for unit in _UNITS:
        found += [(path, unit) for path in names.get(f"{name}_{unit}", ())]
    return found


def _names(
    records: Iterable[Mapping[str, Any]], *, every: bool = False
) -> dict[str, tuple[str, ...]]:
    """Normalised leaf name to the paths that end in it, the shallowest first."""
    found: dict[str, dict[str, int]] = {}
    for record in records:
        _walk(record, "", 1, found, every)
    return {
        name: tuple(sorted(paths, key=lambda path: paths[path])) for name, paths in found.items()
    }


def _walk(
    record: Mapping[str, Any],
    prefix: str,
    depth: int,
    found: dict[str, dict[str, int]],
    every: bool,
) -> None:
    for key, value in record.items():
        path = prefix + key
        # A flattened object keeps its path in the column's name: `usage.completion_tokens`.
        parent, _, leaf = key.rpartition(".")
        inside = not parent or normalise(parent.rpartition(".")[2]) in _CONTAINERS
        name = normalise(leaf if inside else key)
        inner = value
        if isinstance(value, str) and value[:1] == "{" and name in _CONTAINERS:
            inner = parse_nested(value)
        if isinstance(inner, Mapping) and depth < _DEEPEST and (every or name in _CONTAINERS):
            _walk(inner, path + ".", depth + 1, found, every)
        if not isinstance(inner, Mapping) or name in ("error", "hash_ids"):
            found.setdefault(name, {}).setdefault(path, depth)
