"""A probe's result in sentences, for the console."""

from __future__ import annotations

from collections.abc import Mapping

from slotwise_workflows.probe.model import ProbeResult
from slotwise_workflows.result import Reason

VERDICTS: Mapping[str, str] = {
    "continuous": "It batches continuously: a request joins while others are being answered.",
    "static": "It batches at once: requests wait until the batch before them has ended.",
    "serial": "It answers one request at a time.",
    "undetermined": "How it batches cannot be told from outside.",
}

REASONS: Mapping[str, str] = {
    "joined_at_once": "all {shorts} short requests began while the long one was being answered",
    "ran_as_a_group": "all {shorts} short requests waited for the long one to end, and then ran "
    "together ({overlap:.1f} at once on average)",
    "ran_by_turn": "all {shorts} short requests waited for the long one to end, and then ran one "
    "after the other; a limit of one request in front of a batching server looks the same",
    "some_joined": "{joined} of {shorts} short requests began at once, {late} later and {waited} "
    "only after the long one: several servers, or fewer slots than requests",
    "overlap_unclear": "all {shorts} short requests waited for the long one to end, but whether "
    "they then ran together is unclear ({overlap:.1f} at once on average)",
    "rate_limited": "the endpoint limits the rate of requests: {requests} were turned away",
    "requests_failed": "{requests} requests failed, the first with {fault}",
    "lengths_not_honoured": "{requests} answers were shorter than asked for: the model ends by "
    "itself, or the endpoint caps max_tokens",
    "long_too_short": "the long request ended before the short ones could be seen beside it: the "
    "endpoint is too fast for so few tokens; allow more --max-tokens",
    "trials_differ": "the trials contradict each other: other people's requests, or several "
    "servers behind one address",
}

REMARKS: Mapping[str, str] = {
    "continuous": "At least {slots} requests ran at once. A fleet of as many idle servers looks "
    "the same.",
    "buffered": "Its tokens do not arrive as they are made, so only the ends of answers were seen.",
    "batch": "Answers of a batch are released together.",
    "own": "Each answer of a batch is released when it is done.",
}


def explain(result: ProbeResult) -> list[str]:
    """The verdict, why, and what limits it, a sentence a line."""
    lines = [
        VERDICTS[result.batching],
        f"  Why: {sentence(result.reason)}.",
        f"  Confidence: {result.confidence}, from {len(result.trials)} trials.",
    ]
    if result.batching == "continuous" and result.baseline.streams:
        lines.append("  " + REMARKS["continuous"].format(slots=result.slots_at_least))
    if result.release is not None:
        lines.append("  " + REMARKS[result.release])
    if not result.baseline.streams:
        lines.append("  " + REMARKS["buffered"])
    lines.append(
        f"  Alone, a request takes {result.baseline.ttft_s * 1000:.0f} ms to its first token and "
        f"{result.baseline.seconds_per_token * 1000:.1f} ms for each further one."
        if result.baseline.streams
        else f"  Alone, a request of {result.samples[0].asked_tokens} tokens takes "
        f"{result.baseline.latency_s:.2f} s."
    )
    lines.append(
        f"  Sent: {result.requests_sent} requests, {result.output_tokens} output tokens counted."
    )
    return lines


def sentence(reason: Reason) -> str:
    """A reason's sentence, without a full stop."""
    return REASONS[reason.code].format(**reason.numbers)
