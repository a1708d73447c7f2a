"""docs/background/variation.md: its figures are those of the sweep, and of the mathematics."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy.integrate import quad
from scipy.stats import norm

from slotwise_workflows.config import load_workload
from slotwise_workflows.report import load_words
from slotwise_workflows.report.sections.sweep import gain_by_variation
from slotwise_workflows.report.svg import standalone
from slotwise_workflows.sweep.evaluate import run_points
from slotwise_workflows.sweep.file import plan_sweep
from slotwise_workflows.sweep.record import SweepFigures
from slotwise_workflows.sweep.table import figures_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "background" / "variation.md").read_text(encoding="utf-8")
SLOTS = (4, 8, 16, 32, 64, 128)
CVS = (0, 0.25, 0.5, 1, 1.5, 2)


def tables() -> list[list[list[str]]]:
    """The page's tables, without their heads."""
    found: list[list[list[str]]] = [[]]
    for line in PAGE.splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [table[2:] for table in found if table]


def longest_over_mean(cv: float, slots: int) -> float:
    """E[longest of so many log-normal lengths] / E[length], by quadrature."""
    sigma = math.sqrt(math.log1p(cv**2))

    def integrand(z: float) -> float:
        weight = slots * norm.pdf(z) * norm.cdf(z) ** (slots - 1)
        return float(math.exp(sigma * z - sigma**2 / 2) * weight)

    return float(quad(integrand, -12, 15, limit=200)[0])


@pytest.fixture(scope="module")
def swept() -> SweepFigures:
    plan = plan_sweep(load_workload(ROOT / "workflows" / "examples" / "variation.yaml"))
    return figures_of(plan.scenario, list(run_points(plan.scenario, plan.grid)))


@pytest.fixture(scope="module")
def gains(swept: SweepFigures) -> dict[tuple[float, int], float]:
    return {
        (row.length_cv, row.slots): row.gain.estimate
        for row in swept.rows
        if row.policy == "continuous" and row.gain is not None and row.length_cv is not None
    }


def expected(gain_of: object) -> list[list[str]]:
    assert callable(gain_of)
    return [[f"{cv:g}", *(f"{gain_of(cv, slots):.2f}" for slots in SLOTS)] for cv in CVS]


def test_the_sweep_prints_the_pages_gains(gains: dict[tuple[float, int], float]) -> None:
    assert tables()[0] == expected(lambda cv, slots: gains[cv, slots])


def test_the_formula_gives_the_pages_second_table() -> None:
    assert tables()[1] == expected(longest_over_mean)


def test_equal_lengths_gain_nothing_and_the_rest_is_within_three_percent(
    gains: dict[tuple[float, int], float],
) -> None:
    for slots in SLOTS:
        assert gains[0.0, slots] == pytest.approx(1.0, abs=1e-12)
        for cv in CVS:
            assert gains[float(cv), slots] == pytest.approx(longest_over_mean(cv, slots), rel=0.03)


def test_other_shapes_have_formulas_of_their_own() -> None:
    uniform, alike, exponential, _ = (row[2:] for row in tables()[2])
    assert uniform == [f"{2 * b / (b + 1):.2f}" for b in SLOTS]
    assert alike == [f"{longest_over_mean(math.sqrt(1 / 3), b):.2f}" for b in SLOTS]
    assert exponential == [f"{sum(1 / k for k in range(1, b + 1)):.2f}" for b in SLOTS]


def test_the_committed_picture_is_the_sweeps(swept: SweepFigures) -> None:
    figure = gain_by_variation(swept, load_words("en"))
    assert figure is not None
    committed = (ROOT / "docs" / "assets" / "variation.svg").read_text(encoding="utf-8")
    assert committed == standalone(figure.svg)
