"""A probe's result in sentences, for the console."""

from __future__ import annotations

from collections.abc import Mapping

from slotwise_workflows.probe.model import ProbeResult
from slotwise_workflows.result import Reason

VERDICTS: Mapping[str, str] = {
    "continuous": "It batches continuously: a request joins while others are being answered.",
    "static": "It batches at once: requests wait until the batch before them has ended.",
    "dynamic": "It batches at once, and waits a little for company: requests that come within that "
    "time share a batch, and the others wait until it has ended.",
    "serial": "It answers one request at a time, or a limit of one request in flight lies before "
    "it.",
    "undetermined": "How it batches cannot be told from outside.",
}

REASONS: Mapping[str, str] = {
    "joined_at_once": "all {shorts} short requests began while the long one was being answered",
    "few_slots": "{joined} of {shorts} short requests began at once beside the long one, and each "
    "other one as soon as one of the {together} had ended",
    "refilled": "of {requests} requests, {together} ran at once, and each other one began as soon "
    "as one had ended",
    "ran_as_a_group": "all {shorts} short requests waited for the long one to end, and then ran "
    "together ({overlap:.1f} at once on average)",
    "ended_as_a_group": "all {shorts} short requests waited for the long one to end, and then "
    "ended as {together} at once do",
    "began_together": "of {requests} requests, none began while an earlier batch ran, and some "
    "began together",
    "began_with_later_ones": "of {requests} requests to an idle server, the first began together "
    "with ones that were sent after it",
    "ran_by_turn": "all {shorts} short requests waited for the long one to end, and then ran one "
    "after the other; a limit of one request in front of a batching server looks the same",
    "ended_by_turn": "all {shorts} short requests waited for the long one to end, and then ended "
    "as one after the other does; a limit of one request in front of a batching server looks the "
    "same",
    "began_by_turn": "of {requests} requests, each began when the one before it had ended",
    "nobody_waited": "all {requests} requests began at once",
    "some_joined": "{joined} of {shorts} short requests began at once, and each other one as soon "
    "as one had ended, as with {together} slots; but no refill test could confirm it: allow more "
    "--max-requests or --max-tokens-total",
    "replicas": "requests had to wait although up to {together} ran at once at other times: "
    "several servers behind one address, each with its own queue, or other people's requests",
    "joined_late": "all {shorts} short requests began long before the long one's end, but later "
    "than one that joins a running batch does: something in between releases tokens at its own "
    "pace, or other people's requests",
    "paced": "the first token of a request alone comes after {ttft_ms:.0f} ms, and each other one "
    "takes {per_token_ms:.0f} ms, longer than the first: something in between releases tokens at "
    "its own pace",
    "busy": "the endpoint is not quiet: a request alone took {wait_ms:.0f} ms longer than others "
    "did; other people's requests were in the way",
    "too_noisy": "the times of requests alone vary too much against how long the short ones last: "
    "the network, or other people's requests; allow more --max-tokens-total",
    "overlap_unclear": "all {shorts} short requests waited for the long one to end, but then ran "
    "neither all together nor all by turn ({overlap:.1f} at once on average)",
    "ends_unclear": "all {shorts} short requests waited for the long one to end, but their ends, "
    "all that is seen, fit no way of running",
    "streaming_off": "tokens do not arrive as they are made, and the ends of answers decide only "
    "part of it",
    "gathering_unclear": "requests sent shortly after one another shared a batch once and did not "
    "once: whether it waits for company cannot be told",
    "rate_limited": "the endpoint limits the rate of requests: {requests} were turned away",
    "requests_failed": "{requests} requests failed, the first with {fault}",
    "cached_responses": "{requests} answers came far faster than tokens are made: from a cache",
    "lengths_not_honoured": "{requests} answers were shorter than asked for: the model ends by "
    "itself, or the endpoint caps max_tokens",
    "long_too_short": "the long request ended before the short ones could be seen beside it: the "
    "endpoint is too fast for so few tokens; allow more --max-tokens-total",
    "trials_differ": "the trials contradict each other: other people's requests, or several "
    "servers behind one address",
    "too_little_done": "no test was carried out to its end",
    "several_tokens_a_chunk": "chunks carry several tokens: speculative decoding, or a proxy that "
    "joins them",
}

REMARKS: Mapping[str, str] = {
    "continuous": "A fleet of as many idle servers looks the same.",
    "slots": "It has {slots} slots: with one request more, one had to wait.",
    "slots_at_least": "At least {slots} requests ran at once.",
    "batch": "Answers of a batch are released together.",
    "own": "Each answer of a batch is released when it is done.",
    "gather": "A batch waits for company for at least {low:.0f} ms{at_most}.",
    "no_gather": "A batch that waits for company for less than {high:.0f} ms looks the same.",
    "user": "Interrupted: only what was done until then is judged.",
    "max_seconds": "Its time ran out: only what was done until then is judged.",
}


def explain(result: ProbeResult) -> list[str]:
    """The verdict, why, and what limits it, a sentence a line."""
    lines = [
        VERDICTS[result.batching],
        f"  Why: {sentence(result.reason)}.",
        f"  Confidence: {result.confidence}, from {len(result.trials)} trials.",
    ]
    if result.batching != "undetermined":
        lines += ["  " + line for line in _details(result)]
    for remark in result.remarks:
        if remark.code != result.reason.code:
            lines.append(f"  Note: {sentence(remark)}.")
    if result.stopped_by is not None:
        lines.append("  " + REMARKS[result.stopped_by])
    lines.append(
        f"  Alone, a request takes {result.alone.ttft_s * 1000:.0f} ms to its first token and "
        f"{result.alone.seconds_per_token * 1000:.1f} ms for each further one."
        if result.baseline.streams
        else f"  Alone, a request of {result.samples[0].asked_tokens} tokens takes "
        f"{result.baseline.latency_s:.2f} s."
    )
    lines.append(
        f"  Sent: {result.requests_sent} requests, {result.output_tokens} output tokens counted."
    )
    return lines


def _details(result: ProbeResult) -> list[str]:
    lines = []
    if result.batching != "serial":
        code, slots = "slots", result.slots
        if slots is None:
            code, slots = "slots_at_least", result.slots_at_least
        lines.append(REMARKS[code].format(slots=slots))
    if result.batching == "continuous":
        lines.append(REMARKS["continuous"])
    if result.release is not None:
        lines.append(REMARKS[result.release])
    if result.gather_s is not None:
        low, high = result.gather_s
        at_most = "" if high is None else f", and less than {high * 1000:.0f} ms"
        if result.batching == "dynamic":
            lines.append(REMARKS["gather"].format(low=low * 1000, at_most=at_most))
        elif high is not None:
            lines.append(REMARKS["no_gather"].format(high=high * 1000))
    return lines


def sentence(reason: Reason) -> str:
    """A reason's sentence, without a full stop."""
    return REASONS[reason.code].format(**reason.numbers)
