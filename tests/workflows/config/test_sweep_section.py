"""What `sweep` and `traffic.users` say, as values; and what is wrong with them, at its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slotwise_workflows.config import load_workload, to_costs, to_users
from slotwise_workflows.errors import ConfigError

SYNTHETIC = """\
version: 1
traffic:
  synthetic: {requests: 600, arrivals: {poisson: {rate: 12}}, output_tokens: {uniform: [40, 199]}}
server: {slots: 8, cost: {ms_per_token: 8}}
"""
Write = Callable[[str], Path]


@pytest.fixture
def workload_at(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "w.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_users_of_a_closed_loop(workload_at: Write) -> None:
    text = SYNTHETIC.replace("traffic:\n", "traffic:\n  users: {count: 3, think_s: 2}\n")
    workload = load_workload(workload_at(text))
    users = to_users(workload, 4, seed=0)
    assert users is not None
    assert (users.count, users.think_s.tolist()) == (3, [2.0] * 4)
    drawn = load_workload(workload_at(text.replace("think_s: 2", "think_s: 2, think: exponential")))
    some = to_users(drawn, 20_000, seed=0)
    assert some is not None
    assert some.think_s.mean() == pytest.approx(2, rel=0.03)
    assert some.think_s.std() == pytest.approx(2, rel=0.03)
    assert to_users(load_workload(workload_at(SYNTHETIC)), 4, seed=0) is None


def test_costs_of_a_sweep_by_name(workload_at: Write) -> None:
    costs = "cost: [{ms_per_token: 8}, {preset: llama-3.1-8b-a100}, {ms_per_token: 8}]"
    workload = load_workload(workload_at(f"{SYNTHETIC}sweep: {{{costs}}}\n"))
    assert list(to_costs(workload)) == [
        "8 ms per token",
        "llama-3.1-8b-a100",
        "8 ms per token#2",
    ]
    own = to_costs(load_workload(workload_at(SYNTHETIC)))
    assert list(own) == ["8 ms per token"]


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ("length_cv: [-1]", "sweep.length_cv"),
        ("users: [0]", "sweep.users"),
        ("cost: [{preset: none}]", "sweep.cost"),
        ("balancer: [random]", "sweep.balancer"),
        ("sample: 0", "sweep.sample"),
        ("loads: [1]", "Did you mean"),
    ],
)
def test_a_wrong_axis_is_told_at_its_line(workload_at: Write, section: str, field: str) -> None:
    path = workload_at(f"{SYNTHETIC}sweep:\n  slots: [4]\n  {section}\n")
    with pytest.raises(ConfigError) as error:
        load_workload(path)
    assert field in str(error.value)
    assert f"{path}:{len(path.read_text().splitlines())}" in str(error.value)
