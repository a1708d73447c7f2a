from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from slotwise_workflows.probe.batching.conclude import Conclusion
from slotwise_workflows.probe.batching.look import Found
from slotwise_workflows.probe.model import Plan

Probe = Callable[..., tuple[Found, Conclusion]]


def _virtual() -> ModuleType:
    """`virtual.py` beside this file; the tests' folders are no packages."""
    name = "slotwise_test_virtual"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("virtual.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def probe_of(probe_server_module: Any) -> Probe:
    """Runs a whole probe in virtual time: the engines' policy, and what lies before them."""
    virtual = _virtual()

    def run(
        policy: dict[str, Any], *, plan: Plan | None = None, **endpoint: Any
    ) -> tuple[Found, Conclusion]:
        return virtual.probe_in_virtual_time(  # type: ignore[no-any-return]
            probe_server_module,
            virtual.Endpoint(policy=policy, **endpoint),
            virtual.PLAN if plan is None else plan,
        )

    return run
