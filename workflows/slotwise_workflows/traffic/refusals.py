"""Logs that cannot answer the question: what they are, why not, and what to export instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.fields import has, lookup, shown
from slotwise_workflows.traffic.formats.plain import OUTPUT_NAMES, key_paths, normalise

Record = Mapping[str, Any]

_ENGINE_HINT = "export per-request usage (vLLM: OTLP traces or --enable-per-request-metrics)"
_GATEWAY_HINT = "log `usage.completion_tokens` of every answer beside its time, one row a request"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One kind of log that is recognised and refused.

    Attributes:
        title: What it is.
        why: Why it cannot answer.
        hint: What to export instead.
        needs: Paths that tell it, as in `Format.needs`; those of text logs are empty.
        line: What its text lines look like.
    """

    title: str
    why: str
    hint: str
    needs: tuple[str, ...] = ()
    line: re.Pattern[str] | None = None


_NO_COUNTS = "it holds no output-token counts"
REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "a page of the OpenAI usage API",
        "rows are totals over time, not requests",
        _GATEWAY_HINT,
        ("object", "data.results.num_model_requests"),
    ),
    Refusal(
        "an Anthropic usage export",
        "rows are daily totals, not requests",
        _GATEWAY_HINT,
        ("usage_date_utc", "usage_output_tokens"),
    ),
    Refusal(
        "a GuideLLM report whose request lists are empty",
        "only summaries are left in it",
        "run guidellm so that it keeps the requests in its output",
        ("metadata.guidellm_version", "benchmarks"),
    ),
    Refusal(
        "an inference-perf summary report",
        "it holds aggregated statistics only",
        "use the per_request report of inference-perf",
        ("load_summary", "successes"),
    ),
    Refusal(
        "a trace whose spans hold text and no gen_ai.usage counts",
        _NO_COUNTS,
        "record gen_ai.usage.output_tokens on the spans",
        ("spans.trace_id", "spans.start_time", "spans.attributes"),
    ),
    Refusal(
        "a Cloudflare AI Gateway Logpush file",
        "its bodies are encrypted and it has no token fields",
        "fetch the logs from the AI Gateway logs API, which has tokens_in and tokens_out",
        ("Gateway", "RequestBody", "ResponseBody"),
    ),
    Refusal(
        "an nginx access log",
        "it counts bytes, not tokens",
        _GATEWAY_HINT,
        ("request", "status", "body_bytes_sent"),
    ),
    Refusal(
        "a FastChat conversation log",
        "it holds texts and times but no token counts",
        "log the worker's usage counts beside them",
        ("tstamp", "type", "gen_params", "state"),
    ),
    Refusal(
        "a TensorRT-LLM performance export",
        "it holds timings but no token counts",
        "export the usage of each answer with them",
        ("request_id", "perf_metrics.timing_metrics"),
    ),
    Refusal(
        "an haproxy log",
        "it counts bytes, not tokens",
        _GATEWAY_HINT,
        line=re.compile(r"haproxy\[\d+\]:"),
    ),
    Refusal(
        "an Ollama or Gin access log",
        _NO_COUNTS,
        "log the API's answers, which have eval_count",
        line=re.compile(r"^\[GIN\]"),
    ),
    Refusal(
        "an SGLang text log",
        "text logs of this engine are not read yet",
        "use --log-requests-format json or the request metrics log",
        line=re.compile(r"Finish: obj=|#running-req"),
    ),
    Refusal(
        "a vLLM statistics log",
        "it holds averages over intervals, not requests",
        _ENGINE_HINT,
        line=re.compile(r"Avg prompt throughput|metrics\.py:\d+\]"),
    ),
    Refusal(
        "a vLLM server log",
        _NO_COUNTS,
        _ENGINE_HINT,
        line=re.compile(r"Received request |Added request |Finished request |vllm\.|api_server"),
    ),
    Refusal(
        "a TGI text log",
        "text logs of this engine are not read yet",
        "use --json-output",
        line=re.compile(r"text_generation_router"),
    ),
    Refusal(
        "a llama.cpp server log",
        "text logs of this engine are not read yet",
        "log the `timings` of its answers as JSON",
        line=re.compile(r"eval time =|slot (launch_slot_|release|print_timing)|srv  "),
    ),
    Refusal(
        "a web server access log",
        "it counts bytes, not tokens",
        _GATEWAY_HINT,
        line=re.compile(r'"(GET|POST|PUT|HEAD) \S+ HTTP/[\d.]+" \d{3} '),
    ),
)

_REQUEST_COUNTS = frozenset(
    {
        *("requests", "num_requests", "n_requests", "request_count", "requests_count"),
        *("num_model_requests", "total_requests", "calls", "num_calls", "call_count", "count"),
        *("invocations", "n_context_tokens_total", "api_requests"),
    }
)
_SUMMARY = re.compile(r"(^|_)(mean|avg|average|median|stdev|stddev|p50|p90|p95|p99)(_|$)")
_BUCKET = frozenset({"bucket", "le", "bin", "bucket_start", "bucket_end", "usage_date", "date"})
_TEXTS = frozenset(
    {
        *("prompt", "response", "completion", "text", "messages", "output", "answer", "content"),
        *("input", "question", "generated_text", "conversation", "conversations", "generation"),
    }
)


def refuse(refusal: Refusal, where: str) -> InputError:
    """The error for a recognised kind of log."""
    hint = refusal.hint[:1].upper() + refusal.hint[1:]
    return InputError(f"this is {refusal.title}", where=where, why=refusal.why, hint=hint)


def text_refusal(lines: Sequence[str], where: str) -> InputError:
    """The error for a log of text lines."""
    for refusal in REFUSALS:
        if refusal.line is not None and any(refusal.line.search(line) for line in lines):
            return refuse(refusal, where)
    return InputError(
        "this is a text log of no kind that is known",
        where=where,
        why=_NO_COUNTS + " that can be told from its lines",
        hint="Export CSV or JSON lines with one row a request and its output tokens",
    )


def aggregate(records: Sequence[Record], where: str) -> InputError | None:
    """The error for a table whose rows are totals of many requests; None if they are not."""
    names = {normalise(path.rpartition(".")[2]): path for path in key_paths(records)}
    counted = next((names[name] for name in names if name in _REQUEST_COUNTS), None)
    if counted is not None and any(_above_one(record, counted) for record in records):
        period = "daily totals" if {"date", "day", "usage_date"} & set(names) else "totals"
        return InputError(
            f"rows are {period} ({shown(counted)} column), not requests",
            where=where,
            why="the mean of a request can be had from them, its variation cannot",
            hint="Export one row a request",
        )
    return None


def no_output(records: Sequence[Record], where: str) -> InputError:
    """The error for records of no known format and without an output-token column."""
    paths = key_paths(records)
    names = {normalise(path.rpartition(".")[2]) for path in paths}
    found = _some(paths)
    if any(_distribution(record) for record in records):
        return _summary(where, "it holds tables of probabilities per window")
    candidate = next((p for p in paths if normalise(p.rpartition(".")[2]) in OUTPUT_NAMES), None)
    if candidate is not None:
        return InputError(
            "no known log format has these fields",
            where=where,
            why=f"it might count output tokens in {shown(candidate)}",
            hint=f"If so, say --map output_tokens={shown(candidate)}, and the others likewise",
        )
    if "total_tokens" in names:
        return InputError(
            "no output-token column; total_tokens cannot be split",
            where=where,
            why="prompt and output together do not tell how long the output was",
            hint="Export completion tokens apart, or name their column with --map output_tokens=",
        )
    if (
        names & _REQUEST_COUNTS
        or names & _BUCKET
        or sum(bool(_SUMMARY.search(n)) for n in names) > 1
    ):
        return _summary(where, "it holds aggregates")
    if names & _TEXTS:
        return InputError(
            "no token counts: the log holds texts",
            where=where,
            why="how many tokens a text has depends on the model's tokenizer, and is not guessed",
            hint="Export the usage of every answer (completion tokens) beside it",
        )
    return InputError(
        f"no output-token column among {found}",
        where=where,
        why="no known log format has these fields",
        hint="Name the column with --map output_tokens=COLUMN, or the format with --format",
    )


def matches(refusal: Refusal, record: Record) -> bool:
    """Whether a record shows all that tells this kind."""
    return bool(refusal.needs) and all(has_any(record, need) for need in refusal.needs)


def has_any(record: Record, need: str) -> bool:
    """Whether a record has one of the paths in ``a|b``."""
    return any(has(record, path) for path in need.split("|"))


def _summary(where: str, what: str) -> InputError:
    return InputError(
        "this is a summary, not a log of requests",
        where=where,
        why=f"{what}: how lengths vary from request to request is not in it",
        hint="Export one row a request",
    )


def _distribution(record: Record) -> bool:
    """Whether every value describes a distribution, as ServeGen's windows do."""
    values = [value for value in record.values() if isinstance(value, Mapping)]
    return len(values) == len(record) > 1 and all(
        all(isinstance(v, str) and v[:1] == "{" for v in value.values()) for value in values
    )


def _above_one(record: Record, path: str) -> bool:
    value = lookup(record, path)
    try:
        return float(str(value).replace(",", "")) > 1
    except ValueError:
        return False


def _some(paths: Sequence[str]) -> str:
    first = ", ".join(shown(path) for path in paths[:8])
    return first + (", ..." if len(paths) > 8 else "")
