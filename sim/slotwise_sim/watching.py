"""Runs a compiled loop so that it can be watched and interrupted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.workload import Ints

T = TypeVar("T")
OnProgress = Callable[[int], None]

MANY = 10_000
"""A loop over fewer requests is over before anyone could interrupt it."""
GLANCE_S = 0.1


def watched(loop: Callable[[Ints], T], n: int, on_progress: OnProgress | None) -> T:
    """Runs a loop over n requests; of a long one the caller hears, and an interrupt stops it.

    A compiled loop does not see signals. A long one therefore runs in a thread of its own, while
    this one waits, looks at how many requests are done, and receives what interrupts it.

    Args:
        loop: Takes the array ``control`` (see `kernels.control`) and honours it.
        n: Requests to be done.
        on_progress: Hears how many requests are done.

    Returns:
        What the loop returns.
    """
    control = np.zeros(2, dtype=np.int64)
    if n < MANY:
        return loop(control)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(loop, control)
        try:
            while not wait([running], GLANCE_S).done:
                if on_progress is not None:
                    on_progress(int(control[DONE]))
        finally:
            control[STOP] = 1
        return running.result()
