"""Simulates measured requests once more at some cost, and says how far off that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim.costs import Step
from slotwise_sim.memory import Memory
from slotwise_sim.observed import Measured, apart, most_at_once, spans_s, stretches
from slotwise_sim.outcome import Outcome
from slotwise_sim.policies import Continuous, Policy
from slotwise_sim.simulation import simulate
from slotwise_sim.workload import Bools, Floats, Workload

_TELLING = 0.5  # of the time busy: what must be left after the last arrivals


@dataclass(frozen=True, slots=True)
class Server:
    """The server that was measured, as it is simulated; see `simulate`."""

    policy: Policy
    slots: int
    replicas: int = 1
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """What the simulation did, by the clock of the measurement.

    Attributes:
        first_token_s: When each first token came, shape (n,).
        end_s: When each answer ended, shape (n,).
        preemptions: How often a running request had to give its slot back.
    """

    first_token_s: Floats
    end_s: Floats
    preemptions: int


@dataclass(frozen=True, slots=True)
class Errors:
    """Simulated over measured, less one: relative errors of what a user feels.

    ``busy`` is that of the time from first arrival to last end, summed over the stretches in which
    the server was never empty; of a single stretch it is the makespan. None where less than half of
    that time was left once the last request of its stretch had arrived: arrivals are given, and
    would make any cost look right.
    """

    latency_mean: float
    latency_p95: float
    ttft_mean: float
    busy: float | None


def replay(step: Step, overhead_ms: float, measured: Measured, server: Server) -> Replay:
    """Simulates all requests, each stretch from its own first arrival on.

    Args:
        step: The cost.
        overhead_ms: From a request's logged arrival to where the server can admit it.
        measured: The requests.
        server: How they were served.
    """
    moved = apart(measured)
    shift_s = moved.workload.arrival_s - measured.workload.arrival_s
    outcome = simulated(step, overhead_ms, moved.workload, as_met(server, measured))
    return Replay(outcome.first_token_s - shift_s, outcome.end_s - shift_s, outcome.preemptions)


def simulated(step: Step, overhead_ms: float, workload: Workload, server: Server) -> Outcome:
    """Simulates requests that reach the server late."""
    late = replace(workload, arrival_s=workload.arrival_s + overhead_ms / 1000)
    return simulate(
        late,
        server.policy,
        step,
        slots=server.slots,
        replicas=server.replicas,
        memory=server.memory,
    )


def as_met(server: Server, measured: Measured) -> Server:
    """The server without its limit of slots where that limit was never met."""
    unlimited = isinstance(server.policy, Continuous) and (
        most_at_once(measured) <= server.slots * server.replicas
    )
    return replace(server, slots=len(measured.workload)) if unlimited else server


def errors_of(replayed: Replay, measured: Measured, rows: Bools) -> Errors:
    """How far a replay is off, on some of its requests.

    Args:
        replayed: The simulation.
        measured: The same requests as they were measured.
        rows: Which are compared, shape (n,).
    """
    arrival_s, stretch = measured.workload.arrival_s[rows], stretches(measured)[rows]
    first_s, end_s = replayed.first_token_s[rows], replayed.end_s[rows]
    seen_first_s, seen_end_s = measured.first_token_s[rows], measured.end_s[rows]
    arriving_s = spans_s(stretch, arrival_s, arrival_s).sum()
    busy_s = spans_s(stretch, arrival_s, end_s).sum()
    seen_busy_s = spans_s(stretch, arrival_s, seen_end_s).sum()
    told = seen_busy_s - arriving_s >= _TELLING * seen_busy_s
    return Errors(
        latency_mean=_off((end_s - arrival_s).mean(), (seen_end_s - arrival_s).mean()),
        latency_p95=_off(_p95(end_s - arrival_s), _p95(seen_end_s - arrival_s)),
        ttft_mean=_off((first_s - arrival_s).mean(), (seen_first_s - arrival_s).mean()),
        busy=_off(busy_s, seen_busy_s) if told else None,
    )


def _off(simulated: float, seen: float) -> float:
    return float(simulated / seen - 1) if seen > 0 else 0.0


def _p95(values: Floats) -> float:
    return float(np.sort(values)[math.ceil(0.95 * (len(values) - 1))])
