"""Page one names one idle share, and says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slotwise_workflows.report import load_words
from slotwise_workflows.report.document import KeyNumber, KeyNumbers
from slotwise_workflows.report.sections.first_page import numbers
from slotwise_workflows.result import Result


def idle(result: Result) -> KeyNumber:
    block = numbers(result, load_words("en")).blocks[0]
    assert isinstance(block, KeyNumbers)
    return block.items[0]


def test_under_full_load_where_today_leaves_slots_empty_anyway(
    make_result: Callable[..., Result],
) -> None:
    own = idle(make_result("adopt"))
    assert (own.name, own.now, own.after) == ("Slots idle under full load", "52%", "0%")
    assert own.interval == "interval 49–54%"


@pytest.mark.parametrize(
    ("intervals", "told"),
    [
        (
            {
                "idle_share.dynamic": {"estimate": 0.52, "low": 0.492, "high": 0.553},
                "idle_share.continuous": {"estimate": 0.31, "low": 0.284, "high": 0.331},
            },
            "intervals 49–55% and 28–33%",
        ),
        ({}, "one replay, no interval"),
    ],
)
def test_of_the_replay_where_it_is_overloaded(
    make_result: Callable[..., Result], intervals: dict[str, Any], told: str
) -> None:
    own = idle(make_result("overloaded", intervals=intervals))
    assert (own.name, own.now, own.after) == ("Slots idle", "52%", "31%")
    assert own.interval == told


def test_of_the_replay_where_the_sample_fills_no_batch(make_result: Callable[..., Result]) -> None:
    assert idle(make_result("adopt", idle_at_full={})).name == "Slots idle"
    nothing = idle(make_result("adopt", idle_at_full={}, idle_share={}))
    assert (nothing.now, nothing.interval, nothing.label) == ("—", "not simulated", "")
