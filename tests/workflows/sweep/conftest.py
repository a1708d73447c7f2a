from __future__ import annotations

import numpy as np
import pytest

from slotwise_sim import Continuous, PerToken, Static, Workload
from slotwise_workflows.sweep.evaluate import Scenario


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
def uneven_scenario(uneven_workload: Workload) -> Scenario:
    return Scenario(uneven_workload, PerToken(8.0), replicas=1, run=3)


@pytest.fixture
def both_policies() -> dict[str, Static | Continuous]:
    return {"static": Static(), "continuous": Continuous()}
