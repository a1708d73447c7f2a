"""A server that works in iterations: what it goes by, and what it knows between two of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from slotwise_sim.kernels.heap import HEAP
from slotwise_sim.kernels.records import Records
from slotwise_sim.workload import Ints

PAGED, RESERVED = 0, 1
MIXED, SEPARATE = 0, 1
ENDLESS = 1 << 62


class Rules(Protocol):
    """How the server admits and prefills: the fields of a record of `RULES`.

    Attributes:
        prefill: MIXED or SEPARATE.
        max_batched: Most tokens of an iteration; ENDLESS without a limit.
        reserve: PAGED or RESERVED; a server without a limit has nothing reserved.
        capacity: Blocks (PAGED) or tokens (RESERVED).
        block: Tokens of a block; 1 unless PAGED.
    """

    prefill: int
    max_batched: int
    reserve: int
    capacity: int
    block: int


RULES = np.dtype([(name, np.int64) for name in Rules.__annotations__])


class State(Protocol):
    """The server between two iterations: the fields of a record of `STATE`.

    Attributes:
        now: Seconds.
        rounds: Decode iterations so far.
        upcoming: The first in line that has never been admitted.
        free: Memory that nobody holds.
        vacancies: Slots that nobody holds.
        admissions: Requests admitted so far, a second time included.
        first: Where the line of prompts to be prefilled begins in its ring.
        waiting: Prompts in that line.
        prefilled: Tokens of the first of them that are prefilled; -1 before its first chunk.
        decoding: Sequences that decode.
        held: Tokens they hold in the next iteration.
        returns: Preempted requests that wait to be admitted again.
        preemptions: Preemptions so far.
    """

    now: float
    rounds: int
    upcoming: int
    free: int
    vacancies: int
    admissions: int
    first: int
    waiting: int
    prefilled: int
    decoding: int
    held: int
    returns: int
    preemptions: int


STATE = np.dtype(
    [
        (name, np.float64 if kind == "float" else np.int64)
        for name, kind in State.__annotations__.items()
    ]
)


SLOT = np.dtype(
    [
        ("row", np.int64),  # of the request that holds this slot
        ("admission", np.int64),  # of that request; ascends with every admission
        ("vacant", np.int64),  # a stack of slots
        ("waiting", np.int64),  # a ring of slots whose prompts are to be prefilled
        *HEAP,  # of the rounds after which the decoding sequences end, and their slots
        ("returned", np.int64),  # a stack of preempted requests, the head of the queue on top
        ("returned_s", np.float64),  # and when they were preempted
    ]
)
"""What there is once a slot; from ``vacant`` on, a place in a list and not a slot's own."""


def idle_servers(rules: Records, slots: int, servers: int) -> tuple[Records, Records, Ints]:
    """Servers that have not begun.

    Args:
        rules: Of each of them, shape (1,), dtype `RULES`.
        slots: Of each, >= 1.
        servers: How many, >= 1.

    Returns:
        Their states, shape (servers,), dtype `STATE`; their slots, shape (servers, slots), dtype
        `SLOT`; and the sequences that decode by the round in which they need a new block, modulo
        the block size, shape (servers, block).
    """
    states = np.zeros(servers, STATE)
    states["free"], states["vacancies"], states["prefilled"] = rules["capacity"][0], slots, -1
    places = np.zeros((servers, slots), SLOT)
    places["vacant"] = np.arange(slots)[::-1]
    return states, places, np.zeros((servers, int(rules["block"][0])), np.int64)
