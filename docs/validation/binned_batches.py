"""Batches of requests alike in length, for those who keep their engine: ``binned_batches.md``.

uv run docs/validation/binned_batches.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from markdown_table import markdown_table
from slotwise_sim import Binned, Continuous, PerToken, Policy, Workload, simulate
from slotwise_sim.synthetic import (
    Lengths,
    lognormal,
    mixture,
    poisson_arrivals,
    predicted_tokens,
    uniform,
)
from slotwise_sim.workload import Ints

REQUESTS = 200_000
SLOTS = 8
BINS = (1, 2, 4, 8, 16, 32)
ERRORS = (0.0, 0.25, 0.5, 1.0)
LOADS = (0.2, 0.4, 0.6, 0.75)
MOST_TOKENS = 10_000
MS_PER_TOKEN = 8.0


@dataclass(frozen=True)
class Throughputs:
    """Requests a second as a share of what continuous batching serves, by number of bins."""

    lengths: str
    error: float
    share: Mapping[int, float]


@dataclass(frozen=True)
class Measured:
    """Shares under backlog; the formula for uniform lengths; mean latencies in seconds at a load.

    Latencies are of each number of bins and of continuous batching; None where they grow without
    end, because the load is more than can be served.
    """

    throughputs: list[Throughputs]
    formula: Mapping[int, float]
    latencies: Mapping[float, list[float | None]]


def measure() -> Measured:
    """Returns what bins are worth, with perfect and with noisy predictions."""
    rng = np.random.default_rng(2412)
    sources: dict[str, Lengths] = {
        "uniform": lambda n, rng: uniform(n, 1, MOST_TOKENS, rng),
        "log-normal, CV 1": lambda n, rng: lognormal(n, 338, 1.0, rng),
        "the article's": _article_lengths,
    }
    backlogs = {
        name: Workload(np.zeros(REQUESTS), draw(REQUESTS, rng), np.zeros(REQUESTS, dtype=np.int64))
        for name, draw in sources.items()
    }
    throughputs = [
        Throughputs(name, error, _shares(backlog, error, rng))
        for name, backlog in backlogs.items()
        for error in ERRORS
    ]
    oracle = next(t for t in throughputs if t.lengths == "the article's" and t.error == 0)
    return Measured(
        throughputs=throughputs,
        formula={bins: uniform_share(bins, SLOTS) for bins in BINS},
        latencies={
            load: _latencies(backlogs["the article's"], load, oracle.share, rng) for load in LOADS
        },
    )


def tables(measured: Measured) -> list[str]:
    """Returns the tables of the page."""
    head = ["lengths", "error", *map(_named, BINS)]
    rows: list[list[object]] = [
        [found.lengths, found.error, *(f"{100 * found.share[bins]:.1f} %" for bins in BINS)]
        for found in measured.throughputs
    ]
    formula = ["uniform, formula", 0.0, *(f"{100 * measured.formula[b]:.1f} %" for b in BINS)]
    waits = [
        [f"{load:.0%}", *("grows" if mean is None else f"{mean:.1f}" for mean in means)]
        for load, means in measured.latencies.items()
    ]
    return [
        markdown_table(head, [formula, *rows]),
        markdown_table(["load", *map(_named, BINS), "continuous"], waits),
    ]


def uniform_share(bins: int, batch: int) -> float:
    """Throughput of full batches of uniform lengths from ``bins`` equal bins, over no waste at all.

    The longest of B in bin i of k is (i - 1)/k + B/(B + 1)/k on average; over all bins that is
    1/2 + (B - 1)/(B + 1)/(2 k), against a mean length of 1/2.
    """
    return 1 / (1 + (batch - 1) / (batch + 1) / bins)


def _article_lengths(n: int, rng: np.random.Generator) -> Ints:
    return mixture(
        n,
        [
            (0.85, lambda n, rng: uniform(n, 40, 199, rng)),
            (0.15, lambda n, rng: uniform(n, 400, 999, rng)),
        ],
        rng,
    )


def _named(bins: int) -> str:
    return "1 bin" if bins == 1 else f"{bins} bins"


def _shares(backlog: Workload, error: float, rng: np.random.Generator) -> dict[int, float]:
    predicted = replace(
        backlog, predicted_tokens=predicted_tokens(backlog.output_tokens, error, rng)
    )

    def makespan_s(policy: Policy) -> float:
        return float(simulate(predicted, policy, PerToken(MS_PER_TOKEN), slots=SLOTS).end_s.max())

    shortest_s = makespan_s(Continuous())
    return {bins: shortest_s / makespan_s(Binned(bins)) for bins in BINS}


def _latencies(
    backlog: Workload, load: float, share: Mapping[int, float], rng: np.random.Generator
) -> list[float | None]:
    """Where requests come one by one, at a share of the rate that refilled slots can serve."""
    rate = load * SLOTS / (float(backlog.output_tokens.mean()) * MS_PER_TOKEN / 1000)
    arriving = replace(backlog, arrival_s=poisson_arrivals(len(backlog), rate, rng))

    def mean_s(policy: Policy) -> float:
        outcome = simulate(arriving, policy, PerToken(MS_PER_TOKEN), slots=SLOTS)
        return float((outcome.end_s - outcome.arrival_s).mean())

    binned = [mean_s(Binned(bins)) if load < share[bins] else None for bins in BINS]
    return [*binned, mean_s(Continuous())]


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
