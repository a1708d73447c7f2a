"""A workload file replayed under its policies, side by side."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ConfigDict, Field

from slotwise_sim import Outcome, Workload, simulate
from slotwise_sim.metrics import figures
from slotwise_workflows.config import (
    WorkloadFile,
    to_cost,
    to_logs,
    to_policies,
    to_read_options,
    to_server,
    where,
    without_effect,
)
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.files import replacing
from slotwise_workflows.result import PolicyFigures, Record
from slotwise_workflows.traffic.model import Traffic

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
    ms_per_token: float
    seed: int
    notes: list[str] = Field(description="what a reader of the figures must know")
    policies: dict[str, PolicyFigures] = Field(
        description="by the policy's name; a repeated one gets #2"
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
        seed: Of the draws of synthetic traffic; a log draws nothing.
        on_progress: Hears how many policies of how many are done.

    Raises:
        ConfigError: Slots or cost are not told, or of a kind that cannot be simulated yet.
        InputError: The log cannot be used.
    """
    # First what is quick to find wrong, then the log, which may be large.
    slots, replicas = to_server(workload_file)
    cost = to_cost(workload_file)
    policies = to_policies(workload_file)
    workload, notes = build_workload(workload_file, seed=seed)
    outcomes: dict[str, Outcome] = {}
    for index, (key, policy) in enumerate(policies.items()):
        if on_progress is not None:
            on_progress(index, len(policies))
        outcomes[key] = simulate(workload, policy, cost, slots=slots, replicas=replicas)
    if on_progress is not None:
        on_progress(len(policies), len(policies))
    result = SimulationResult(
        name=workload_file.name,
        requests=len(workload),
        slots=slots,
        replicas=replicas,
        ms_per_token=cost.ms_per_token,
        seed=seed,
        notes=notes + without_effect(workload_file),
        policies={k: PolicyFigures.model_validate(figures(o)) for k, o in outcomes.items()},
    )
    return Simulation(result, workload, outcomes)


def build_workload(
    workload_file: WorkloadFile, *, seed: int = 0, on_progress: OnProgress | None = None
) -> tuple[Workload, list[str]]:
    """The requests that a workload file describes, read or drawn.

    Args:
        workload_file: The workload.
        seed: Of the draws of synthetic traffic.
        on_progress: Hears how many bytes of how many are read.

    Returns:
        The requests, and what must be known about them: rows left out, flags.

    Raises:
        ConfigError: ``origin: zero`` for times that have no zero of their own.
        InputError: The log cannot be used.
    """
    synthetic, log = workload_file.traffic.synthetic, workload_file.traffic.log
    if synthetic is not None:
        from slotwise_workflows.synthetic import draw

        return draw(synthetic, np.random.default_rng(seed)), []
    if log is None:
        raise ConfigError("traffic names neither log nor synthetic")
    from slotwise_workflows.traffic import read_traffic

    traffic = read_traffic(
        to_logs(workload_file), to_read_options(workload_file), on_progress=on_progress
    )
    if log.origin == "zero" and traffic.clock != "relative":
        raise ConfigError(
            "traffic.log.origin zero is for times that count from the log's own zero",
            where=where(workload_file, "traffic.log.origin"),
            why=f"the times of this log are {traffic.clock or 'unknown'}",
            hint="Use origin: first",
        )
    notes = [f"{count} rows left out: {reason}" for reason, count in traffic.excluded.items()]
    if traffic.clock is None:
        notes.append("arrival times are not known: all requests arrive at once")
    notes += [*traffic.flags, *traffic.notes]
    return _arrays(traffic, workload_file), notes


def _arrays(traffic: Traffic, workload_file: WorkloadFile) -> Workload:
    log = workload_file.traffic.log
    origin = log.origin if log is not None else "first"
    try:
        return replace(traffic, origin=origin).workload()
    except ValueError as error:  # times before the log's own zero
        raise ConfigError(
            "the log's requests cannot be replayed",
            where=where(workload_file, "traffic.log"),
            why=str(error),
            hint="Use origin: first",
        ) from None


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
