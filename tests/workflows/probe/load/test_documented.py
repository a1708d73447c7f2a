"""Every key and code of a load is documented."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from slotwise_workflows.probe import findings
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.load.cost_plan import CostPlan, Rung
from slotwise_workflows.record import Record

PAGE = (Path(__file__).parents[4] / "docs/reference/load.md").read_text(encoding="utf-8")
RECORDS = [
    kind
    for kind in (*vars(findings).values(), Budget, CostPlan, Rung)
    if isinstance(kind, type)
    and issubclass(kind, Record)
    and kind.__module__.startswith("slotwise_workflows.probe.")
]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_key_is_documented(kind: type[Record]) -> None:
    assert [name for name in kind.model_fields if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("code", get_args(findings.Unknown))
def test_every_reason_for_no_cost_is_documented(code: str) -> None:
    assert f"| `{code}` |" in PAGE


def test_the_records_are_found() -> None:
    assert {"ClientReport", "CostFinding", "ReplayFigures", "CostPlan"} <= {
        kind.__name__ for kind in RECORDS
    }


def test_the_budget_is_told_as_it_is() -> None:
    budget = Budget()
    told = f"`requests` {budget.requests}, `output_tokens` {budget.output_tokens:,}"
    assert f"{told}, `seconds` {budget.seconds:g} if left out" in PAGE
