"""A workload file replayed under its policies, side by side."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from slotwise_sim import (
    Continuous,
    Memory,
    NeverFitsError,
    Outcome,
    PerToken,
    Policy,
    Step,
    Workload,
    simulate,
)
from slotwise_sim.attribution import Attribution, attribute
from slotwise_sim.memory import check_fits
from slotwise_sim.policies import BatchPolicy
from slotwise_sim.workload import all_at_once
from slotwise_workflows.compare.sustained import as_served
from slotwise_workflows.config import (
    WorkloadFile,
    to_cost,
    to_memory,
    to_policies,
    to_prediction_errors,
    to_server,
    to_users,
    unlimited_memory,
    where,
    without_effect,
)
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.files import replacing
from slotwise_workflows.outcome import measure, with_predictions
from slotwise_workflows.record import Record
from slotwise_workflows.requests import build_workload
from slotwise_workflows.result import PolicyFigures

SIMULATION_SCHEMA: Literal["slotwise/simulation/v1"] = "slotwise/simulation/v1"
CSV_COLUMNS = (
    "policy",
    "arrival_s",
    "prompt_tokens",
    "output_tokens",
    "start_s",
    "first_token_s",
    "end_s",
)
OnProgress = Callable[[int, int], None]


class SimulationResult(Record):
    """What `simulate --json` prints. Times are seconds, shares fractions of one."""

    schema_: Literal["slotwise/simulation/v1"] = Field(SIMULATION_SCHEMA, alias="schema")
    name: str
    requests: int
    slots: int = Field(description="of one server")
    replicas: int
    balancer: str = Field(description="how requests are spread over replicas")
    users: int | None = Field(
        description="of a closed loop, in place of the requests' own times; null without"
    )
    ms_per_token: float | None = Field(description="null under a step cost")
    cost: CostRecord
    memory: Memory | None = Field(description="of one server; null where it limits nothing")
    seed: int
    notes: list[str] = Field(description="what a reader of the figures must know")
    policies: dict[str, PolicyFigures] = Field(
        description="by the policy's name; a repeated one gets #2"
    )
    attribution: Attribution | None = Field(
        description="where the gain of the first continuous policy over the first batch-at-once "
        "one comes from, with all requests waiting; null without both, without a step cost, or "
        "where a note says why"
    )

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


@dataclass(frozen=True, slots=True)
class Simulation:
    """The figures, and the requests they are of.

    Attributes:
        result: What is printed.
        workload: The requests, in the order of the input.
        outcomes: Their times under each policy, by the policy's key.
    """

    result: SimulationResult
    workload: Workload
    outcomes: Mapping[str, Outcome]


def simulate_file(
    workload_file: WorkloadFile, *, seed: int = 0, on_progress: OnProgress | None = None
) -> Simulation:
    """Replays the file's requests under each of its policies, on the same slots.

    Args:
        workload_file: The workload.
        seed: Of the draws of synthetic traffic and of predicted lengths; nothing else is drawn.
        on_progress: Hears how many requests of how many are replayed: all policies together, and
            the split of the gain as one more.

    Raises:
        ConfigError: Slots or cost are not told, or cannot be simulated with these requests.
        InputError: The log cannot be used.
    """
    # First what is quick to find wrong, then the log, which may be large.
    slots, replicas, balancer = to_server(workload_file)
    stated, memory = to_cost(workload_file), to_memory(workload_file)
    policies = to_policies(workload_file)
    workload, notes = build_workload(workload_file, memory, seed=seed)
    errors = to_prediction_errors(workload_file)
    seen = {
        key: workload if key not in errors else with_predictions(workload, errors[key], seed)
        for key in policies
    }
    users = to_users(workload_file, len(workload), seed=seed)
    cost = stated.cost
    compared = _first_of_either(policies) if isinstance(cost, Step) else None
    replays = len(policies) + (compared is not None)
    outcomes: dict[str, Outcome] = {}
    for key, policy in policies.items():
        outcomes[key] = simulate(
            seen[key],
            policy,
            cost,
            slots=slots,
            replicas=replicas,
            balancer=balancer,
            users=users,
            memory=memory,
            on_progress=_of_all(on_progress, len(outcomes), replays, len(workload)),
        )
    place = where(workload_file, "server.cost")
    measured = {key: measure(outcome, place=place) for key, outcome in outcomes.items()}
    attribution = None
    if compared is not None and isinstance(cost, Step):
        _of_all(on_progress, len(policies), replays, len(workload))
        key, batch, continuous = compared
        try:
            attribution = _attribution(seen[key], batch, continuous, cost, slots, replicas, memory)
        except NeverFitsError as error:  # it fits where it is reserved whole
            notes.append(
                f"gain not split: paged memory needs a spare block for request {error.row + 1}"
            )
    _of_all(on_progress, replays, replays, len(workload))
    result = SimulationResult(
        name=workload_file.name,
        requests=len(workload),
        slots=slots,
        replicas=replicas,
        balancer=balancer,
        users=None if users is None else users.count,
        ms_per_token=cost.ms_per_token if isinstance(cost, PerToken) else None,
        cost=CostRecord.of(stated),
        memory=memory,
        seed=seed,
        notes=notes + unlimited_memory(workload_file, stated) + without_effect(workload_file),
        policies={key: PolicyFigures.model_validate(told) for key, told in measured.items()},
        attribution=attribution,
    )
    return Simulation(result, workload, outcomes)


def _of_all(on_progress: OnProgress | None, done: int, replays: int, requests: int) -> OnProgress:
    """Tells that so many replays are done; what it returns tells how far the next one is."""

    def tell(of_this_one: int, _requests: int) -> None:
        if on_progress is not None:
            on_progress(done * requests + of_this_one, replays * requests)

    tell(0, requests)
    return tell


def _first_of_either(policies: Mapping[str, Policy]) -> tuple[str, BatchPolicy, Continuous] | None:
    """The first batch-at-once policy, after its key, and the first continuous one."""
    batching = [(key, p) for key, p in policies.items() if not isinstance(p, Continuous)]
    refilling = [policy for policy in policies.values() if isinstance(policy, Continuous)]
    return (*batching[0], refilling[0]) if batching and refilling else None


def _attribution(
    workload: Workload,
    batch: BatchPolicy,
    continuous: Continuous,
    cost: Step,
    slots: int,
    replicas: int,
    memory: Memory | None,
) -> Attribution:
    """The split of the gain, with all requests waiting.

    Raises:
        NeverFitsError: Paged memory cannot hold a request, named by its row in the workload.
    """
    if memory is not None:
        check_fits(workload, replace(memory, reserve="paged"))
    served = as_served(all_at_once(workload), replicas)
    return attribute(served, batch, continuous, cost, slots=slots, memory=memory)


def write_requests(simulation: Simulation, path: Path) -> None:
    """Writes one row a policy and request, in the order of the input, at full precision.

    Raises:
        InputError: The place cannot be written.
    """
    workload = simulation.workload
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for key, outcome in simulation.outcomes.items():
            writer.writerows(_rows(key, workload, outcome))


def _rows(key: str, workload: Workload, outcome: Outcome) -> Iterable[tuple[object, ...]]:
    # Python's own floats: csv writes them with the fewest digits that read back the same.
    columns = (
        workload.arrival_s,
        workload.prompt_tokens,
        workload.output_tokens,
        outcome.start_s,
        outcome.first_token_s,
        outcome.end_s,
    )
    return ((key, *row) for row in zip(*(c.tolist() for c in columns), strict=True))
