"""Where a gain comes from: the order of filling, memory for more requests, and what they cost.

Engines that batch continuously usually bring paged memory too, and so run more requests at once;
published gains mix the two. Three changes lead from the one server to the other, each a ratio of
the requests per second that a server sustains, and their product is the whole gain:

1. order: slots are refilled at once instead of batch by batch; same slots, same cost.
2. memory: as many requests run as paged memory holds, were a larger batch free.
3. larger batch: what the step cost takes back, because more sequences make an iteration longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slotwise_sim.costs import Piece, Step
from slotwise_sim.memory import Memory
from slotwise_sim.policies import BatchPolicy, Continuous
from slotwise_sim.workload import Workload

if TYPE_CHECKING:
    from slotwise_sim.backlog import Backlog


@dataclass(frozen=True, slots=True)
class Attribution:
    """A gain in requests per second as a product; ratios above 1 are gains.

    Attributes:
        order: Continuous over batch-at-once, same slots and cost.
        memory: As many at once as paged memory holds, were a larger batch free; None without
            memory.
        larger_batch: What the step cost makes of that: at most 1 in all but odd cases; None without
            memory.
        total: The product.
        running: Requests running at once on average: ``batch``, ``continuous`` and ``paged``
            (absent without memory).
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
    memory: Memory | None = None,
) -> Attribution:
    """Splits the gain over batch-at-once serving, on one server that always has work.

    Args:
        workload: The requests; served in order of arrival.
        batch: The batch-at-once policy that is left behind.
        continuous: The policy that replaces it.
        cost: Of an iteration.
        slots: Requests that the batch-at-once server runs at once.
        memory: KV memory of the server; None leaves the slots as they are.

    Raises:
        NeverFitsError: A request is larger than the memory.
    """
    from slotwise_sim.backlog import backlog  # loads SciPy, which naming a result does not need

    batched = backlog(workload, batch, cost, slots=slots)
    refilled = backlog(workload, continuous, cost, slots=slots)
    order = refilled.per_s / batched.per_s
    running = {"batch": _running(batched), "continuous": _running(refilled)}
    if memory is None:
        return Attribution(order, None, None, order, running)
    paged = replace(memory, reserve="paged")
    most = max(slots, _most_at_once(workload, paged))
    free = _as_if_free_beyond(cost, slots, most)
    were_it_free = backlog(workload, continuous, free, slots=most, memory=paged)
    real = backlog(workload, continuous, cost, slots=most, memory=paged)
    return Attribution(
        order=order,
        memory=were_it_free.per_s / refilled.per_s,
        larger_batch=real.per_s / were_it_free.per_s,
        total=real.per_s / batched.per_s,
        running={**running, "paged": _running(real)},
    )


def _running(served: Backlog) -> float:
    return float(served.busy_s.sum() / served.server_s.sum())


def _most_at_once(workload: Workload, paged: Memory) -> int:
    """No more requests than this run at once: each holds the blocks of its prompt, or one."""
    least = max(1, -(-int(workload.prompt_tokens.min()) // paged.block_tokens))
    return paged.kv_tokens // paged.block_tokens // least


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
