"""A binary heap of what ends when, the earliest end on top.

Its places are records that have, besides others, the fields of `HEAP`.
"""

from __future__ import annotations

import numpy as np

from slotwise_sim.compiled import inlined
from slotwise_sim.kernels.records import Records

HEAP = [
    ("end", np.int64),  # the key
    ("ending", np.int64),  # the item
]


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
