"""Batch-at-once serving: batches start together, and their slots are given back together.

Static batching is dynamic batching with an endless delay, and dynamic batching is binned batching
with one bin. A batch's time under ``per_token`` is that of a step cost with nothing but a base.
"""

from __future__ import annotations

import numpy as np

from slotwise_sim.compiled import compiled, inlined
from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.kernels.heap import HEAP, join, leave
from slotwise_sim.kernels.records import Records
from slotwise_sim.workload import Ints


def batches_at_once(
    requests: Records,
    cost: Records,
    queues: Ints,
    stops: Ints,
    slots: int,
    max_delay_s: float,
    pad: bool,
    control: Ints,
) -> None:
    """Serves batches from one queue a bin; O(n log slots), and O(bins) a batch.

    Args:
        requests: Of one server, in order of arrival, shape (n,), dtype `BATCHED`.
        cost: What iterations take, shape (slots + 1,), dtype `slotwise_sim.costs.ITERATION`.
        queues: Requests by bin, in order of arrival within each, shape (n,).
        stops: Where each bin's requests stop in ``queues``, shape (bins,).
        slots: Most requests of a batch, 1 <= slots <= n + 1.
        max_delay_s: Longest wait of a short batch; infinity waits for the bin's last request.
        pad: Whether finished sequences cost until the batch ends, and prompts as the longest.
        control: DONE is written, STOP is read.
    """
    heads = np.concatenate(([0], stops[:-1]))
    heap = np.empty(slots, HEAP)
    _serve_all(requests, cost, queues, heads, stops, slots, max_delay_s, pad, heap, control)


@compiled
def _serve_all(
    requests: Records,
    cost: Records,
    queues: Ints,
    heads: Ints,
    stops: Ints,
    slots: int,
    max_delay_s: float,
    pad: bool,
    heap: Records,
    control: Ints,
) -> None:
    free_s = 0.0
    while control[DONE] < len(queues) and control[STOP] == 0:
        # The bin that is ready first; of several that are, the one that waits longest.
        chosen, begin_s, oldest = -1, np.inf, -1
        for b in range(len(stops)):
            if heads[b] < stops[b]:
                ready_s = _ready_s(requests, queues, heads[b], stops[b], slots, max_delay_s)
                ready_s = max(ready_s, free_s)
                head = queues[heads[b]]
                if ready_s < begin_s or (ready_s == begin_s and head < oldest):
                    chosen, begin_s, oldest = b, ready_s, head
        first = heads[chosen]
        most = min(stops[chosen], first + slots)
        stop = first + 1
        while stop < most and requests[queues[stop]].arrival_s <= begin_s:
            stop += 1
        heads[chosen] = stop
        free_s = serve_batch(requests, cost, queues[first:stop], begin_s, pad, heap)
        control[DONE] += stop - first


@inlined
def _ready_s(
    requests: Records, queue: Ints, head: int, stop: int, slots: int, max_delay_s: float
) -> float:
    """When a bin's next batch is full, or its oldest request has waited long enough."""
    late_s: float = requests[queue[head]].arrival_s + max_delay_s
    if head + slots <= stop:
        late_s = min(late_s, requests[queue[head + slots - 1]].arrival_s)
    elif max_delay_s == np.inf:
        late_s = requests[queue[stop - 1]].arrival_s
    return late_s


@inlined
def serve_batch(
    requests: Records,
    cost: Records,
    members: Ints,
    begin_s: float,
    pad: bool,
    heap: Records,
) -> float:
    """One iteration prefills all members, then they decode until the longest ends: gives its end.

    In its j-th decode iteration a sequence holds prompt + j tokens.
    """
    size = len(members)
    held, tokens, squares = 0, 0, 0.0
    most_tokens, most_squares = 0, 0.0
    for row in members:
        request = requests[row]
        left = request.prompt - request.cached
        square = float(request.prompt) * request.prompt - float(request.cached) * request.cached
        held += request.prompt
        tokens += left
        squares += square
        most_tokens = max(most_tokens, left)
        most_squares = max(most_squares, square)
    if pad:
        tokens, squares = size * most_tokens, size * most_squares
    only = cost[0]
    prefill_s = only.base_s + only.prefill_token_s * tokens + only.prefill_token2_s * squares
    now = begin_s + prefill_s
    for row in members:
        requests[row].start_s = begin_s
        requests[row].first_token_s = now
    if pad:
        end_s = _decode_padded(requests, cost, members, now, held)
    else:
        end_s = _decode_shrinking(requests, cost, members, now, held, heap)
    for row in members:
        requests[row].held_until_s = end_s
    return end_s


@inlined
def _decode_padded(requests: Records, cost: Records, members: Ints, now: float, held: int) -> float:
    """Every member costs to the end, and what it holds goes on growing."""
    size = len(members)
    round_s = cost[size].base_s + cost[size].kv_token_s * held
    growth_s = cost[size].kv_token_s * size / 2
    longest_s = 0.0
    for row in members:
        rounds = requests[row].output - 1.0
        seconds = rounds * (round_s + growth_s * (rounds + 1))
        requests[row].own_end_s = now + seconds
        longest_s = max(longest_s, seconds)
    return now + longest_s


@inlined
def _decode_shrinking(
    requests: Records, cost: Records, members: Ints, now: float, held: int, heap: Records
) -> float:
    """Members that have ended cost nothing: from end to end, the shortest first."""
    active = 0
    for row in members:
        active = join(heap, active, requests[row].output - 1, row)
    rounds = 0
    while active > 0:
        request = requests[heap[0].ending]
        more = heap[0].end - rounds
        own = cost[active]
        now += more * (own.base_s + own.kv_token_s * (held + active * rounds))
        now += own.kv_token_s * active * (more * (more + 1.0) / 2)
        request.own_end_s = now
        rounds += more
        held -= request.prompt
        active = leave(heap, active, 0)
    return now
