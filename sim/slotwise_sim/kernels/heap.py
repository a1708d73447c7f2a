"""Binary heaps, the earliest on top: of what ends when, and of what happens to whom.

The places of the first are records that have, besides others, the fields of `HEAP`; equal ends have
no order. Those of the second have the dtype `EVENT`; of events at one instant, the first row comes
first.
"""

from __future__ import annotations

import numpy as np

from slotwise_sim.compiled import inlined
from slotwise_sim.kernels.records import Records

HEAP = [
    ("end", np.int64),  # the key
    ("ending", np.int64),  # the item
]

EVENT = np.dtype(
    [
        ("at_s", np.float64),
        ("row", np.int64),  # of the request to which it happens
    ]
)


@inlined
def join(heap: Records, size: int, end: int, item: int) -> int:
    """Puts an item into the heap; gives the new size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if heap[parent].end <= end:
            break
        _move(heap, parent, hole)
        hole = parent
    heap[hole].end = end
    heap[hole].ending = item
    return size + 1


@inlined
def leave(heap: Records, size: int, place: int) -> int:
    """Takes the item at a place out of the heap; gives the new size."""
    size -= 1
    end, item = heap[size].end, heap[size].ending
    hole = place
    while hole > 0:
        parent = (hole - 1) // 2
        if heap[parent].end <= end:
            break
        _move(heap, parent, hole)
        hole = parent
    child = 2 * hole + 1
    while child < size:
        if child + 1 < size and heap[child + 1].end < heap[child].end:
            child += 1
        if end <= heap[child].end:
            break
        _move(heap, child, hole)
        hole = child
        child = 2 * hole + 1
    heap[hole].end = end
    heap[hole].ending = item
    return size


@inlined
def _move(heap: Records, place: int, to: int) -> None:
    heap[to].end = heap[place].end
    heap[to].ending = heap[place].ending


@inlined
def expect(events: Records, size: int, at_s: float, row: int) -> int:
    """Puts an event into the heap; gives the new size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if not _is_before(at_s, row, events[parent].at_s, events[parent].row):
            break
        events[hole].at_s = events[parent].at_s
        events[hole].row = events[parent].row
        hole = parent
    events[hole].at_s = at_s
    events[hole].row = row
    return size + 1


@inlined
def drop_first(events: Records, size: int) -> int:
    """Takes the event on top out of the heap; gives the new size."""
    size -= 1
    at_s, row = events[size].at_s, events[size].row
    hole, child = 0, 1
    while child < size:
        other = child + 1
        if other < size and _is_before(
            events[other].at_s, events[other].row, events[child].at_s, events[child].row
        ):
            child = other
        if not _is_before(events[child].at_s, events[child].row, at_s, row):
            break
        events[hole].at_s = events[child].at_s
        events[hole].row = events[child].row
        hole = child
        child = 2 * hole + 1
    events[hole].at_s = at_s
    events[hole].row = row
    return size


@inlined
def _is_before(at_s: float, row: int, other_s: float, other_row: int) -> bool:
    return at_s < other_s or (at_s == other_s and row < other_row)
