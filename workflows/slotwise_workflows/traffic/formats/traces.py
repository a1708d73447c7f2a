"""Published traces and the workload files of simulators: requests, not the log of an engine."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format
from slotwise_workflows.traffic.formats.unpack import each

AZURE_LLM_TRACE = Format(
    id="azure_llm_trace",
    title="Azure LLM inference trace (2023, 2024, 2025)",
    needs=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    fields={
        "arrival": "TIMESTAMP",
        "prompt_tokens": "ContextTokens",
        "output_tokens": "GeneratedTokens",
    },
    utc=True,  # the 2023 files name no zone, the later ones name UTC
    verified=True,
)

BURSTGPT = Format(
    id="burstgpt",
    title="BurstGPT trace",
    needs=("Timestamp", "Request tokens", "Response tokens"),
    fields={
        "arrival": "Timestamp",
        "prompt_tokens": "Request tokens",
        "output_tokens": "Response tokens",
        "total_tokens": "Total tokens",
        "latency": "Elapsed time [s]",
        "model": "Model",
        "conversation": "Session ID",
    },
    time_unit="s",
    verified=True,
)

MOONCAKE = Format(
    id="mooncake",
    title="Mooncake trace",
    needs=("timestamp", "input_length", "output_length", "hash_ids"),
    fields={
        "arrival": "timestamp",
        "prompt_tokens": "input_length",
        "output_tokens": "output_length",
        "prefix_hash_ids": "hash_ids",
    },
    time_unit="ms",
    verified=True,
)

LLMSERVINGSIM_WORKLOAD = Format(
    id="llmservingsim_workload",
    title="LLMServingSim workload",
    needs=("arrival_time_ns", "input_toks", "output_toks"),
    fields={
        "arrival": "arrival_time_ns",
        "prompt_tokens": "input_toks",
        "output_tokens": "output_toks",
    },
    time_unit="ns",
    verified=True,
    bench=True,
)

BAILIAN = Format(
    id="bailian",
    title="Bailian trace",
    needs=("timestamp", "input_length", "output_length", "chat_id", "hash_ids"),
    fields={
        "arrival": "timestamp",
        "request_id": "chat_id",
        "prompt_tokens": "input_length",
        "output_tokens": "output_length",
        "prefix_hash_ids": "hash_ids",
    },
    time_unit="s",
)

AIBRIX = Format(
    id="aibrix",
    title="AIBrix workload",
    needs=("^.timestamp", "Prompt Length", "Output Length"),
    unpack=each("requests"),
    fields={
        "arrival": "^.timestamp",
        "prompt_tokens": "Prompt Length",
        "output_tokens": "Output Length",
    },
    time_unit="ms",
    verified=True,
    bench=True,
)

VIDUR = Format(
    id="vidur",
    title="Vidur trace",
    needs=("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    fields={
        "arrival": "arrived_at",
        "prompt_tokens": "num_prefill_tokens",
        "output_tokens": "num_decode_tokens",
    },
    time_unit="s",
    verified=True,
)

SPLITWISE = Format(
    id="splitwise",
    title="splitwise-sim trace",
    needs=("arrival_timestamp", "prompt_size", "token_size"),
    fields={
        "arrival": "arrival_timestamp",
        "prompt_tokens": "prompt_size",
        "output_tokens": "token_size",
    },
    time_unit="s",
)

WILDCHAT = Format(
    id="wildchat",
    title="WildChat conversations with usage",
    needs=("^.conversation_hash", "created", "usage.completion_tokens"),
    unpack=each("conversation", only=("role", "assistant")),
    fields={
        "request_id": "openai_id",
        "arrival": "created",
        "prompt_tokens": "usage.prompt_tokens",
        "output_tokens": "usage.completion_tokens",
        "reasoning_tokens": "usage.completion_tokens_details.reasoning_tokens",
        "total_tokens": "usage.total_tokens",
        "response_model": "^.model",
        "conversation": "^.conversation_hash",
    },
    managed=True,
)

FORMATS = (
    AZURE_LLM_TRACE,
    BURSTGPT,
    MOONCAKE,
    BAILIAN,
    LLMSERVINGSIM_WORKLOAD,
    AIBRIX,
    VIDUR,
    SPLITWISE,
    WILDCHAT,
)
