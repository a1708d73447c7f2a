"""What this program writes itself."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format

SLOTWISE_TRAFFIC = Format(
    id="slotwise_traffic",
    title="traffic.parquet of an earlier run",
    needs=("start_time", "gen_ai.usage.output_tokens", "e2e_latency", "source", "truncated"),
    fields={
        "request_id": "request_id",
        "arrival": "start_time",
        "end": "end_time",
        "clock": "clock",
        "latency": "e2e_latency",
        "ttft": "gen_ai.response.time_to_first_chunk",
        "prompt_tokens": "gen_ai.usage.input_tokens",
        "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
        "max_tokens": "gen_ai.request.max_tokens",
        "choices": "gen_ai.request.choice.count",
        "model": "gen_ai.request.model",
        "response_model": "gen_ai.response.model",
        "provider": "gen_ai.provider.name",
        "operation": "gen_ai.operation.name",
        "conversation": "gen_ai.conversation.id",
        "stream": "gen_ai.request.stream",
        "finish_reason": "gen_ai.response.finish_reasons",
        "prefix_hash_ids": "prefix_hash_ids",
        "status": "error.type",
        "cache_hit": "cache_hit",
    },
    time_unit="ns",
    utc=True,
    cancelled=("aborted=true",),
    verified=True,
)

SLOTWISE_PROBE = Format(
    id="slotwise_probe",
    title="probe.jsonl of slotwise probe",
    needs=("sent_ns", "first_token_ns", "last_token_ns", "asked_tokens"),
    fields={
        "arrival": "sent_ns",
        "latency": "last_token_ns - sent_ns [ns]",
        "ttft": "first_token_ns - sent_ns [ns]",
        "prompt_tokens": "prompt_tokens",
        "output_tokens": "output_tokens",
        "max_tokens": "asked_tokens",
        "finish_reason": "finish_reason",
        "stream": "streamed",
        "status": "status",
        "error": "fault",
    },
    time_unit="ns",
    monotonic=True,
    verified=True,
    bench=True,
)

FORMATS = (SLOTWISE_TRAFFIC, SLOTWISE_PROBE)
