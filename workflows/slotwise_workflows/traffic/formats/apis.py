"""What model APIs answer, and the logs their providers write."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format

OPENAI_CHAT = Format(
    id="openai_chat",
    title="OpenAI-style chat or text completions",
    needs=("created", "choices", "usage"),
    fields={
        "request_id": "id",
        "arrival": "created",
        "prompt_tokens": "usage.prompt_tokens",
        "cached_tokens": "usage.prompt_tokens_details.cached_tokens",
        "output_tokens": "usage.completion_tokens",
        "reasoning_tokens": "usage.completion_tokens_details.reasoning_tokens",
        "total_tokens": "usage.total_tokens",
        "choices": "n",
        "response_model": "model",
        "operation": "object",
        "finish_reason": "choices.finish_reason",
        "error": "error",
    },
    chunk=("object=chat.completion.chunk & usage.completion_tokens=",),
    chunks_share_id=True,
)

OPENAI_RESPONSES = Format(
    id="openai_responses",
    title="OpenAI Responses",
    needs=("created_at", "status", "usage.output_tokens"),
    fields={
        "request_id": "id",
        "arrival": "created_at",
        "end": "completed_at",
        "prompt_tokens": "usage.input_tokens",
        "cached_tokens": "usage.input_tokens_details.cached_tokens",
        "output_tokens": "usage.output_tokens",
        "reasoning_tokens": "usage.output_tokens_details.reasoning_tokens",
        "total_tokens": "usage.total_tokens",
        "max_tokens": "max_output_tokens",
        "response_model": "model",
        "conversation": "previous_response_id",
        "finish_reason": "incomplete_details.reason",
        "status": "status",
        "error": "error",
    },
    managed=True,
)

OPENAI_BATCH = Format(
    id="openai_batch",
    title="OpenAI or Azure OpenAI batch output",
    needs=("custom_id", "response.body.usage"),
    # `created` says when the batch got round to it: no arrival.
    fields={
        "request_id": ("response.request_id", "custom_id"),
        "prompt_tokens": ("response.body.usage.prompt_tokens", "response.body.usage.input_tokens"),
        "output_tokens": (
            "response.body.usage.completion_tokens",
            "response.body.usage.output_tokens",
        ),
        "reasoning_tokens": (
            "response.body.usage.completion_tokens_details.reasoning_tokens",
            "response.body.usage.output_tokens_details.reasoning_tokens",
        ),
        "total_tokens": "response.body.usage.total_tokens",
        "response_model": "response.body.model",
        "finish_reason": (
            "response.body.choices.finish_reason",
            "response.body.incomplete_details.reason",
        ),
        "operation": "response.body.object",
        "status": "response.status_code",
        "error": "error",
    },
    managed=True,
    offline=True,
    verified=True,
)

ANTHROPIC_MESSAGES = Format(
    id="anthropic_messages",
    title="Anthropic messages",
    needs=("role", "stop_reason", "usage.input_tokens", "usage.output_tokens"),
    fields={
        "request_id": "id",
        "prompt_tokens": (
            "usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens"
        ),
        "cached_tokens": "usage.cache_read_input_tokens",
        "output_tokens": "usage.output_tokens",
        "response_model": "model",
        "finish_reason": "stop_reason",
        "error": "error",
    },
    managed=True,
)

ANTHROPIC_BATCH = Format(
    id="anthropic_batch",
    title="Anthropic message batch results",
    needs=("custom_id", "result.type", "result.message.usage.output_tokens"),
    fields={
        "request_id": ("result.message.id", "custom_id"),
        "prompt_tokens": (
            "result.message.usage.input_tokens + result.message.usage.cache_creation_input_tokens"
            " + result.message.usage.cache_read_input_tokens"
        ),
        "cached_tokens": "result.message.usage.cache_read_input_tokens",
        "output_tokens": "result.message.usage.output_tokens",
        "response_model": "result.message.model",
        "finish_reason": "result.message.stop_reason",
        "status": "result.type",
        "error": "result.error",
    },
    managed=True,
    offline=True,
)

CLAUDE_SESSION = Format(
    id="claude_session",
    title="Claude Code session, or another log of messages with their usage",
    needs=("timestamp", "message.id", "message.usage.output_tokens"),
    fields={
        "request_id": "message.id",
        "written": "timestamp",
        "prompt_tokens": (
            "message.usage.input_tokens + message.usage.cache_creation_input_tokens"
            " + message.usage.cache_read_input_tokens"
        ),
        "cached_tokens": "message.usage.cache_read_input_tokens",
        "output_tokens": "message.usage.output_tokens",
        "response_model": "message.model",
        "conversation": "sessionId",
        "finish_reason": "message.stop_reason",
    },
    not_generation=("message.usage=",),
    managed=True,
)

BEDROCK = Format(
    id="bedrock_invocation",
    title="Amazon Bedrock model invocation log",
    needs=("modelId", "requestId", "input.inputTokenCount"),
    fields={
        "request_id": "requestId",
        "arrival": "timestamp",
        "latency": (
            "output.outputBodyJson.metrics.latencyMs [ms]",
            "output.outputBodyJson.metadata.metrics.latencyMs [ms]",
            "output.outputBodyJson.amazon-bedrock-invocationMetrics.invocationLatency [ms]",
        ),
        "ttft": "output.outputBodyJson.amazon-bedrock-invocationMetrics.firstByteLatency [ms]",
        "prompt_tokens": (
            "input.inputTokenCount + input.cacheReadInputTokenCount"
            " + input.cacheWriteInputTokenCount"
        ),
        "cached_tokens": "input.cacheReadInputTokenCount",
        "output_tokens": "output.outputTokenCount",
        "model": "modelId",
        "operation": "operation",
        "finish_reason": (
            "output.outputBodyJson.stopReason",
            "output.outputBodyJson.stop_reason",
            "output.outputBodyJson.messageStop.stopReason",
            "output.outputBodyJson.delta.stop_reason",
        ),
        "error": "errorCode",
    },
    managed=True,
)

APIM_LLM_LOG = Format(
    id="apim_llm_log",
    title="Azure API Management LLM log",
    needs=("CorrelationId", "PromptTokens", "CompletionTokens"),
    fields={
        "request_id": "CorrelationId",
        "arrival": ("TimeGenerated", "TimeGenerated [UTC]"),
        "prompt_tokens": "PromptTokens",
        "output_tokens": "CompletionTokens",
        "total_tokens": "TotalTokens",
        "stream": "IsStreamCompletion",
        "model": "ModelName",
    },
    utc=True,
    date_order="mdy",
    chunk=("CompletionTokens= & SequenceNumber!= & SequenceNumber!=0",),
    chunks_share_id=True,
)

FORMATS = (
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    OPENAI_BATCH,
    ANTHROPIC_MESSAGES,
    ANTHROPIC_BATCH,
    CLAUDE_SESSION,
    BEDROCK,
    APIM_LLM_LOG,
)
