"""Batch-at-once serving: batches start together, and their slots are given back together.

Static batching is dynamic batching with an endless delay, and dynamic batching is binned batching
with one bin. A batch's time under ``per_token`` is that of a step cost with nothing but a base.
"""

from __future__ import annotations

import numpy as np

from slotwise_sim.compiled import compiled
from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.workload import Floats, Ints


@compiled
def _ready_s(
    arrival_s: Floats, queue: Ints, head: int, stop: int, slots: int, max_delay_s: float
) -> float:
    """When a bin's next batch is full, or its oldest request has waited long enough."""
    late_s = float(arrival_s[queue[head]]) + max_delay_s
    if head + slots <= stop:
        return min(late_s, float(arrival_s[queue[head + slots - 1]]))
    if max_delay_s == np.inf:
        return float(arrival_s[queue[stop - 1]])
    return late_s


@compiled
def _serve(
    members: Ints,
    begin_s: float,
    prompt: Ints,
    output: Ints,
    cached: Ints,
    pad: bool,
    decode_s: Floats,
    kv_token_s: Floats,
    prefill_token_s: float,
    prefill_token2_s: float,
    first_token_s: Floats,
    own_end_s: Floats,
) -> float:
    """One iteration prefills all members, then they decode until the longest ends: gives its end.

    In its j-th decode iteration a sequence holds prompt + j tokens.
    """
    size = len(members)
    held, tokens, squares = 0, 0, 0.0
    most_tokens, most_squares = 0, 0.0
    for request in members:
        whole, begun = prompt[request], cached[request]
        held += whole
        square = float(whole) * whole - float(begun) * begun
        tokens += whole - begun
        squares += square
        most_tokens = max(most_tokens, whole - begun)
        most_squares = max(most_squares, square)
    if pad:
        tokens, squares = size * most_tokens, size * most_squares
    prefill_s = float(decode_s[0]) + prefill_token_s * tokens + prefill_token2_s * squares
    now = begin_s + prefill_s
    for request in members:
        first_token_s[request] = now
    if pad:
        longest_s = 0.0
        round_s = float(decode_s[size] + kv_token_s[size] * held)
        growth_s = float(kv_token_s[size] * size) / 2
        for request in members:
            rounds = output[request] - 1.0
            seconds = rounds * (round_s + growth_s * (rounds + 1))
            own_end_s[request] = now + seconds
            longest_s = max(longest_s, seconds)
        return now + longest_s
    rounds = 0
    active = size
    for request in members[np.argsort(output[members])]:
        more = output[request] - 1 - rounds
        now += more * (decode_s[active] + kv_token_s[active] * (held + active * rounds))
        now += kv_token_s[active] * active * (more * (more + 1.0) / 2)
        own_end_s[request] = now
        rounds += more
        active -= 1
        held -= prompt[request]
    return now


@compiled
def batches_at_once(
    arrival_s: Floats,
    prompt: Ints,
    output: Ints,
    cached: Ints,
    queues: Ints,
    queue_stops: Ints,
    slots: int,
    max_delay_s: float,
    pad: bool,
    decode_s: Floats,
    kv_token_s: Floats,
    prefill_token_s: float,
    prefill_token2_s: float,
    start_s: Floats,
    first_token_s: Floats,
    own_end_s: Floats,
    held_until_s: Floats,
    control: Ints,
) -> None:
    """Serves batches from one queue a bin; O(n (bins + log slots)).

    Args:
        arrival_s: Ascending, shape (n,), like all columns of requests.
        prompt: Tokens.
        output: Tokens, >= 1.
        cached: Tokens of the prompt that need no prefill.
        queues: Requests by bin, in order of arrival within each, shape (n,).
        queue_stops: Where each bin's requests stop in ``queues``, shape (bins,).
        slots: Most requests of a batch, 1 <= slots <= n + 1.
        max_delay_s: Longest wait of a short batch; infinity waits for the bin's last request.
        pad: Whether finished sequences cost until the batch ends, and prompts as the longest.
        decode_s: Seconds of an iteration by sequences decoding, shape (slots + 1,).
        kv_token_s: Seconds per token they hold, shape (slots + 1,).
        prefill_token_s: Seconds per prompt token prefilled.
        prefill_token2_s: Seconds per unit of attention's share.
        start_s: Written: start of the batch.
        first_token_s: Written: end of its prefill.
        own_end_s: Written: end of the iteration that yields the last token.
        held_until_s: Written: end of the batch.
        control: DONE is written, STOP is read.
    """
    n = len(arrival_s)
    bins = len(queue_stops)
    heads = np.zeros(bins, np.int64)
    heads[1:] = queue_stops[:-1]
    free_s = 0.0
    while control[DONE] < n and control[STOP] == 0:
        # The bin that is ready first; of several that are, the one that waits longest.
        begin_s = np.inf
        for b in range(bins):
            if heads[b] < queue_stops[b]:
                ready_s = _ready_s(arrival_s, queues, heads[b], queue_stops[b], slots, max_delay_s)
                begin_s = min(begin_s, ready_s)
        begin_s = max(begin_s, free_s)
        chosen = -1
        for b in range(bins):
            if heads[b] < queue_stops[b] and (
                chosen < 0 or queues[heads[b]] < queues[heads[chosen]]
            ):
                ready_s = _ready_s(arrival_s, queues, heads[b], queue_stops[b], slots, max_delay_s)
                if ready_s <= begin_s:
                    chosen = b
        first = heads[chosen]
        stop = first + 1
        while (
            stop < queue_stops[chosen]
            and stop - first < slots
            and arrival_s[queues[stop]] <= begin_s
        ):
            stop += 1
        heads[chosen] = stop
        free_s = _serve(
            queues[first:stop],
            begin_s,
            prompt,
            output,
            cached,
            pad,
            decode_s,
            kv_token_s,
            prefill_token_s,
            prefill_token2_s,
            first_token_s,
            own_end_s,
        )
        for place in range(first, stop):
            start_s[queues[place]] = begin_s
            held_until_s[queues[place]] = free_s
        control[DONE] += stop - first
