"""Blocks of a log, so that requests can be compared with one another, however many there are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slotwise_workflows.observe.timed import Timed

# Blocks are evenly spread over the log, so that a million requests take no longer than twenty
# thousand. Those that a block begins with are only looked at.
BLOCK = 1000
MOST_BLOCKS = 20
WARM_UP = 0.1


def blocks(requests: Timed) -> Iterator[tuple[Timed, int]]:
    """Blocks of consecutive requests, with how many of the first are only looked at."""
    n = len(requests)
    if n <= BLOCK:
        yield requests, 0
        return
    for first in np.unique(np.linspace(0, n - BLOCK, min(MOST_BLOCKS, -(-n // BLOCK)), dtype=int)):
        block = requests.rows(slice(int(first), int(first) + BLOCK))
        yield block, int(WARM_UP * BLOCK) if first else 0
