"""Where a gain comes from."""

from __future__ import annotations

from slotwise_sim import NeverFitsError, Static, Step, Workload
from slotwise_sim.attribution import Attribution, attribute
from slotwise_workflows.compare.server import Server
from slotwise_workflows.compare.sustained import as_served


def split_of_gain(job: Workload, server: Server) -> Attribution | None:
    """The gain over batch-at-once, split; None under a cost per token, where all of it is order.

    Args:
        job: All requests, in the order in which they are batched.
        server: The stated setting.
    """
    if not isinstance(server.cost, Step):
        return None
    try:
        return attribute(
            as_served(job, server.replicas),
            Static(server.release, server.pad),  # a backlog fills every batch, whatever the delay
            server.continuous,
            server.cost,
            slots=server.slots,
            memory=server.memory,
        )
    except NeverFitsError:  # it fits where it is reserved whole; paged needs a spare block
        return None
