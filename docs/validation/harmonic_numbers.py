"""Exponential lengths gain a harmonic number: the table of ``harmonic_numbers.md``.

uv run docs/validation/harmonic_numbers.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markdown_table import markdown_table
from slotwise_sim import Continuous, Cost, PerToken, Policy, Static, Step, Workload, simulate
from slotwise_sim.lengths import gain_bound, histogram

REQUESTS = 1_000_000
MEAN_TOKENS = 2000.0
SLOTS = (4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Row:
    """The same gain four times over: by mathematics, by a formula, by two costs."""

    slots: int
    harmonic: float
    order_statistics: float
    per_token: float
    step: float


def measure() -> list[Row]:
    """Returns a row for each number of slots."""
    rng = np.random.default_rng(7)
    tokens = np.maximum(1, np.rint(rng.exponential(MEAN_TOKENS, REQUESTS))).astype(np.int64)
    backlog = Workload(np.zeros(REQUESTS), tokens, np.zeros(REQUESTS, dtype=np.int64))

    def gain(cost: Cost, slots: int) -> float:
        def makespan_s(policy: Policy) -> float:
            return float(simulate(backlog, policy, cost, slots=slots).end_s.max())

        return makespan_s(Static()) / makespan_s(Continuous())

    return [
        Row(
            slots,
            sum(1 / k for k in range(1, slots + 1)),
            gain_bound(*histogram(tokens), slots),
            gain(PerToken(1.0), slots),
            gain(Step(base_ms=1.0), slots),
        )
        for slots in SLOTS
    ]


def tables(measured: list[Row]) -> list[str]:
    """Returns the table of the page."""
    return [
        markdown_table(
            ["slots", "harmonic number", "from the lengths", "simulated, per token", "step"],
            (
                [
                    row.slots,
                    *(
                        f"{gain:.3f}"
                        for gain in (
                            row.harmonic,
                            row.order_statistics,
                            row.per_token,
                            row.step,
                        )
                    ),
                ]
                for row in measured
            ),
        )
    ]


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
