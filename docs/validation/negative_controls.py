"""Where continuous batching gains nothing, or loses: the tables of ``negative_controls.md``.

uv run docs/validation/negative_controls.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from markdown_table import markdown_table
from slotwise_sim import Continuous, Cost, PerToken, Static, Step, Workload, simulate
from slotwise_sim.synthetic import uniform
from slotwise_workflows.costs.presets import find_preset

COST = find_preset("opt-13b-a100-vllm").step
REQUESTS = 2000
SLOTS = 8
PROMPT_TOKENS = 512
TOKENS = 64
MS_PER_TOKEN = 8.0
RANGES = ((64, 64), (48, 80), (8, 120), (12, 20), (4, 12))
OVERHEADS = (0.0, 0.05, 0.11, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Equal:
    """Equal lengths, all waiting from the start: makespans in seconds."""

    cost: str
    static: float
    continuous: float


@dataclass(frozen=True)
class Interrupted:
    """Gain in throughput where every admission stops the others, or does not."""

    fewest: int
    most: int
    separate: float
    mixed: float


@dataclass(frozen=True)
class Measured:
    """The three controls."""

    equal: list[Equal]
    interrupted: list[Interrupted]
    slower_scheduler: dict[str, list[float]]


def measure() -> Measured:
    """Returns the figures of the page."""
    rng = np.random.default_rng(6)
    costs: dict[str, Cost] = {
        "per token": PerToken(MS_PER_TOKEN),
        "step": COST,
    }
    equal = _backlog(TOKENS, TOKENS, rng)
    return Measured(
        equal=[
            Equal(name, _makespan_s(equal, Static(), cost), _makespan_s(equal, Continuous(), cost))
            for name, cost in costs.items()
        ],
        interrupted=[_interrupted(fewest, most, rng) for fewest, most in RANGES],
        slower_scheduler={
            f"{fewest} to {most}": [
                _gain_of_a_slower_scheduler(_backlog(fewest, most, rng), overhead)
                for overhead in OVERHEADS
            ]
            for fewest, most in ((64, 64), (48, 80), (8, 120))
        },
    )


def tables(measured: Measured) -> list[str]:
    """Returns the tables of the page."""
    return [
        markdown_table(
            ["cost", "static s", "continuous s"],
            ([e.cost, f"{e.static:.3f}", f"{e.continuous:.3f}"] for e in measured.equal),
        ),
        markdown_table(
            ["output tokens", "separate prefill", "mixed prefill"],
            (
                [f"{i.fewest} to {i.most}", f"{i.separate:.2f}", f"{i.mixed:.2f}"]
                for i in measured.interrupted
            ),
        ),
        markdown_table(
            ["output tokens", *(f"+{overhead:.0%}" for overhead in OVERHEADS)],
            (
                [name, *(f"{gain:.2f}" for gain in gains)]
                for name, gains in measured.slower_scheduler.items()
            ),
        ),
    ]


def _backlog(fewest: int, most: int, rng: np.random.Generator) -> Workload:
    return Workload(
        np.zeros(REQUESTS),
        uniform(REQUESTS, fewest, most, rng),
        np.full(REQUESTS, PROMPT_TOKENS, dtype=np.int64),
    )


def _makespan_s(workload: Workload, policy: Static | Continuous, cost: Cost) -> float:
    return float(simulate(workload, policy, cost, slots=SLOTS).end_s.max())


def _interrupted(fewest: int, most: int, rng: np.random.Generator) -> Interrupted:
    workload = _backlog(fewest, most, rng)
    static_s = _makespan_s(workload, Static(pad=False), COST)
    separate_s = _makespan_s(workload, Continuous("separate"), COST)
    mixed_s = _makespan_s(workload, Continuous("mixed"), COST)
    return Interrupted(fewest, most, static_s / separate_s, static_s / mixed_s)


def _gain_of_a_slower_scheduler(workload: Workload, overhead: float) -> float:
    """Every iteration of the continuous server takes so much longer."""
    cost = Step(base_ms=MS_PER_TOKEN)
    slower = replace(cost, base_ms=cost.base_ms * (1 + overhead))
    return _makespan_s(workload, Static(), cost) / _makespan_s(workload, Continuous(), slower)


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
