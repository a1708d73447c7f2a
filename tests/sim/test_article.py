"""The tables the article printed, at the precision it printed them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from slotwise_sim import Continuous, PerToken, Policy, Static, Workload, simulate
from slotwise_sim.article import (
    MS_PER_TOKEN,
    RATE_PER_S,
    SLOTS,
    article_workload,
    control_workload,
)
from slotwise_sim.metrics import Figures, figures


def run(workload: Workload, policy: Policy) -> Figures:
    return figures(simulate(workload, policy, PerToken(MS_PER_TOKEN), slots=SLOTS))


@pytest.mark.parametrize(
    ("policy", "mean", "p95", "longest", "makespan", "rate", "busy", "idle"),
    [
        (Static(), "151.36", "260.13", "272.69", "326.4", "1.84", "941.1", "64.0"),
        (Continuous(), "34.62", "60.26", "66.79", "120.3", "4.99", "941.1", "2.2"),
    ],
)
def test_first_table(
    policy: Policy,
    mean: str,
    p95: str,
    longest: str,
    makespan: str,
    rate: str,
    busy: str,
    idle: str,
) -> None:
    found = run(article_workload(), policy)
    assert f"{found['latency_s']['mean']:.2f}" == mean
    assert f"{found['latency_s']['p95']:.2f}" == p95
    assert f"{found['latency_s']['max']:.2f}" == longest
    assert f"{found['makespan_s']:.1f}" == makespan
    assert f"{found['requests_per_s']:.2f}" == rate
    assert f"{found['busy_slot_s']:.1f}" == busy
    assert f"{100 * found['idle_share']:.1f}" == idle


@pytest.mark.parametrize(("policy", "mean"), [(Static(), "19.67"), (Continuous(), "19.38")])
def test_equal_lengths_table(policy: Policy, mean: str) -> None:
    found = run(control_workload(), policy)
    assert f"{found['latency_s']['mean']:.2f}" == mean
    assert f"{found['makespan_s']:.1f}" == "91.0"


@pytest.mark.parametrize(
    ("rate_per_s", "static", "continuous"), [(1.5, "9.07", "1.57"), (4.0, "99.50", "2.11")]
)
def test_the_ratio_of_waits_depends_on_the_load(
    rate_per_s: float, static: str, continuous: str
) -> None:
    article = article_workload()
    thinned = dataclasses.replace(article, arrival_s=article.arrival_s * (RATE_PER_S / rate_per_s))
    assert f"{run(thinned, Static())['latency_s']['mean']:.2f}" == static
    assert f"{run(thinned, Continuous())['latency_s']['mean']:.2f}" == continuous


def test_replications_of_the_article_spread_as_twenty_thousand_did() -> None:
    """300 other seeds: medians and 95 % ranges near those of 20,000 replications."""
    seeds = np.random.default_rng(7).integers(1, 2**32, size=300).tolist()
    found = []
    for seed in seeds:
        workload = article_workload(seed)
        static, continuous = run(workload, Static()), run(workload, Continuous())
        found.append(
            (
                100 * static["idle_share"],
                100 * continuous["idle_share"],
                static["latency_s"]["mean"] / continuous["latency_s"]["mean"],
                static["makespan_s"] / continuous["makespan_s"],
            )
        )
    median, low, high = np.quantile(found, [0.5, 0.025, 0.975], axis=0)
    # Wide enough for 300 draws: about four standard errors of a median, of an extreme quantile.
    assert median == pytest.approx([65.55, 2.82, 4.227, 2.821], abs=0.35)
    assert median[2:] == pytest.approx([4.227, 2.821], abs=0.07)
    assert low == pytest.approx([63.20, 0.88, 3.805, 2.635], abs=0.6)
    assert high == pytest.approx([67.61, 4.56, 4.708, 3.006], abs=0.6)


@pytest.mark.parametrize("seed", [0, -1, 2**32])
def test_seeds_the_generator_cannot_start_from_are_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        article_workload(seed)
