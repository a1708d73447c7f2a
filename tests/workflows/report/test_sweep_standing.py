"""Where the page says that the traffic stands is what a replay of it shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slotwise_sim import Continuous, Dynamic, PerToken, Policy, Static, Workload
from slotwise_workflows.report import sweep_reading as found
from slotwise_workflows.sweep.evaluate import run_points
from slotwise_workflows.sweep.points import Axes, points
from slotwise_workflows.sweep.record import SweepFigures
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.table import figures_of

SLOTS = 4
LENGTHS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "equal": lambda rng, n: rng.integers(150, 151, n),
    "148-152": lambda rng, n: rng.integers(148, 153, n),
    "140-160": lambda rng, n: rng.integers(140, 161, n),
    "100-200": lambda rng, n: rng.integers(100, 201, n),  # a gain of about 1.2
    "lognormal": lambda rng, n: np.ceil(rng.lognormal(4.5, 1.0, n)).astype(np.int64),
}
BASELINES: dict[str, Policy] = {"static": Static(), "dynamic": Dynamic(0.0)}
NEAR = 0.02
"""How far from the fall that is asked for the search may be off."""


def swept(lengths: str, baseline: str, used: float, *, seed: int, count: int) -> SweepFigures:
    """A small sweep at the traffic's own load, with its limits."""
    rng = np.random.default_rng(seed)
    tokens = LENGTHS[lengths](rng, 400)
    rate = used * SLOTS / (0.008 * tokens.mean())
    arrival_s = np.cumsum(rng.exponential(1 / rate, len(tokens)))
    workload = Workload(arrival_s, tokens, np.zeros(len(tokens), np.int64))
    policies = {baseline: BASELINES[baseline], "continuous": Continuous()}
    scenario = Scenario(workload, policies, {"": PerToken(8.0)}, run=20)
    grid = points(Axes([SLOTS], loads=[1.0], searches=True), count, seed=seed)
    return figures_of(scenario, run_points(scenario, grid), slots=SLOTS)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("lengths", LENGTHS)
@settings(max_examples=12, deadline=None)
@example(used=2.0, seed=0, count=1)  # 100 to 200 tokens: the wait falls far beyond saturation
@given(
    # Shares of the slots that the work itself takes: from an idle server to one far overloaded.
    used=st.floats(-5.5, 3).map(lambda power: 2.0**power),
    seed=st.integers(0, 2**32),
    count=st.sampled_from([1, 3]),
)
def test_it_is_worth_it_where_the_page_says_so_and_nowhere_else(
    lengths: str, baseline: str, used: float, seed: int, count: int
) -> None:
    sweep = swept(lengths, baseline, used, seed=seed, count=count)
    (server,) = found.servers(sweep)
    before, after = sweep.rows
    assert (before.policy, after.policy, after.load) == (baseline, "continuous", 1.0)
    assert after.gain is not None
    fall = 1 - after.latency_mean_s.estimate / before.latency_mean_s.estimate
    rescued = before.overloaded and after.gain.estimate >= sweep.thresholds["gain_adopt"]
    code = found.standing(sweep, server, "continuous")
    adopt = sweep.thresholds["waiting_adopt"]
    if code in {"any", "inside", "inside_waiting"}:
        assert rescued or fall >= adopt - NEAR
    if code in {"outside", "outside_waiting", "none"}:
        assert not rescued
        assert fall < adopt + NEAR


@pytest.mark.parametrize(
    ("baseline", "used", "expected"),
    [
        ("static", 0.5, "inside_waiting"),
        ("static", 2.5, "outside_waiting"),
        ("dynamic", 0.02, "outside_waiting"),
        ("dynamic", 0.5, "inside_waiting"),
        ("dynamic", 2.5, "outside_waiting"),
    ],
)
def test_equal_lengths_wait_less_in_a_band_of_loads_alone(
    baseline: str, used: float, expected: str
) -> None:
    sweep = swept("equal", baseline, used, seed=5, count=3)
    (server,) = found.servers(sweep)
    assert found.standing(sweep, server, "continuous") == expected
