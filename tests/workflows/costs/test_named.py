"""One cost is named at a time, and it takes the place of any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slotwise_workflows.costs import find_preset
from slotwise_workflows.costs.named import named_cost
from slotwise_workflows.errors import InputError, UsageError


def test_the_cost_named_sets_both_facts() -> None:
    assert named_cost(fault=UsageError) == {}
    assert named_cost(ms_per_token=8.0, fault=UsageError) == {"ms_per_token": 8.0, "cost": None}
    assert named_cost(preset="llama-3.1-8b-a100", fault=UsageError) == {
        "ms_per_token": None,
        "cost": find_preset("llama-3.1-8b-a100").stated(),
    }


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"ms_per_token": 8.0, "preset": "x"}, "<ms_per_token> and <preset> exclude each other: "),
        ({"preset": "llama-3.1-8b-a10"}, "<preset>: 'llama-3.1-8b-a10' is no preset: "),
    ],
)
def test_a_fault_is_called_what_the_user_calls_it(told: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        named_cost(**told, called="<{}>".format, fault=UsageError)
    assert str(caught.value).startswith(said)


def test_a_calibration_is_looked_for_from_the_base(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        named_cost(calibration="c.json", base=tmp_path, fault=UsageError)
    assert str(tmp_path / "c.json") in str(caught.value)
