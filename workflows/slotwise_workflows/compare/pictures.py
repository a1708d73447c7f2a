"""The busiest minute as slots over time, and the small sweep around today's setting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slotwise_sim import Outcome, Workload
from slotwise_sim.metrics import figures, slot_of
from slotwise_sim.workload import all_at_once, at_load, of_one_replica
from slotwise_workflows.compare.capacity import (
    as_served,
    batch_tokens,
    gain_in_order,
    sustainable_per_s,
)
from slotwise_workflows.compare.server import BATCH_AT_ONCE, COMPARED, Server
from slotwise_workflows.measure.arrivals import busiest_window
from slotwise_workflows.result import Occupancy, Timeline, WhatIf

PICTURE_SPAN_S = 60.0
# More than this cannot be told apart on a page: of more slots the first are drawn, and the window
# is halved until the bars can be told apart.
MOST_DRAWN_SLOTS = 32
MOST_BARS = 240
WHAT_IF_LOADS = (0.5, 1.0, 2.0)


def timeline(workload: Workload, server: Server, *, assumed_pace: bool) -> Timeline:
    """Every request of the busiest minute in its slot, under both policies, on one time axis.

    Args:
        workload: What is replayed; of several replicas, one is drawn.
        server: The stated setting.
        assumed_pace: Whether the time axis rests on an assumed time per token.
    """
    one = of_one_replica(workload, server.replicas)
    alone = replace(server, replicas=1)
    static, continuous = (alone.run(one, policy) for policy in COMPARED)
    window = busiest_window(one, PICTURE_SPAN_S)
    start = float(one.arrival_s.min()) + window.start_s
    span = min(PICTURE_SPAN_S, float(static.held_until_s.max()) - start)
    drawn = min(server.slots, MOST_DRAWN_SLOTS)
    bars = [_bars(outcome, start, span, drawn) for outcome in (static, continuous)]
    while max(len(own) for own in bars) > MOST_BARS:
        span /= 2
        bars = [_bars(outcome, start, span, drawn) for outcome in (static, continuous)]
    return Timeline(
        start_s=start,
        span_s=span,
        slots=server.slots,
        drawn_slots=drawn,
        batch=BATCH_AT_ONCE,
        static=bars[0],
        continuous=bars[1],
        idle_slot_s={
            "static": _idle(static, start, span),
            "continuous": _idle(continuous, start, span),
        },
        tokens_axis=assumed_pace,
    )


def what_if(
    ordered: Workload, workload: Workload, server: Server, rate_per_s: float | None
) -> list[WhatIf]:
    """Other slots and other loads, one simulation each.

    Slots of which a batch would not fit into the memory told are left out: memory limits continuous
    batching alone, and would make it look worse than batches that could not be served.

    Args:
        ordered: All requests in order of arrival, for the capacity gain.
        workload: The busiest hour, or all requests where times cannot be replayed.
        server: Today's setting.
        rate_per_s: The busiest hour's arrival rate; None where times cannot be replayed.
    """
    requests = as_served(ordered, server.replicas)
    around = {max(2, server.slots // 2), server.slots, server.slots * 2, server.slots * 4}
    loads = WHAT_IF_LOADS if rate_per_s is not None else (0.0,)
    points = []
    for slots in sorted(around):
        held = batch_tokens(requests, slots)
        fits = server.memory is None or held <= server.memory.kv_tokens
        if (slots * 4 <= len(ordered) and fits) or slots == server.slots <= len(ordered):
            at = replace(server, slots=slots)
            gain = gain_in_order(requests, at)
            per_s = sustainable_per_s(workload, at, gain)
            points += [_point(gain, per_s, workload, at, load, rate_per_s) for load in loads]
    return points


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


def _bars(outcome: Outcome, start_s: float, span_s: float, drawn: int) -> list[Occupancy]:
    """Every request that holds one of the first slots at some time within the window."""
    held = (outcome.start_s < start_s + span_s) & (outcome.held_until_s > start_s)
    slot = slot_of(outcome.start_s[held], outcome.held_until_s[held])
    times = (outcome.start_s, outcome.own_end_s, outcome.held_until_s)
    clipped = (np.clip(own[held] - start_s, 0.0, span_s) for own in times)
    return [
        Occupancy(slot=int(s), start_s=float(a), own_end_s=float(b), held_until_s=float(c))
        for s, a, b, c in zip(slot, *clipped, strict=True)
        if s < drawn
    ]


def _idle(outcome: Outcome, start_s: float, span_s: float) -> float:
    """Slot-seconds of the window in which no slot computes a token."""
    begin = np.clip(outcome.start_s, start_s, start_s + span_s)
    end = np.clip(outcome.own_end_s, start_s, start_s + span_s)
    return outcome.slots * span_s - float((end - begin).sum())
