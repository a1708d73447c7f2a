"""Every workload file that is shipped works."""

from pathlib import Path

import pytest

from slotwise_workflows.config import load_workload
from slotwise_workflows.simulation import simulate_file

EXAMPLES = sorted((Path(__file__).parents[3] / "workflows" / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_loads_and_is_named_like_its_file(path: Path) -> None:
    assert load_workload(path).name == path.stem


@pytest.mark.parametrize(
    "path",
    [p for p in EXAMPLES if "synthetic:" in p.read_text(encoding="utf-8")],
    ids=lambda path: path.stem,
)
def test_made_up_traffic_is_simulated(path: Path) -> None:
    result = simulate_file(load_workload(path)).result
    assert result.notes == []
    static, continuous = (result.policies[key] for key in ("static", "continuous"))
    assert continuous.makespan_s <= static.makespan_s * (1 + 1e-12)


def test_there_are_examples_and_even_lengths_gain_nothing() -> None:
    even = next(path for path in EXAMPLES if path.stem == "even-lengths")
    policies = simulate_file(load_workload(even)).result.policies
    # 600 requests of 1.2 s on 8 slots: 75 rounds, whichever way the slots are filled.
    assert policies["static"].makespan_s == pytest.approx(90.0)
    assert policies["continuous"].makespan_s == pytest.approx(90.0)
