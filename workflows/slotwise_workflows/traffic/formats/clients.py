"""What benchmark clients write: times as the client saw them, lengths as the load set them."""

from __future__ import annotations

from slotwise_workflows.traffic.formats.format import Format
from slotwise_workflows.traffic.formats.unpack import each

INFERENCE_PERF = Format(
    id="inference_perf",
    title="inference-perf per-request report",
    needs=("scheduled_time", "start_time", "end_time", "info.response_metrics"),
    fields={
        "arrival": "start_time",
        "end": "end_time",
        "prompt_tokens": (
            "info.response_metrics.server_usage.prompt_tokens",
            "info.input_tokens",
        ),
        "output_tokens": (
            "info.response_metrics.server_usage.completion_tokens",
            "info.response_metrics.output_tokens",
        ),
        "conversation": "session_id",
        "error": "error",
    },
    time_unit="s",
    monotonic=True,
    bench=True,
)

AIPERF = Format(
    id="aiperf",
    title="AIPerf profile export",
    needs=("metadata.request_start_ns", "metrics.output_sequence_length.value"),
    fields={
        "request_id": "metadata.x_request_id",
        "arrival": "metadata.request_start_ns",
        "latency": "metrics.request_latency.value [ms]",
        "ttft": "metrics.time_to_first_token.value [ms]",
        "prompt_tokens": "metrics.input_sequence_length.value",
        "output_tokens": "metrics.output_sequence_length.value",
        "conversation": "metadata.conversation_id",
        "error": "error",
    },
    time_unit="ns",
    cancelled=("metadata.was_cancelled=true",),
    bench=True,
)

PERF_ANALYZER = Format(
    id="perf_analyzer",
    title="perf_analyzer profile export",
    needs=("timestamp", "request_inputs", "response_timestamps", "response_outputs"),
    unpack=each("experiments", "requests"),
    fields={
        "arrival": "timestamp",
        "end": "response_timestamps.-1",
        "first_token": "response_timestamps.0",
        "prompt_tokens": "response_outputs.response.usage.prompt_tokens",
        "output_tokens": "response_outputs.response.usage.completion_tokens",
        "max_tokens": "request_inputs.payload.max_tokens",
        "model": "request_inputs.payload.model",
        "finish_reason": "response_outputs.response.choices.finish_reason",
    },
    time_unit="ns",
    bench=True,
)

FORMATS = (INFERENCE_PERF, AIPERF, PERF_ANALYZER)
