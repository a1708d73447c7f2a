"""The `sweep:` section of a workload file, from the file to what `sweep` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slotwise_sim import Memory, Policy
from slotwise_workflows.config import (
    WorkloadFile,
    to_cost,
    to_memory,
    to_policies,
    to_prediction_errors,
    to_server,
    unlimited_memory,
    without_effect,
)
from slotwise_workflows.costs import StatedCost
from slotwise_workflows.requests import build_workload
from slotwise_workflows.sweep.points import OnProgress, Point, points
from slotwise_workflows.sweep.run import Engine, Sweep, sweep


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep that could begin, as far as the file alone can say.

    Attributes:
        grid: Its points.
        policies: What is compared, by name.
        cost: What tokens or iterations cost, and who says so.
        memory: KV memory of each server; None never limits.
        prediction_errors: How far the lengths that a binned policy goes by are off, by its name.
        replicas: Servers behind the balancer.
        seed: The run's seed.
    """

    grid: tuple[Point, ...]
    policies: Mapping[str, Policy]
    cost: StatedCost
    memory: Memory | None
    prediction_errors: Mapping[str, float]
    replicas: int
    seed: int


def plan_sweep(workload_file: WorkloadFile, *, seed: int = 0) -> Plan:
    """Lay out the file's grid without reading its traffic.

    Args:
        workload_file: The workload; ``server.slots`` is not needed, the grid has its own.
        seed: The run's seed.

    Returns:
        What `sweep_file` runs.

    Raises:
        ConfigError: The file tells no cost, or one or a balancer that cannot be simulated.
    """
    grid = workload_file.sweep
    policies = to_policies(workload_file)
    return Plan(
        grid=points(grid.slots, grid.load, policies, grid.replications, seed=seed),
        policies=policies,
        cost=to_cost(workload_file),
        memory=to_memory(workload_file),
        prediction_errors=to_prediction_errors(workload_file),
        replicas=_replicas(workload_file),
        seed=seed,
    )


def sweep_file(
    workload_file: WorkloadFile,
    plan: Plan,
    engine: Engine,
    *,
    on_progress: OnProgress | None = None,
) -> tuple[Sweep, list[str]]:
    """Reads or draws the file's traffic and sweeps it.

    Args:
        workload_file: The workload.
        plan: What `plan_sweep` laid out.
        engine: Where to evaluate.
        on_progress: Told how many points are done, of how many.

    Returns:
        The finished sweep, and what must be known about it, a sentence each.

    Raises:
        InputError: The log cannot be used, or a request can never run in the memory.
        MissingExtraError: Ray was asked for and is not installed.
        EndpointError: The Ray cluster cannot be reached.
    """
    workload, notes = build_workload(workload_file, seed=plan.seed)
    done = sweep(
        workload,
        plan.grid,
        plan.cost.cost,
        engine,
        seed=plan.seed,
        replicas=plan.replicas,
        memory=plan.memory,
        prediction_errors=plan.prediction_errors,
        on_progress=on_progress,
    )
    notes += unlimited_memory(workload_file, plan.cost)
    return done, notes + without_effect(workload_file)


def _replicas(workload_file: WorkloadFile) -> int:
    """`to_server` asks for slots, which a sweep takes from its grid."""
    server = workload_file.server
    if server.slots is None:
        server = server.model_copy(update={"slots": workload_file.sweep.slots[0]})
    return to_server(workload_file.model_copy(update={"server": server}))[1]
