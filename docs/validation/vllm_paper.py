"""How many requests run at once in the vLLM paper, simulated: the tables of ``vllm_paper.md``.

uv run docs/validation/vllm_paper.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from markdown_table import markdown_table
from slotwise_sim import Continuous, Memory, Workload, simulate
from slotwise_sim.synthetic import lognormal, poisson_arrivals
from slotwise_sim.workload import Ints
from slotwise_workflows.costs.presets import find_preset

COST = find_preset("opt-13b-a100-vllm").step
REQUESTS = 4000
KV_TOKENS = 15_700
LONGEST = 2048  # OPT's context, prompt and output together
RATE_PER_S = 2.0
MOST_AT_ONCE = 256
# ShareGPT's means are known, its spread is not: three, each with the mean of prompts and of outputs
# before those too long for the context are left out that leaves about 161 and 338.
SPREADS = {0.8: (164, 347), 1.2: (169, 382), 1.6: (171, 436)}


@dataclass(frozen=True)
class Running:
    """Requests running at once on average, and requests served a second."""

    at_once: float
    per_s: float


@dataclass(frozen=True)
class Traffic:
    """One made ShareGPT and what each system does with it, waiting from the start or at a rate."""

    cv: float
    mean_prompt: float
    mean_output: float
    backlog: dict[str, Running]
    at_rate: dict[str, Running]


def measure() -> list[Traffic]:
    """Returns a row for each spread of lengths."""
    return [_measure(cv, np.random.default_rng(1)) for cv in SPREADS]


def tables(measured: list[Traffic]) -> list[str]:
    """Returns the tables of the page."""
    names = list(measured[0].backlog)
    head = ["CV", "mean prompt", "mean output", *names]

    def rows(when: str) -> list[list[object]]:
        return [
            [
                row.cv,
                f"{row.mean_prompt:.0f}",
                f"{row.mean_output:.0f}",
                *(f"{getattr(row, when)[name].at_once:.1f}" for name in names),
            ]
            for row in measured
        ]

    served = [[row.cv, *(f"{row.backlog[name].per_s:.2f}" for name in names)] for row in measured]
    return [
        markdown_table(head, rows("backlog")),
        markdown_table(head, rows("at_rate")),
        markdown_table(["CV", *names], served),
    ]


def _measure(cv: float, rng: np.random.Generator) -> Traffic:
    prompt, output = _lengths(cv, rng)
    backlog = Workload(np.zeros(REQUESTS), output, prompt)
    at_rate = replace(backlog, arrival_s=poisson_arrivals(REQUESTS, RATE_PER_S, rng))
    return Traffic(
        cv, float(prompt.mean()), float(output.mean()), _systems(backlog), _systems(at_rate)
    )


def _lengths(cv: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Log-normal prompts and outputs that fit the context together."""
    mean_prompt, mean_output = SPREADS[cv]
    prompt = lognormal(2 * REQUESTS, mean_prompt, cv, rng)
    output = lognormal(2 * REQUESTS, mean_output, cv, rng)
    fits = np.flatnonzero(prompt + output <= LONGEST)[:REQUESTS]
    return prompt[fits], output[fits]


def _systems(workload: Workload) -> dict[str, Running]:
    """What a request holds from its start to its end, apart from vLLM, where it grows."""
    prompt, output = workload.prompt_tokens, workload.output_tokens
    power_of_two = 2 ** np.ceil(np.log2(prompt + output)).astype(np.int64)
    reserved = {
        "Orca (Max)": np.full(len(workload), LONGEST),
        "Orca (Oracle)": prompt + output,
        "Orca (Oracle), powers of two": power_of_two,
    }
    contiguous = Memory(KV_TOKENS, reserve="max_tokens")
    return {
        name: _run(replace(workload, max_tokens=held - prompt), contiguous)
        for name, held in reserved.items()
    } | {"vLLM": _run(workload, Memory(KV_TOKENS))}


def _run(workload: Workload, memory: Memory) -> Running:
    outcome = simulate(
        workload,
        Continuous(prefill="separate"),
        COST,
        slots=MOST_AT_ONCE,
        memory=memory,
    )
    makespan_s = float(outcome.end_s.max())
    return Running(outcome.busy_slot_s / makespan_s, len(workload) / makespan_s)


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
