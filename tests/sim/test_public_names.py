"""What this package promises by name, and that importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import slotwise_sim
from slotwise_sim.compiled import compiled


def test_the_public_names_are_these() -> None:
    assert sorted(slotwise_sim.__all__) == [
        "Balancer",
        "Binned",
        "Continuous",
        "Cost",
        "Dynamic",
        "Memory",
        "NeverFitsError",
        "Outcome",
        "PerToken",
        "Piece",
        "Policy",
        "Static",
        "Step",
        "Users",
        "Workload",
        "simulate",
    ]
    for name in slotwise_sim.__all__:
        assert hasattr(slotwise_sim, name)


def test_importing_does_not_load_the_compiler() -> None:
    check = "import sys, slotwise_sim; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_loops_are_compiled_even_where_nothing_can_be_cached() -> None:
    """A source without a file, as in a read-only zip with a read-only home, has no cache."""
    names: dict[str, Callable[[int], int]] = {}
    exec(compile("def double(value): return value * 2", "<no file>", "exec"), {}, names)
    assert compiled(names["double"])(21) == 42
