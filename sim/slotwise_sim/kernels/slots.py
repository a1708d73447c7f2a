"""Refilling slots when a request's time in its slot is fixed, whatever else runs.

All loops take requests in order of arrival, as contiguous arrays of float64, and write ``start_s``
and ``held_until_s``: when each request starts and when its slot is free for another. These two are
made by the caller, with NumPy, which asks the system for large pages; arrays made in here cost as
much as the loops. ``control`` is as in `control`. Callers keep ``1 <= slots <= n + 1``, so that no
loop guards against overflow.
"""

from __future__ import annotations

import numpy as np

from slotwise_sim.compiled import compiled, inlined
from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.workload import Floats, Ints

EIGHT = 8
"""Up to here every slot has a register: three times as fast as a row in memory."""
FEW_SLOTS = 64
"""Up to here a sorted row is as fast as a heap or faster; with narrower vectors it ends here."""


def continuous_slots(
    arrival_s: Floats,
    service_s: Floats,
    slots: int,
    start_s: Floats,
    held_until_s: Floats,
    control: Ints,
) -> None:
    """Each request takes the slot that falls free first. O(n log slots)."""
    if slots <= EIGHT:
        fill = continuous_eight_slots
    else:
        fill = continuous_few_slots if slots <= FEW_SLOTS else continuous_many_slots
    fill(arrival_s, service_s, slots, start_s, held_until_s, control)


@inlined
def _serve(
    request: int,
    free_s: float,
    arrival_s: Floats,
    service_s: Floats,
    start_s: Floats,
    held_until_s: Floats,
    control: Ints,
) -> float:
    """A request takes the slot that falls free first; gives the instant it is free again."""
    begin_s = max(free_s, float(arrival_s[request]))
    end_s = begin_s + float(service_s[request])
    start_s[request] = begin_s
    held_until_s[request] = end_s
    control[DONE] = request + 1
    return end_s


@compiled
def continuous_eight_slots(
    arrival_s: Floats,
    service_s: Floats,
    slots: int,
    start_s: Floats,
    held_until_s: Floats,
    control: Ints,
) -> None:
    """`continuous_few_slots` for eight slots or fewer, the row in eight registers of the processor.

    Slots that are not there never fall free.
    """
    row = np.full(EIGHT, np.inf)
    row[:slots] = 0.0
    a, b, c, d, e, f, g, h = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    for request in range(len(arrival_s)):
        if control[STOP] != 0:
            break
        end_s = _serve(request, a, arrival_s, service_s, start_s, held_until_s, control)
        a, b = max(a, min(b, end_s)), max(b, min(c, end_s))
        c, d = max(c, min(d, end_s)), max(d, min(e, end_s))
        e, f = max(e, min(f, end_s)), max(f, min(g, end_s))
        g, h = max(g, min(h, end_s)), max(h, end_s)


@compiled
def continuous_few_slots(
    arrival_s: Floats,
    service_s: Floats,
    slots: int,
    start_s: Floats,
    held_until_s: Floats,
    control: Ints,
) -> None:
    """`continuous_slots` on a sorted row of the instants at which slots fall free.

    The first leaves the row and the new one is put in its place by one pass of minima and maxima.
    That is more steps than a heap takes, but no step depends on a guess: the processor does
    several at once and never has to go back.
    """
    n = len(arrival_s)
    free_s = np.zeros(slots + 1)
    free_s[slots] = np.inf
    for request in range(n):
        if control[STOP] != 0:
            break
        end_s = _serve(request, free_s[0], arrival_s, service_s, start_s, held_until_s, control)
        for slot in range(slots):
            free_s[slot] = max(free_s[slot], min(free_s[slot + 1], end_s))


@compiled
def continuous_many_slots(
    arrival_s: Floats,
    service_s: Floats,
    slots: int,
    start_s: Floats,
    held_until_s: Floats,
    control: Ints,
) -> None:
    """`continuous_slots` on a binary heap of the instants at which slots fall free.

    The root is replaced, never popped and pushed. One infinite leaf at the end spares the inner
    loop the question whether a second child exists.
    """
    n = len(arrival_s)
    free_s = np.zeros(slots + 1)
    free_s[slots] = np.inf
    for request in range(n):
        if control[STOP] != 0:
            break
        end_s = _serve(request, free_s[0], arrival_s, service_s, start_s, held_until_s, control)
        hole = 0
        child = 1
        while child < slots:
            child += int(free_s[child + 1] < free_s[child])
            if end_s <= free_s[child]:
                break
            free_s[hole] = free_s[child]
            hole = child
            child = 2 * hole + 1
        free_s[hole] = end_s
