"""Why nothing can be read off a trial: the answers are not those of a server at work."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from slotwise_workflows.probe.model import Alone, Baseline, Sample
from slotwise_workflows.probe.plan import ALONE_TOKENS
from slotwise_workflows.result import Reason

HONOURED_FROM = 0.8
"""Share of the tokens asked for that must have come."""
CACHED_BELOW = 0.25
"""Share of the time per token alone below which an answer was not made while it was sent."""
_CACHED_ALONE = 0.05
"""A request alone that was so much faster than the first one came from a cache itself."""
PACED_BELOW = 0.6
"""Share of the time per token: no server makes its first token faster than the others."""
_ENOUGH_TOKENS = 8
_MUCH_LONGER = 4
_AS_QUICK = 1.1
_SEVERAL = 1.5


def doubt(samples: Sequence[Sample], baseline: Baseline, alone: Alone) -> Reason | None:
    """What speaks against reading anything off these requests.

    Args:
        samples: Of one trial.
        baseline: What the first request alone took.
        alone: What all of them took.

    Returns:
        The reason: refused or failed requests, answers from a cache, lengths not honoured; None if
        nothing does.
    """
    failed = [sample for sample in samples if not sample.answered]
    limited = [sample for sample in failed if sample.fault == "rate_limited"]
    if limited:
        return Reason(code="rate_limited", numbers={"requests": len(limited)})
    if failed:
        fault = failed[0].fault
        return Reason(code="requests_failed", numbers={"requests": len(failed), "fault": fault})
    cached = [sample for sample in samples if _cached(sample, baseline, alone)]
    if cached:
        return Reason(code="cached_responses", numbers={"requests": len(cached)})
    unmet = [sample for sample in samples if _unmet(sample)]
    if unmet:
        return Reason(code="lengths_not_honoured", numbers={"requests": len(unmet)})
    return None


def paced(alone: Alone, baseline: Baseline) -> Reason | None:
    """Whether something between releases tokens at a pace of its own.

    The first token costs a pass over the prompt, which takes no less than a step. Where it comes
    in much less than the time of the others, the others were held back, and when a request really
    began or ended cannot be seen.
    """
    if not baseline.streams or alone.ttft_s >= PACED_BELOW * alone.seconds_per_token:
        return None
    numbers = {"ttft_ms": alone.ttft_s * 1e3, "per_token_ms": alone.seconds_per_token * 1e3}
    return Reason(code="paced", numbers=numbers)


def speculative(samples: Sequence[Sample], baseline: Baseline) -> bool:
    """Whether chunks carry several tokens: speculative decoding, or a proxy that joins them."""
    ratios = [
        sample.output_tokens / sample.chunks
        for sample in samples
        if sample.answered and sample.output_tokens is not None and sample.chunks > 0
    ]
    return baseline.streams and bool(ratios) and median(ratios) >= _SEVERAL


def _cached(sample: Sample, baseline: Baseline, alone: Alone) -> bool:
    """Far faster than requests alone: as fast as it can be sent."""
    if sample.first_token_ns is None or sample.last_token_ns is None:
        return False
    # Without the server's count, chunks with a token are what can be counted.
    uncounted = sample.chunks if baseline.streams else sample.asked_tokens
    tokens = sample.output_tokens or uncounted
    if tokens < _ENOUGH_TOKENS:
        return False
    if not baseline.streams:
        return _cached_whole(sample, tokens, baseline, alone)
    spent_s = (sample.last_token_ns - sample.first_token_ns) / 1e9
    pace_s = alone.seconds_per_token_min
    if pace_s < _CACHED_ALONE * baseline.seconds_per_token:
        pace_s = baseline.seconds_per_token
    # Over so few tokens, the noise of the first's and the last's time may look like pace.
    pace_s = max(0.0, pace_s - 4 * alone.noise_s / ALONE_TOKENS)
    return spent_s < CACHED_BELOW * (tokens - 1) * pace_s


def _cached_whole(sample: Sample, tokens: int, baseline: Baseline, alone: Alone) -> bool:
    """As quick as the quickest answer alone although much longer, on a quiet endpoint.

    The time of a whole answer holds that of the network, and whatever the request waited for.
    """
    spent_s = (sample.end_ns - sample.sent_ns) / 1e9
    return (
        not alone.varies
        and tokens >= _MUCH_LONGER * ALONE_TOKENS
        and spent_s <= _AS_QUICK * alone.latency_min_s
        and spent_s < CACHED_BELOW * tokens * baseline.seconds_per_token
    )


def _unmet(sample: Sample) -> bool:
    if sample.output_tokens is None:
        return sample.finish_reason == "stop"
    share = sample.output_tokens / sample.asked_tokens
    return not HONOURED_FROM <= share <= 1 / HONOURED_FROM
