"""Where a gain comes from: the order of filling, memory for more requests, and what they cost.

Engines that batch continuously usually bring paged memory too, and so run more requests at once;
published gains mix the two. Three changes lead from the one server to the other, each a ratio of
throughputs under backlog, and their product is the whole gain:

1. order: slots are refilled at once instead of batch by batch; same slots, same cost.
2. memory: as many requests run as paged memory holds, were a larger batch free.
3. larger batch: what the step cost takes back, because more sequences make an iteration longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from slotwise_sim.costs import Piece, Step
from slotwise_sim.memory import Memory
from slotwise_sim.outcome import Outcome
from slotwise_sim.policies import BatchPolicy, Continuous
from slotwise_sim.simulation import simulate
from slotwise_sim.workload import Workload, all_at_once


@dataclass(frozen=True, slots=True)
class Attribution:
    """A gain in throughput under backlog as a product; ratios above 1 are gains.

    Attributes:
        order: Continuous over batch-at-once, same slots and cost.
        memory: As many at once as paged memory holds, were a larger batch free; None without
            memory.
        larger_batch: What the step cost makes of that: at most 1 in all but odd cases; None without
            memory.
        total: The product.
        running: Requests running at once on average, on one server: ``batch``, ``continuous``
            and ``paged`` (absent without memory).
    """

    order: float
    memory: float | None
    larger_batch: float | None
    total: float
    running: dict[str, float]


def attribute(
    workload: Workload,
    batch: BatchPolicy,
    continuous: Continuous,
    cost: Step,
    *,
    slots: int,
    replicas: int = 1,
    memory: Memory | None = None,
) -> Attribution:
    """Splits the gain over batch-at-once serving, with all requests waiting from the start.

    Args:
        workload: The requests; served in order of arrival.
        batch: The batch-at-once policy that is left behind.
        continuous: The policy that replaces it.
        cost: Of an iteration.
        slots: Requests that the batch-at-once server runs at once.
        replicas: Servers.
        memory: KV memory of each server; None leaves the slots as they are.

    Raises:
        NeverFitsError: A request is larger than the memory.
    """
    backlog = all_at_once(workload)

    def serve(
        policy: BatchPolicy | Continuous, at: Step, slots: int, limit: Memory | None
    ) -> Outcome:
        return simulate(backlog, policy, at, slots=slots, replicas=replicas, memory=limit)

    batched = serve(batch, cost, slots, None)
    refilled = serve(continuous, cost, slots, None)
    order = _faster(batched, refilled)
    running = {"batch": _running(batched, replicas), "continuous": _running(refilled, replicas)}
    if memory is None:
        return Attribution(order, None, None, order, running)
    paged = replace(memory, reserve="paged")
    most = min(len(workload), max(slots, paged.kv_tokens // paged.block_tokens))
    were_it_free = serve(continuous, _as_if_free_beyond(cost, slots, most), most, paged)
    real = serve(continuous, cost, most, paged)
    return Attribution(
        order=order,
        memory=_faster(refilled, were_it_free),
        larger_batch=_faster(were_it_free, real),
        total=_faster(batched, real),
        running={**running, "paged": _running(real, replicas)},
    )


def _faster(before: Outcome, after: Outcome) -> float:
    return float(before.end_s.max() / after.end_s.max())


def _running(outcome: Outcome, replicas: int) -> float:
    return float(outcome.busy_slot_s / (replicas * outcome.end_s.max()))


def _as_if_free_beyond(cost: Step, slots: int, most: int) -> Step:
    """A cost at which more than ``slots`` sequences take as long as ``slots`` of them do.

    Of more sequences, the tokens of ``slots`` average ones are paid for.
    """
    last = Piece(1, cost.base_ms, cost.per_seq_ms, cost.per_kv_token_ms)
    kept = []
    for piece in cost.pieces:
        if piece.from_seqs <= slots:
            kept.append(piece)
            last = piece
    flat_ms = last.base_ms + last.per_seq_ms * slots
    beyond = (
        Piece(b, flat_ms, per_kv_token_ms=last.per_kv_token_ms * slots / b)
        for b in range(slots + 1, most + 1)
    )
    return replace(cost, pieces=(*kept, *beyond))
