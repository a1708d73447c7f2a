"""The sweep that a diagnosis runs by itself: other slots, loads and variation around today's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim import Workload
from slotwise_sim.replicate import run_length
from slotwise_sim.workload import rows_of
from slotwise_workflows.compare.server import COMPARED, Server
from slotwise_workflows.compare.what_if import WHAT_IF_LOADS, slots_around
from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.limits import can_have
from slotwise_workflows.sweep.points import Axes, Point, points
from slotwise_workflows.sweep.scenario import Scenario

COST = "stated"
"""What the one cost is called."""

CVS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Variation at which the load is searched from which the change pays."""

MOST_REQUESTS = 3_000
"""Of more, so many consecutive ones are swept: a small sweep is to take about a second."""

REPLICATIONS = 10
SEARCHES = 5


@dataclass(frozen=True, slots=True)
class Swept:
    """A finished small sweep.

    Attributes:
        scenario: What was swept.
        done: Its points, in the order of the grid.
    """

    scenario: Scenario
    done: tuple[Done, ...]


def small_sweep(
    workload: Workload,
    server: Server,
    *,
    timed: bool,
    objectives: Mapping[str, float],
    thresholds: Thresholds,
    seed: int,
) -> Swept | None:
    """Sweeps around today's setting, in this process.

    Args:
        workload: The busiest hour at its own times, or all requests, there from the start.
        server: Today's setting.
        timed: Whether the times of arrival mean anything.
        objectives: p95 in seconds by name (`latency`, `ttft`).
        thresholds: From which gains a change is worth having.
        seed: The run's seed.

    Returns:
        What was found. None where the requests fill no batch.

    Raises:
        SlotwiseError: A point failed, which none should.
    """
    earliest = np.argsort(workload.arrival_s, kind="stable")[:MOST_REQUESTS]
    swept = rows_of(workload, earliest)
    slots = slots_around(swept, server)
    if server.slots not in slots:
        return None
    policies = server.policies()
    scenario = Scenario(
        workload=swept,
        policies={name: policies[name] for name in COMPARED},
        costs={COST: server.cost},
        run=run_length(swept),
        memory=server.memory,
        objectives=objectives,
        gain_adopt=thresholds.adopt_from,
        waiting_adopt=thresholds.waiting_adopt,
    )
    cvs = [cv for cv in CVS if can_have(swept, cv, server.memory)]
    grid = _grid(slots, server, cvs, timed=timed, seed=seed)
    done = tuple(run_points(scenario, grid))
    for own in done:
        if own.failure:
            raise SlotwiseError("the small sweep failed", where=str(own.point), why=own.failure)
    return Swept(scenario, done)


def _grid(
    slots: list[int], server: Server, cvs: list[float], *, timed: bool, seed: int
) -> list[Point]:
    axes = Axes(
        slots=slots,
        replicas=(server.replicas,),
        balancers=(server.balancer,),
        costs=(COST,),
        loads=WHAT_IF_LOADS if timed else (),
        offline=not timed,
    )
    here = replace(axes, slots=(server.slots,), length_cvs=(None, *cvs), searches=True)
    searched = [point for point in points(here, SEARCHES, seed=seed) if point.search]
    return [*points(axes, REPLICATIONS, seed=seed), *searched]
