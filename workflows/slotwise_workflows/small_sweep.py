"""The sweep that a diagnosis runs by itself: other slots, loads and variation around today's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slotwise_sim import Workload
from slotwise_sim.replicate import run_length
from slotwise_sim.workload import rows_of
from slotwise_workflows.compare.server import COMPARED, Server
from slotwise_workflows.compare.what_if import WHAT_IF_LOADS, slots_around
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.sweep.evaluate import Done, run_points
from slotwise_workflows.sweep.points import Axes, Point, Setting, points, seed_of
from slotwise_workflows.sweep.scenario import Scenario

COST = "stated"
"""What the one cost is called."""

CVS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Variation at which the load is searched from which the change pays."""

MOST_REQUESTS = 5_000
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
        What was found; a point that failed says why. None where the requests fill no batch.
    """
    swept = (
        rows_of(workload, slice(0, MOST_REQUESTS)) if len(workload) > MOST_REQUESTS else workload
    )
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
    return Swept(
        scenario, tuple(run_points(scenario, _grid(slots, server, timed=timed, seed=seed)))
    )


def _grid(slots: list[int], server: Server, *, timed: bool, seed: int) -> list[Point]:
    axes = Axes(
        slots=slots,
        replicas=(server.replicas,),
        balancers=(server.balancer,),
        costs=(COST,),
        loads=WHAT_IF_LOADS if timed else (),
        offline=not timed,
    )
    here = Setting(server.slots, server.replicas, server.balancer, COST)
    searched = [
        Point(
            Setting(here.slots, here.replicas, here.balancer, here.cost, cv),
            replication,
            seed_of(seed, replication),
            search=True,
        )
        for cv in (None, *CVS)
        for replication in range(SEARCHES)
    ]
    return [*points(axes, REPLICATIONS, seed=seed), *searched]
