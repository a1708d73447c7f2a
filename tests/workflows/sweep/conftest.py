from __future__ import annotations

import numpy as np
import pytest

from slotwise_sim import Continuous, PerToken, Static, Workload
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.points import Axes, Point, points
from slotwise_workflows.sweep.scenario import Scenario

QUICK = Estimate(replay_s=0.001, search_s=0.05, seconds=0.1, memory_bytes=1)


@pytest.fixture
def even_workload() -> Workload:
    """Eight requests of 100 tokens, one every 10 s: every resampling of it is itself."""
    return Workload(
        arrival_s=np.arange(0.0, 80.0, 10.0),
        output_tokens=np.full(8, 100),
        prompt_tokens=np.zeros(8, np.int64),
    )


@pytest.fixture
def uneven_workload() -> Workload:
    rng = np.random.default_rng(7)
    return Workload(
        arrival_s=np.cumsum(rng.exponential(0.2, 60)),
        output_tokens=rng.integers(1, 300, 60),
        prompt_tokens=np.zeros(60, np.int64),
    )


@pytest.fixture
def both_policies() -> dict[str, Static | Continuous]:
    return {"static": Static(), "continuous": Continuous()}


@pytest.fixture
def uneven_scenario(
    uneven_workload: Workload, both_policies: dict[str, Static | Continuous]
) -> Scenario:
    return Scenario(uneven_workload, dict(both_policies), {"": PerToken(8.0)}, run=3)


@pytest.fixture
def small_grid() -> tuple[Point, ...]:
    """24 replays and 6 searches."""
    axes = Axes([2, 4], loads=[0.5, 2], users=[3], offline=True, searches=True)
    return points(axes, 3, seed=11)


@pytest.fixture
def quick() -> Estimate:
    return QUICK
