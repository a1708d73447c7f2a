"""The `sweep:` section of a workload file, from the file to what `sweep` takes and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim import Workload
from slotwise_sim.policies import fills_batches
from slotwise_sim.replicate import run_length
from slotwise_workflows.config import (
    WorkloadFile,
    to_costs,
    to_policies,
    to_prediction_errors,
    to_swept_memory,
    to_thinking,
    unlimited_memory,
    where,
    without_effect,
)
from slotwise_workflows.costs import CostRecord, StatedCost
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.requests import OnProgress, build_workload
from slotwise_workflows.sample_size import P95_REQUESTS
from slotwise_workflows.sweep.points import Axes, Point, points
from slotwise_workflows.sweep.record import SweepFigures, SweepReport
from slotwise_workflows.sweep.run import Sweep
from slotwise_workflows.sweep.scenario import Scenario, offered_per_s
from slotwise_workflows.sweep.table import failures, figures_of

LOADS = (0.25, 0.5, 1.0, 2.0)
"""Times today's load, where the file names neither loads nor users nor an offline job."""

MOST_POINTS = 1_000_000
"""Of a sweep, and settings of a grid that a sample is drawn from: about 2 KB of memory each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep that could begin.

    Attributes:
        scenario: What all points share.
        grid: The points.
        costs: What tokens or iterations cost, by name, and who says so.
        seed: The run's seed.
        slots: Of the server that is there, where the file tells.
        notes: What a reader of the figures must know.
    """

    scenario: Scenario
    grid: tuple[Point, ...]
    costs: Mapping[str, StatedCost]
    seed: int
    slots: int | None
    notes: tuple[str, ...]


def plan_sweep(
    workload_file: WorkloadFile, *, seed: int = 0, on_progress: OnProgress | None = None
) -> Plan:
    """Lays out the file's grid, and reads or draws its traffic.

    Args:
        workload_file: The workload; ``server.slots`` is not needed, the grid has its own.
        seed: The run's seed.
        on_progress: Hears how many bytes of a log of how many are read.

    Raises:
        ConfigError: The file tells no cost, or one that cannot be used; the grid has too many
            points; lengths that are all equal are to be respread.
        InputError: The log cannot be used, or a request can never run in the memory.
    """
    # First what is quick to find wrong, then the log, which may be large.
    costs = to_costs(workload_file)
    axes = _axes(workload_file, costs)
    sweep = workload_file.sweep
    _check_size(axes, workload_file)
    memory = to_swept_memory(workload_file)
    workload, notes = build_workload(workload_file, memory, seed=seed, on_progress=on_progress)
    _check_spread(workload, workload_file)
    if axes.loads and offered_per_s(workload) is None:
        axes = replace(axes, loads=(), offline=True)
        notes = [*notes, "all requests come at once: no load to vary, swept as one offline job"]
    grid = points(axes, sweep.replications, seed=seed, sample=sweep.sample)
    if len(costs) == 1:
        notes = notes + unlimited_memory(workload_file, next(iter(costs.values())))
    limits = workload_file.thresholds
    objectives = workload_file.objectives.model_dump(exclude_none=True)
    scenario = Scenario(
        workload=workload,
        policies=to_policies(workload_file),
        costs={name: own.cost for name, own in costs.items()},
        run=run_length(workload),
        memory=memory,
        prediction_errors=to_prediction_errors(workload_file),
        thinking=to_thinking(workload_file),
        objectives={name.removesuffix("_p95_s"): limit for name, limit in objectives.items()},
        gain_adopt=limits.adopt_from,
        waiting_adopt=limits.waiting_adopt,
    )
    slots = workload_file.server.slots
    remarks = (*notes, *without_effect(workload_file), *_remarks(scenario, workload_file))
    return Plan(scenario, grid, costs, seed, slots, remarks)


def report(plan: Plan, done: Sweep, name: str) -> SweepReport:
    """The sweep as ``sweep --json`` says it, with what it was replayed at.

    Args:
        plan: What was run.
        done: What was found.
        name: What the workload is called.
    """
    figures = figures_of(plan.scenario, done.done, slots=plan.slots)
    return SweepReport(
        **{field: getattr(figures, field) for field in SweepFigures.model_fields},
        name=name,
        engine=done.engine,
        points=len(plan.grid),
        reused=done.reused,
        seed=plan.seed,
        costs={called: CostRecord.of(own) for called, own in plan.costs.items()},
        memory=plan.scenario.memory,
        notes=list(plan.notes),
        failures=failures(done.done),
    )


def _axes(workload_file: WorkloadFile, costs: Mapping[str, StatedCost]) -> Axes:
    """What the file varies; what it does not is as the server's and the traffic's sections say."""
    sweep, server = workload_file.sweep, workload_file.server
    users, loads, offline = sweep.users or (), sweep.load or (), sweep.offline
    if not (users or loads or offline):
        told = workload_file.traffic.users
        users = () if told is None else (told.count,)
        offline = told is None and server.mode == "offline"
        loads = () if users or offline else LOADS
    return Axes(
        slots=sweep.slots,
        replicas=sweep.replicas or (server.replicas or 1,),
        balancers=sweep.balancer or (server.balancer,),
        costs=tuple(costs),
        length_cvs=sweep.length_cv or (None,),
        loads=loads,
        users=users,
        offline=offline,
        searches=sweep.limits,
    )


def _remarks(scenario: Scenario, workload_file: WorkloadFile) -> Iterator[str]:
    """What a reader of the figures would else take amiss."""
    requests, baseline = len(scenario.workload), scenario.baseline()
    if requests < P95_REQUESTS:
        yield f"{requests:,} requests carry no p95, nor a verdict: {P95_REQUESTS} are the fewest"
    if fills_batches(scenario.policies[baseline]):
        yield (
            f"{baseline} waits until a batch is full, however long: against it others pay at low"
            " loads already. A server that starts short batches is dynamic"
        )
    sweep = workload_file.sweep
    if (
        workload_file.traffic.users is not None
        and sweep.users is None
        and (sweep.load or sweep.offline)
    ):
        yield "traffic.users is not swept: the sweep section names its own ways of arriving"


def _check_size(axes: Axes, workload_file: WorkloadFile) -> None:
    """A grid is laid out as a whole, and what is found of it is kept as a whole.

    Raises:
        ConfigError: It is too large.
    """
    sweep, size = workload_file.sweep, axes.size()
    points = size * sweep.replications
    if sweep.sample is not None:  # a server that is drawn is searched at two variations at most
        points = min(points, 3 * sweep.sample * sweep.replications)
    if max(points, size) > MOST_POINTS:
        raise ConfigError(
            f"sweep has {max(points, size):,} points",
            where=where(workload_file, "sweep"),
            why=f"{MOST_POINTS:,} are the most",
            hint="Vary less, replicate less, or draw a sample of the grid",
        )


def _check_spread(workload: Workload, workload_file: WorkloadFile) -> None:
    """Lengths that do not vary have no spread to be widened.

    Raises:
        ConfigError: They are to be.
    """
    tokens = workload.output_tokens
    if any(cv > 0 for cv in workload_file.sweep.length_cv or ()) and np.ptp(tokens) == 0:
        raise ConfigError(
            "sweep.length_cv cannot respread output lengths that are all equal",
            where=where(workload_file, "sweep.length_cv"),
            why=f"all {len(tokens):,} requests have {int(tokens[0]):,} tokens: no shape to stretch",
            hint="Give the traffic a shape, for example synthetic output_tokens: {lognormal: "
            f"{{mean: {int(tokens[0])}, cv: 1}}}}",
        )
