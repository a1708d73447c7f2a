"""How often a calibration's intervals hold the truth, on simulated servers of known cost.

uv run docs/validation/calibration_intervals.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from markdown_table import markdown_table
from slotwise_sim import Continuous, Memory, Step, Workload
from slotwise_sim.calibration import Calibration, calibrate
from slotwise_sim.observed import Measured
from slotwise_sim.replay import Server, simulated
from slotwise_sim.workload import Floats

TRUTH = Step(base_ms=20, per_seq_ms=0.4, per_prefill_token_ms=0.08)
OVERHEAD_MS = 20.0
TERMS: Mapping[str, float] = {
    "base_ms": TRUTH.base_ms,
    "per_seq_ms": TRUTH.per_seq_ms,
    "per_prefill_token_ms": TRUTH.per_prefill_token_ms,
    "overhead_ms": OVERHEAD_MS,
}
SERVERS = {
    "unlimited": (Server(Continuous(), 64), 3.0),
    "chunked prefill": (Server(Continuous(max_batched_tokens=512), 64), 3.0),
    "separate prefill": (Server(Continuous(prefill="separate"), 64), 2.5),
    "two replicas": (Server(Continuous(), 32, replicas=2), 5.0),
    "preempting": (Server(Continuous(max_batched_tokens=2048), 64, 1, Memory(6000)), 2.6),
}
"""Servers, and the requests a second that they get."""

RUNS, REQUESTS, NOISE = 20, 150, 0.02


@dataclass(frozen=True)
class Trial:
    """What came of one server's runs.

    Attributes:
        held: By term, whether its interval held the truth, for each run in which it was fitted.
        preemptions: Of each run, in the simulation at the fitted cost.
    """

    held: Mapping[str, list[bool]]
    preemptions: list[int]

    @property
    def coverage(self) -> float:
        """The share of all intervals that held the truth."""
        return float(np.mean([held for of_term in self.held.values() for held in of_term]))


def requests(n: int, rate: float, rng: np.random.Generator, *, output_mean: int = 120) -> Workload:
    """Returns requests that arrive at random, with exponential outputs."""
    output = 2 + rng.exponential(output_mean, n).astype(np.int64)
    return Workload(np.cumsum(rng.exponential(1 / rate, n)), output, rng.integers(50, 800, n))


def seen(
    workload: Workload, cost: Step, server: Server, rng: np.random.Generator, noise: float = NOISE
) -> Measured:
    """Returns what a server of a known cost does, as a noisy clock sees it."""
    outcome = simulated(cost, OVERHEAD_MS, workload, server)
    n = len(workload)
    spans: Floats = (outcome.end_s - outcome.first_token_s) * np.exp(rng.normal(0, noise, n))
    first = outcome.first_token_s + noise * np.abs(rng.normal(0, 0.15, n)) - noise * 0.12
    first = np.maximum(first, workload.arrival_s)
    return Measured(workload, first, first + spans)


def holds(found: Calibration) -> dict[str, bool]:
    """Returns whether each fitted term's interval holds the truth."""
    fitted = {name: found.terms[name] for name in TERMS if found.terms[name].how == "fitted"}
    return {name: term.low <= TERMS[name] <= term.high for name, term in fitted.items()}


def measure() -> dict[str, Trial]:
    """Returns the trials of all servers, by name."""
    return {name: _trial(server, rate) for name, (server, rate) in SERVERS.items()}


def _trial(server: Server, rate: float) -> Trial:
    held: dict[str, list[bool]] = {name: [] for name in TERMS}
    preemptions = []
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        found = calibrate(seen(requests(REQUESTS, rate, rng), TRUTH, server, rng), server)
        preemptions.append(found.preemptions)
        for name, held_it in holds(found).items():
            held[name].append(held_it)
    return Trial(held, preemptions)


def tables(trials: Mapping[str, Trial]) -> list[str]:
    """Returns the table of the page."""
    return [
        markdown_table(
            ("server", *TERMS, "all", "preemptions a run"),
            [
                (
                    name,
                    *(f"{sum(held)} of {len(held)}" for held in trial.held.values()),
                    f"{100 * trial.coverage:.0f} %",
                    f"{np.mean(trial.preemptions):.0f}",
                )
                for name, trial in trials.items()
            ],
        )
    ]


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
