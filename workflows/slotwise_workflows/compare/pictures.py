"""The busiest minute as slots over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slotwise_sim import Outcome, Workload
from slotwise_sim.metrics import slot_of
from slotwise_sim.workload import of_one_replica
from slotwise_workflows.compare.server import BATCH_AT_ONCE, COMPARED, Server
from slotwise_workflows.measure.arrivals import busiest_window
from slotwise_workflows.result import Occupancy, Timeline

PICTURE_SPAN_S = 60.0
# More than this cannot be told apart on a page: of more slots the first are drawn, and the window
# is halved until the bars can be told apart.
MOST_DRAWN_SLOTS = 32
MOST_BARS = 240


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
    until = max(float(outcome.held_until_s.max()) for outcome in (static, continuous))
    span = min(PICTURE_SPAN_S, until - start)
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
    """Slot-seconds of the window in which no slot computes a token.

    When a request was preempted is not known, only for how long: the window gets its share of that
    by the time that the request holds its slot within it.
    """
    begin = np.clip(outcome.start_s, start_s, start_s + span_s)
    end = np.clip(outcome.own_end_s, start_s, start_s + span_s)
    busy_s = end - begin
    if outcome.preempted_s is not None:
        held_s = np.maximum(outcome.own_end_s - outcome.start_s, np.finfo(np.float64).tiny)
        busy_s *= 1 - outcome.preempted_s / held_s
    return outcome.slots * span_s - float(busy_s.sum())
