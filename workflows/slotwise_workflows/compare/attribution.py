"""Where a gain comes from, of a server that never stops."""

from __future__ import annotations

import numpy as np

from slotwise_sim import NeverFitsError, Static, Step, Workload
from slotwise_sim.attribution import Attribution, attribute
from slotwise_sim.workload import rows_of
from slotwise_workflows.compare.capacity import as_served
from slotwise_workflows.compare.server import Server

# A shorter log is replayed over and over: what a server does while its last requests run out would
# count for something, the more so the more of them run at once.
REPLAYED = 200_000


def split_of_gain(job: Workload, server: Server) -> Attribution | None:
    """The gain over batch-at-once, split; None under a cost per token, where all of it is order.

    Args:
        job: All requests, in the order in which they are batched.
        server: The stated setting.
    """
    if not isinstance(server.cost, Step):
        return None
    requests = as_served(job, server.replicas)
    try:
        return attribute(
            _over_and_over(requests, server.slots),
            Static(server.release, server.pad),  # a backlog fills every batch, whatever the delay
            server.continuous,
            server.cost,
            slots=server.slots,
            memory=server.memory,
        )
    except NeverFitsError:  # it fits where it is reserved whole; paged needs a spare block
        return None


def _over_and_over(requests: Workload, slots: int) -> Workload:
    """The requests many times, each time with the boundaries of batches one request later."""
    n = len(requests)
    rounds = np.arange(-(-REPLAYED // n))
    shift = (n - 1) % slots
    rows = (np.arange(n) + shift * rounds[:, None]) % n
    return rows_of(requests, rows.ravel())
