"""What inference engines, and the benchmark clients made for them, write."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format
from slotwise_workflows.traffic.formats.unpack import otlp_spans, parallel

VLLM_MEASURED = Format(
    id="vllm_measured",
    title="vLLM request times as LLMServingSim records them",
    needs=("arrival_time", "queued_ts", "last_token_ts", "output_toks"),
    fields={
        "request_id": "request_id",
        "arrival": "arrival_time",
        # arrival_time is wall clock, the *_ts are monotonic: differences only within one of them.
        "latency": "last_token_ts - queued_ts",
        "ttft": "first_token_ts - queued_ts",
        "prompt_tokens": "input_toks",
        "output_tokens": "output_toks",
    },
    engine="batches",
    flags=("two_clocks",),
    verified=True,
    bench=True,
)

VLLM_BENCH = Format(
    id="vllm_bench",
    title="vllm bench serve --save-detailed",
    needs=("input_lens", "output_lens"),
    unpack=parallel("output_lens"),
    fields={
        "arrival": "start_times",
        "latency": "latencies",
        "ttft": "ttfts",
        "prompt_tokens": "input_lens",
        "output_tokens": "output_lens",
        "model": "model_id",
        "error": "errors",
    },
    time_unit="s",
    monotonic=True,
    bench=True,
)

VLLM_OTEL = Format(
    id="vllm_otel",
    title="vLLM trace spans (OTLP JSON)",
    needs=(
        "startTimeUnixNano",
        "gen_ai.usage.completion_tokens|gen_ai.usage.output_tokens",
        "gen_ai.latency.e2e|gen_ai.latency.time_in_queue|gen_ai.latency.time_to_first_token",
    ),
    unpack=otlp_spans,
    fields={
        "request_id": "gen_ai.request.id",
        "arrival": "startTimeUnixNano",
        "latency": "gen_ai.latency.e2e",
        "end": "endTimeUnixNano",
        "ttft": "gen_ai.latency.time_to_first_token",
        "prompt_tokens": ("gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens"),
        "output_tokens": ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens"),
        "max_tokens": "gen_ai.request.max_tokens",
        "choices": ("gen_ai.request.n", "gen_ai.usage.num_sequences"),
        "model": "gen_ai.request.model",
        "response_model": "gen_ai.response.model",
        "operation": "gen_ai.operation.name",
        "finish_reason": "gen_ai.response.finish_reasons",
        "error": "error.type",
        "span_id": "spanId",
        "parent_id": "parentSpanId",
    },
    failed=("status.code=2", "status.code=STATUS_CODE_ERROR"),
    not_generation=("gen_ai.usage.completion_tokens= & gen_ai.usage.output_tokens= & error.type=",),
    engine="batches",
)

VLLM_REQUEST_METRICS = Format(
    id="vllm_request_metrics",
    title="vLLM answers with per-request metrics",
    needs=("created", "usage.completion_tokens", "choices", "metrics.generation_time_ms"),
    fields={
        "request_id": "id",
        "arrival": "created",
        "latency": (
            "metrics.generation_time_ms + metrics.time_to_first_token_ms + "
            "metrics.queue_time_ms [ms]"
        ),
        "ttft": "metrics.time_to_first_token_ms + metrics.queue_time_ms [ms]",
        "prompt_tokens": "usage.prompt_tokens",
        "cached_tokens": "usage.prompt_tokens_details.cached_tokens",
        "output_tokens": "usage.completion_tokens",
        "reasoning_tokens": "usage.completion_tokens_details.reasoning_tokens",
        "total_tokens": "usage.total_tokens",
        "response_model": "model",
        "finish_reason": "choices.finish_reason",
        "error": "error",
    },
    engine="batches",
)

SGLANG_REQUEST_METRICS = Format(
    id="sglang_request_metrics",
    title="SGLang request metrics log",
    needs=("request_received_ts", "completion_tokens", "e2e_latency"),
    fields={
        "request_id": ("id", "request_parameters.rid"),
        "arrival": "request_received_ts",
        "latency": "e2e_latency",
        "prompt_tokens": "prompt_tokens",
        "cached_tokens": "cached_tokens",
        "output_tokens": "completion_tokens",
        "reasoning_tokens": "reasoning_tokens",
        "max_tokens": "request_parameters.sampling_params.max_new_tokens",
        "choices": "request_parameters.sampling_params.n",
        "stream": "request_parameters.stream",
        "finish_reason": ("finish_reason.type", "finish_reason"),
    },
    engine="batches",
)

SGLANG_JSON_LOG = Format(
    id="sglang_json_log",
    title="SGLang server log with --log-requests-format json",
    needs=("event", "rid", "out.meta_info.completion_tokens"),
    fields={
        "request_id": "rid",
        # The line's own `timestamp` is naive local time and says when it was written.
        "arrival": "out.meta_info.request_received_ts",
        "latency": "out.meta_info.e2e_latency",
        "prompt_tokens": "out.meta_info.prompt_tokens",
        "cached_tokens": "out.meta_info.cached_tokens",
        "output_tokens": "out.meta_info.completion_tokens",
        "reasoning_tokens": "out.meta_info.reasoning_tokens",
        "max_tokens": "obj.sampling_params.max_new_tokens",
        "choices": "obj.sampling_params.n",
        "stream": "obj.stream",
        "finish_reason": ("out.meta_info.finish_reason.type", "out.meta_info.finish_reason"),
    },
    not_generation=("event!=request.finished",),
    engine="batches",
)

TGI_JSON_LOG = Format(
    id="tgi_json_log",
    title="Text Generation Inference log with --json-output",
    needs=("timestamp", "span.total_time", "span.inference_time", "span.time_per_token"),
    fields={
        "end": "timestamp",
        "latency": "span.total_time",
        # The log counts no tokens, but says how long all of them and one of them took.
        "output_tokens": "span.inference_time / span.time_per_token",
        "operation": "span.name",
    },
    utc=True,
    failed=("level=ERROR",),
    not_generation=("span.total_time= & level!=ERROR",),
    engine="batches",
)

OLLAMA = Format(
    id="ollama",
    title="Ollama API answers",
    needs=("model", "created_at", "done"),
    fields={
        "end": "created_at",
        "latency": "total_duration [ns]",
        "prompt_tokens": "prompt_eval_count",
        "output_tokens": "eval_count",
        "response_model": "model",
        "finish_reason": "done_reason",
        "error": "error",
    },
    chunk=("done=false",),
    not_generation=("done_reason=load", "done_reason=unload"),
    verified=True,
)

FORMATS = (
    VLLM_MEASURED,
    VLLM_BENCH,
    VLLM_OTEL,
    VLLM_REQUEST_METRICS,
    SGLANG_REQUEST_METRICS,
    SGLANG_JSON_LOG,
    TGI_JSON_LOG,
    OLLAMA,
)
