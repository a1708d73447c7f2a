"""The measure of all further requests: one that has the server to itself."""

from __future__ import annotations

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.model import Baseline, Sample

_BUFFERED_FROM = 0.95
"""First token after this share of the answer's time: the tokens were held back to the end."""


def measure(sample: Sample) -> Baseline:
    """What a request alone takes.

    A stream whose tokens all come within the last twentieth of its time was held back to its end,
    by a server that answers in one piece or by a proxy. The time per token is that between the
    first and the last token where they are seen, else the whole time over the tokens. Without the
    server's count, the tokens asked for stand in.

    Args:
        sample: A request that had the server to itself, answered.

    Returns:
        Its times.

    Raises:
        EndpointError: Its times say nothing.
    """
    if sample.first_token_ns is None or sample.last_token_ns is None:
        raise EndpointError("the endpoint's first answer holds no token")
    ttft_s = (sample.first_token_ns - sample.sent_ns) / 1e9
    latency_s = (sample.last_token_ns - sample.sent_ns) / 1e9
    tokens = sample.output_tokens or sample.asked_tokens
    streams = sample.streamed and tokens > 1 and ttft_s < _BUFFERED_FROM * latency_s
    spent_s = (latency_s - ttft_s) / (tokens - 1) if streams else latency_s / tokens
    return Baseline(
        ttft_s=ttft_s,
        latency_s=latency_s,
        output_tokens=sample.output_tokens,
        seconds_per_token=max(spent_s, 1e-6),
        streams=streams,
    )
