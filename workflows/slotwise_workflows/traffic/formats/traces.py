"""Published traces and the workload files of simulators: requests, not the log of an engine."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format

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
)

FORMATS = (AZURE_LLM_TRACE, BURSTGPT, MOONCAKE, LLMSERVINGSIM_WORKLOAD)
