"""A small sweep around today's setting: other slots, other loads."""

from __future__ import annotations

from dataclasses import replace

from slotwise_sim import Workload
from slotwise_sim.metrics import figures
from slotwise_sim.workload import all_at_once, at_load
from slotwise_workflows.compare.capacity import batch_tokens, capacity_per_s, gain_in_order
from slotwise_workflows.compare.server import COMPARED, Server
from slotwise_workflows.result import WhatIf

WHAT_IF_LOADS = (0.5, 1.0, 2.0)


def what_if(
    job: Workload, workload: Workload, server: Server, rate_per_s: float | None
) -> list[WhatIf]:
    """Other slots and other loads, one simulation each.

    Args:
        job: All requests, in the order in which they are batched, for the capacity gain.
        workload: The busiest hour, or all requests where times cannot be replayed.
        server: Today's setting.
        rate_per_s: The busiest hour's arrival rate; None where times cannot be replayed.
    """
    loads = WHAT_IF_LOADS if rate_per_s is not None else (0.0,)
    points = []
    for slots in slots_around(job, server):
        at = replace(server, slots=slots)
        gain = gain_in_order(job, at)
        per_s = capacity_per_s(workload, at, gain)
        points += [_point(gain, per_s, workload, at, load, rate_per_s) for load in loads]
    return points


def slots_around(job: Workload, server: Server) -> list[int]:
    """Half of today's slots, as many, twice and four times as many, as far as the requests go.

    Slots of which a batch would not fit into the memory told are left out: memory limits continuous
    batching alone, and would make it look worse than batches that could not be served.
    """

    def possible(slots: int) -> bool:
        held = batch_tokens(job, slots)
        fits = server.memory is None or held <= server.memory.kv_tokens
        return (slots * 4 <= len(job) and fits) or slots == server.slots <= len(job)

    around = {max(2, server.slots // 2), server.slots, server.slots * 2, server.slots * 4}
    return [slots for slots in sorted(around) if possible(slots)]


def _point(
    gain: float,
    per_s: dict[str, float],
    workload: Workload,
    server: Server,
    load: float,
    rate_per_s: float | None,
) -> WhatIf:
    replayed = all_at_once(workload) if rate_per_s is None else at_load(workload, load)
    outcomes = {policy: figures(server.run(replayed, policy)) for policy in COMPARED}
    timed = outcomes if rate_per_s is not None else {}
    return WhatIf(
        slots=server.slots,
        load=load,
        gain=gain,
        latency_mean_s={policy: o["latency_s"]["mean"] for policy, o in timed.items()},
        latency_p95_s={policy: o["latency_s"]["p95"] for policy, o in timed.items()},
        idle_share={policy: o["idle_share"] for policy, o in outcomes.items()},
        overloaded={
            policy: rate_per_s * load >= per_s[policy]
            for policy in outcomes
            if rate_per_s is not None
        },
    )
