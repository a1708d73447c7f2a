from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slotwise_workflows.probe.batching.conclude import Conclusion
from slotwise_workflows.probe.batching.look import Found
from slotwise_workflows.probe.model import Plan
from virtual_probe import PLAN, Endpoint, probe_in_virtual_time

Probe = Callable[..., tuple[Found, Conclusion]]


@pytest.fixture(scope="session")
def probe_of() -> Probe:
    """Runs a whole probe in virtual time: the engines' policy, and what lies before them."""

    def run(
        policy: dict[str, Any], *, plan: Plan | None = None, **endpoint: Any
    ) -> tuple[Found, Conclusion]:
        return probe_in_virtual_time(
            Endpoint(policy=policy, **endpoint), PLAN if plan is None else plan
        )

    return run
