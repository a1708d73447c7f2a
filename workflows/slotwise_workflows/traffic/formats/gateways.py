"""What gateways and tracing tools in front of models record."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format
from slotwise_workflows.traffic.formats.unpack import otlp_spans

LITELLM_SPEND = Format(
    id="litellm_spend",
    title="LiteLLM spend logs",
    needs=("call_type", "startTime", "endTime", "completion_tokens", "spend"),
    fields={
        "request_id": "request_id",
        "arrival": "startTime",
        "end": "endTime",
        "first_token": "completionStartTime",
        "prompt_tokens": ("prompt_tokens", "metadata.usage_object.prompt_tokens"),
        "output_tokens": ("completion_tokens", "metadata.usage_object.completion_tokens"),
        "reasoning_tokens": ("metadata.usage_object.completion_tokens_details.reasoning_tokens",),
        "total_tokens": "total_tokens",
        "model": "model",
        "provider": "custom_llm_provider",
        "operation": "call_type",
        "conversation": "session_id",
        "status": ("status", "metadata.status"),
        "error": "metadata.error_information",
        "cache_hit": "cache_hit",
    },
    utc=True,
)

LITELLM_STANDARD = Format(
    id="litellm_standard",
    title="LiteLLM standard logging payload",
    needs=("startTime", "endTime", "completion_tokens", "response_time"),
    fields={
        "request_id": "id",
        "arrival": "startTime",
        "end": "endTime",
        # `response_time` is this minus the start when streaming, the whole latency otherwise.
        "first_token": "completionStartTime",
        "prompt_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "total_tokens": "total_tokens",
        "max_tokens": "model_parameters.max_tokens",
        "model": "model",
        "provider": "custom_llm_provider",
        "operation": "call_type",
        "conversation": "trace_id",
        "stream": "stream",
        "status": "status",
        "error": ("error_str", "error_information"),
        "cache_hit": "cache_hit",
    },
    utc=True,
)

LANGFUSE = Format(
    id="langfuse",
    title="Langfuse observations (CSV, JSON or JSONL export, or the API)",
    needs=("type", "startTime", "usageDetails"),
    fields={
        "request_id": "id",
        "arrival": "startTime",
        # Latencies are milliseconds in exports and seconds in the API: the stamps say it alike.
        "end": "endTime",
        "first_token": "completionStartTime",
        # The kinds of usage stand side by side: `input` does not hold `input_cached_tokens`.
        "prompt_tokens": ("usageDetails.input*", "usage.input", "promptTokens"),
        "cached_tokens": ("usageDetails.input_cached_tokens", "usageDetails.input_cache_read"),
        "output_tokens": ("usageDetails.output*", "usage.output", "completionTokens"),
        "reasoning_tokens": "usageDetails.output_reasoning*",
        "max_tokens": "modelParameters.max_tokens",
        "model": ("providedModelName", "model"),
        "conversation": "sessionId",
        "status": "level",
    },
    utc=True,
    not_generation=("type!=GENERATION",),
)

OTEL_GENAI = Format(
    id="otel_genai",
    title="OpenTelemetry GenAI spans (OTLP JSON)",
    needs=(
        "startTimeUnixNano",
        "gen_ai.usage.output_tokens|gen_ai.usage.completion_tokens",
    ),
    unpack=otlp_spans,
    fields={
        "request_id": "gen_ai.response.id",
        "arrival": "startTimeUnixNano",
        "end": "endTimeUnixNano",
        "ttft": (
            "gen_ai.response.time_to_first_chunk",
            "gen_ai.server.time_to_first_token",
        ),
        "prompt_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
        "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
        "max_tokens": "gen_ai.request.max_tokens",
        "choices": "gen_ai.request.choice.count",
        "model": "gen_ai.request.model",
        "response_model": "gen_ai.response.model",
        "provider": ("gen_ai.provider.name", "gen_ai.system"),
        "operation": "gen_ai.operation.name",
        "conversation": "gen_ai.conversation.id",
        "stream": "gen_ai.request.stream",
        "finish_reason": "gen_ai.response.finish_reasons",
        "error": "error.type",
        "span_id": "spanId",
        "parent_id": "parentSpanId",
    },
    failed=("status.code=2", "status.code=STATUS_CODE_ERROR"),
    not_generation=(
        "gen_ai.operation.name= & gen_ai.usage.output_tokens= & gen_ai.usage.completion_tokens=",
    ),
)

OPENROUTER = Format(
    id="openrouter",
    title="OpenRouter activity export",
    needs=("generation_id", "tokens_prompt", "tokens_completion", "generation_time_ms"),
    fields={
        "request_id": "generation_id",
        "arrival": "created_at",
        "latency": "generation_time_ms [ms]",
        "ttft": "time_to_first_token_ms [ms]",
        "prompt_tokens": "tokens_prompt",
        "cached_tokens": "tokens_cached",
        "output_tokens": "tokens_completion",
        "reasoning_tokens": "tokens_reasoning",
        "model": "model_permaslug",
        "provider": "provider_name",
        "stream": "streamed",
        "finish_reason": "finish_reason_normalized",
        "status": "finish_reason_normalized",
    },
    utc=True,
    cancelled=("cancelled=true",),
    managed=True,
)

HELICONE = Format(
    id="helicone",
    title="Helicone request export",
    needs=("request_created_at", "response_created_at", "completion_tokens"),
    fields={
        "request_id": ("response_id", "request_id"),
        "arrival": "request_created_at",
        "latency": ("latency [ms]", "delay_ms [ms]"),
        "ttft": "time_to_first_token [ms]",
        "prompt_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "model": ("model", "response_model", "request_model"),
        "provider": "provider",
        "path": "request_path",
        "status": "response_status",
    },
    utc=True,
)

PORTKEY = Format(
    id="portkey",
    title="Portkey log export",
    needs=("created_at", "req_units", "res_units", "response_time"),
    fields={
        "request_id": "id",
        "end": "created_at",
        "latency": "response_time [ms]",
        "prompt_tokens": "req_units",
        "output_tokens": "res_units",
        "model": "ai_model",
        "provider": "ai_org",
        "conversation": "trace_id",
        "path": "request_url",
        "stream": "stream_mode",
        "status": "response_status_code",
        "cache_hit": "cache_status",
    },
    utc=True,
    failed=("is_success=0", "is_success=false"),
)

ENVOY_AI = Format(
    id="envoy_ai_gateway",
    title="Envoy AI Gateway access log",
    needs=(
        "start_time",
        "response_code",
        "gen_ai.usage.output_tokens|genai_tokens_output",
    ),
    fields={
        "request_id": "x-request-id",
        "arrival": "start_time",
        "latency": "duration [ms]",
        "prompt_tokens": ("gen_ai.usage.input_tokens", "genai_tokens_input"),
        "output_tokens": ("gen_ai.usage.output_tokens", "genai_tokens_output"),
        "model": ("gen_ai.request.model", "genai_model_name"),
        "response_model": "gen_ai.response.model",
        "path": ("x-envoy-origin-path", "path"),
        "user_agent": "user-agent",
        "status": "response_code",
    },
    not_generation=("mcp.method.name!=",),
)

FORMATS = (
    LITELLM_SPEND,
    LITELLM_STANDARD,
    LANGFUSE,
    OTEL_GENAI,
    OPENROUTER,
    HELICONE,
    PORTKEY,
    ENVOY_AI,
)
