"""The measure of all further requests: ones that have the server to themselves."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.model import Alone, Baseline, Sample

_BUFFERED_FROM = 0.95
"""First token after this share of the answer's time: the tokens were held back to the end."""
_VARIES_TTFTS = 2.0
_VARIES_STEPS = 3.0
_MATTERS = 0.3
_COLD = 2
_CACHED = 0.1
"""Share of the first one's time per token; no server was ever so cold."""
_OTHER_LENGTH = 2.0
_LEAST_SHARE = 0.2
"""Of the time per token with all that goes with it; noise would else leave none."""


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


def pace_s(sample: Sample) -> float:
    """Seconds between a streamed answer's first and last token, for each token but the first."""
    if sample.first_token_ns is None or sample.last_token_ns is None:
        raise ValueError("an answered request has its first and last token")
    tokens = sample.output_tokens or sample.asked_tokens
    spent_s = (sample.last_token_ns - sample.first_token_ns) / 1e9
    return max(spent_s / max(1, tokens - 1), 1e-6)


def median_step(samples: Sequence[Sample]) -> list[float]:
    """The median time between chunks with a token, in seconds; empty if there are too few.

    Of all chunks of an answer, not those of one moment: a network brings several at once.
    """
    steps = [
        (sample.last_token_ns - sample.first_token_ns) / 1e9 / (sample.chunks - 1)
        for sample in samples
        if sample.first_token_ns is not None
        and sample.last_token_ns is not None
        and sample.chunks > 1
    ]
    return [median(steps)] if steps else []


def refine(samples: Sequence[Sample]) -> Baseline:
    """The measure of several requests alone: the first may have found a cold server.

    The time to the first token is the least of all, the time per token the median of all but the
    first. Where only whole answers are seen, two lengths tell the time per token from what every
    answer takes.

    Args:
        samples: Requests alone, the first one first; at least that one answered.

    Returns:
        Their times; `ttft_s` is what every answer takes, where only whole answers are seen.
    """
    first = measure(samples[0])
    later = [sample for sample in samples[1:] if sample.answered]
    if not later:
        return first
    each = [measure(sample) for sample in later]
    # Of an answer that waited long for its first token, the rest may come in its last twentieth.
    if first.streams or any(one.streams for one in each):
        later_pace_s = median(map(pace_s, later))
        if later_pace_s < _CACHED * first.seconds_per_token:
            return first  # the others came from a cache
        return first.model_copy(
            update={
                "streams": True,
                "ttft_s": min(one.ttft_s for one in (first, *each)),
                "seconds_per_token": later_pace_s,
            }
        )
    tokens = [sample.output_tokens or sample.asked_tokens for sample in later]
    longest, shortest = tokens.index(max(tokens)), tokens.index(min(tokens))
    whole_s = each[longest].latency_s / tokens[longest]
    if whole_s < _CACHED * first.seconds_per_token:
        return first
    if tokens[longest] < _OTHER_LENGTH * tokens[shortest]:
        return first.model_copy(update={"seconds_per_token": whole_s})
    apart_s = each[longest].latency_s - each[shortest].latency_s
    own_pace_s = apart_s / (tokens[longest] - tokens[shortest])
    own_pace_s = max(min(max(own_pace_s, _LEAST_SHARE * whole_s), whole_s), 1e-6)
    own_s = each[longest].latency_s - own_pace_s * tokens[longest]
    return first.model_copy(
        update={"ttft_s": max(own_s, own_pace_s), "seconds_per_token": own_pace_s}
    )


def summarise(
    samples: Sequence[Sample],
    baseline: Baseline,
    *,
    openers: Sequence[Sample] = (),
    shortest_s: float = 0.0,
) -> Alone:
    """What the requests alone say together, and whether they say the same.

    On a quiet endpoint they differ by the noise of the network and of a step. One that takes twice
    the median and three tokens' time more to its first token has waited for somebody, and matters
    if that is a third of what the shortest request of a trial takes: its place could be mistaken.

    Args:
        samples: The requests alone, the baseline among them; failed ones are left out.
        baseline: The first of them.
        openers: The first requests of the trials: alone until their first token.
        shortest_s: What the shortest request of a trial takes.

    Returns:
        Their summary.
    """
    answered = [sample for sample in samples if sample.answered]
    # The first one may have found a cold server.
    warm = answered[1:] if len(answered) > _COLD else answered
    each = [measure(sample) for sample in warm]
    if baseline.streams:
        opened = [measure(sample) for sample in openers if sample.answered]
        ttfts = [one.ttft_s for one in (*each, *opened)]
        paces = [pace_s(sample) for sample in warm]
    else:
        ttfts = [baseline.ttft_s]
        own_s = baseline.ttft_s
        paces = [
            max(1e-6, one.latency_s - own_s) / (sample.output_tokens or sample.asked_tokens)
            for sample, one in zip(warm, each, strict=True)
        ]
    middle, middle_pace_s = median(ttfts), median(paces)
    noise_s = middle - min(ttfts)
    excess_s = max(ttfts) - middle
    expected_s = (_VARIES_TTFTS - 1) * middle + _VARIES_STEPS * middle_pace_s
    if not baseline.streams:  # whole answers: what they took beyond what their lengths explain
        over = [
            one.latency_s
            - baseline.ttft_s
            - baseline.seconds_per_token * (sample.output_tokens or sample.asked_tokens)
            for sample, one in zip(warm, each, strict=True)
        ]
        excess_s = max(over)
        expected_s = _VARIES_TTFTS * baseline.ttft_s + _VARIES_STEPS * middle_pace_s
    return Alone(
        requests=len(answered),
        ttft_s=middle,
        ttft_min_s=min(ttfts),
        ttft_max_s=max(ttfts),
        latency_min_s=min(one.latency_s for one in each),
        noise_s=noise_s,
        seconds_per_token=middle_pace_s,
        step_s=max([middle_pace_s, *median_step(warm)]),
        seconds_per_token_min=min(paces),
        seconds_per_token_max=max(paces),
        wait_s=max(0.0, excess_s),
        varies=excess_s > max(expected_s, _MATTERS * shortest_s),
    )
