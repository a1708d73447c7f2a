"""Anyscale's continuous batching benchmark, simulated: the tables of ``anyscale.md``.

uv run docs/validation/anyscale.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markdown_table import markdown_table, spread
from slotwise_sim import Continuous, Memory, Policy, Static, Workload, simulate
from slotwise_sim.attribution import Attribution, attribute
from slotwise_sim.lengths import gain_bound, histogram
from slotwise_sim.workload import Ints
from slotwise_workflows.costs.presets import find_preset

COST = find_preset("opt-13b-a100-vllm").step
REQUESTS = 1000
PROMPT_TOKENS = 512
MEAN_OUTPUT_TOKENS = 128
SLOTS_OF_CAP = {32: 16, 128: 12, 512: 8, 1536: 4}
MEMORY = Memory(kv_tokens=12_300)
MOST_AT_ONCE = 256  # what vLLM starts with; memory holds far fewer
SEEDS = range(20)
# vLLM 0.1 prefills arriving prompts in an iteration of their own.
CONTINUOUS = Continuous(prefill="separate")


@dataclass(frozen=True)
class Draw:
    """One draw of a thousand requests, served in every way; throughputs in tokens a second."""

    mean: float
    cv: float
    longest: float
    static: float
    continuous: float
    paged: float
    paged_mixed: float
    running: float
    split: Attribution


def measure() -> dict[int, list[Draw]]:
    """Returns the draws of all seeds, by cap."""
    return {
        cap: [_serve(_capped(cap, np.random.default_rng(seed)), slots) for seed in SEEDS]
        for cap, slots in SLOTS_OF_CAP.items()
    }


def tables(measured: dict[int, list[Draw]]) -> list[str]:
    """Returns the tables of the page."""

    def of(draws: list[Draw], name: str, digits: int) -> str:
        return spread([getattr(draw, name) for draw in draws], digits)

    lengths = markdown_table(
        ["cap", "slots", "E[X]", "CV", "E[max]/E[X]"],
        (
            [cap, SLOTS_OF_CAP[cap], of(d, "mean", 1), of(d, "cv", 2), of(d, "longest", 2)]
            for cap, d in measured.items()
        ),
    )
    throughput = markdown_table(
        ["cap", "slots", "static", "continuous, same slots", "ratio", "paged", "paged, mixed"],
        (
            [
                cap,
                SLOTS_OF_CAP[cap],
                of(d, "static", 0),
                of(d, "continuous", 0),
                spread([draw.continuous / draw.static for draw in d], 2),
                of(d, "paged", 0),
                of(d, "paged_mixed", 0),
            ]
            for cap, d in measured.items()
        ),
    )
    split = markdown_table(
        ["cap", "order of filling", "memory", "larger batch", "all", "running at once"],
        (
            [
                cap,
                *(
                    spread([getattr(draw.split, part) for draw in d], 2)
                    for part in ("order", "memory", "larger_batch", "total")
                ),
                of(d, "running", 1),
            ]
            for cap, d in measured.items()
        ),
    )
    return [lengths, throughput, split]


def _capped(cap: int, rng: np.random.Generator) -> Ints:
    """Exponential lengths, drawn again where they exceed the cap."""
    lengths = rng.exponential(MEAN_OUTPUT_TOKENS, REQUESTS)
    while (above := lengths > cap).any():
        lengths[above] = rng.exponential(MEAN_OUTPUT_TOKENS, int(above.sum()))
    return np.maximum(1, np.rint(lengths)).astype(np.int64)


def _serve(output_tokens: Ints, slots: int) -> Draw:
    prompt_tokens = np.full(REQUESTS, PROMPT_TOKENS, dtype=np.int64)
    workload = Workload(np.zeros(REQUESTS), output_tokens, prompt_tokens)
    tokens = int((prompt_tokens + output_tokens).sum())

    def tokens_per_s(policy: Policy, slots: int, memory: Memory | None = None) -> float:
        outcome = simulate(workload, policy, COST, slots=slots, memory=memory)
        return tokens / float(outcome.end_s.max())

    split = attribute(workload, Static(), CONTINUOUS, COST, slots=slots, memory=MEMORY)
    return Draw(
        mean=float(output_tokens.mean()),
        cv=float(output_tokens.std(ddof=1) / output_tokens.mean()),
        longest=gain_bound(*histogram(output_tokens), slots),
        static=tokens_per_s(Static(), slots),
        continuous=tokens_per_s(CONTINUOUS, slots),
        paged=tokens_per_s(CONTINUOUS, MOST_AT_ONCE, MEMORY),
        paged_mixed=tokens_per_s(Continuous(prefill="mixed"), MOST_AT_ONCE, MEMORY),
        running=split.running["paged"],
        split=split,
    )


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
