"""The article's 600 requests on eight slots, and other draws of them: the tables of ``article.md``.

uv run docs/validation/article.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markdown_table import markdown_table
from slotwise_sim import Continuous, PerToken, Policy, Static, Workload, simulate
from slotwise_sim.article import (
    MS_PER_TOKEN,
    RATE_PER_S,
    SLOTS,
    article_workload,
    control_workload,
)
from slotwise_sim.metrics import Figures, figures
from slotwise_sim.workload import at_load

SEEDS = 2000
RATES_PER_S = (1.5, 4, RATE_PER_S)


@dataclass(frozen=True)
class Served:
    """The same requests under both policies."""

    static: Figures
    continuous: Figures


@dataclass(frozen=True)
class Measured:
    """The article's requests, the control's, the article's at other rates, and other draws."""

    article: Served
    control: Served
    at_rates: dict[float, Served]
    draws: list[Served]


def measure() -> Measured:
    """Returns what both policies make of the article's requests and of ``SEEDS`` other draws."""
    seeds = np.random.default_rng(1).integers(1, 2**32, size=SEEDS).tolist()
    article = article_workload()
    return Measured(
        article=_serve(article),
        control=_serve(control_workload()),
        at_rates={rate: _serve(at_load(article, rate / RATE_PER_S)) for rate in RATES_PER_S},
        draws=[_serve(article_workload(seed)) for seed in seeds],
    )


def tables(measured: Measured) -> list[str]:
    """Returns the tables of the page."""
    first = markdown_table(
        ["", "mean s", "p95 s", "max s", "makespan s", "req/s", "busy s", "idle"],
        [
            _row("static", measured.article.static),
            _row("continuous", measured.article.continuous),
            _row("static, every output 150 tokens", measured.control.static),
            _row("continuous, every output 150 tokens", measured.control.continuous),
        ],
    )
    rates = markdown_table(
        ["requests a second", "static, mean s", "continuous, mean s", "ratio"],
        (
            [rate, *(f"{mean:.2f}" for mean in _means(served)), f"{_ratio(*_means(served)):.1f}"]
            for rate, served in measured.at_rates.items()
        ),
    )
    draws = measured.draws
    spread = markdown_table(
        ["", "median", "2.5 %", "97.5 %"],
        [
            _quantiles("static idle %", [100 * d.static["idle_share"] for d in draws], 2),
            _quantiles("continuous idle %", [100 * d.continuous["idle_share"] for d in draws], 2),
            _quantiles("mean latency ratio", [_ratio(*_means(d)) for d in draws], 3),
            _quantiles(
                "makespan ratio",
                [d.static["makespan_s"] / d.continuous["makespan_s"] for d in draws],
                3,
            ),
        ],
    )
    return [first, rates, spread]


def _serve(workload: Workload) -> Served:
    def under(policy: Policy) -> Figures:
        return figures(simulate(workload, policy, PerToken(MS_PER_TOKEN), slots=SLOTS))

    return Served(under(Static()), under(Continuous()))


def _row(name: str, found: Figures) -> list[str]:
    latency = found["latency_s"]
    return [
        name,
        *(f"{latency[key]:.2f}" for key in ("mean", "p95", "max")),
        f"{found['makespan_s']:.1f}",
        f"{found['requests_per_s']:.2f}",
        f"{found['busy_slot_s']:.1f}",
        f"{100 * found['idle_share']:.1f} %",
    ]


def _means(served: Served) -> tuple[float, float]:
    return served.static["latency_s"]["mean"], served.continuous["latency_s"]["mean"]


def _ratio(static: float, continuous: float) -> float:
    return static / continuous


def _quantiles(name: str, values: list[float], digits: int) -> list[str]:
    return [name, *(f"{q:.{digits}f}" for q in np.quantile(values, [0.5, 0.025, 0.975]))]


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
