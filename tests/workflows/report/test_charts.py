"""The gain chart is not flattened by one wide interval; its band ends where the picture does."""

from __future__ import annotations

import math

import pytest

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.charts.gain import gain_by_slots

LABELS = {key: key for key in ("axis", "y", "bound", "order", "here", "even")}


def test_a_wide_interval_does_not_set_the_axis() -> None:
    bound = {
        2: Estimate(estimate=1.5, low=1.4, high=1.6),
        8: Estimate(estimate=3.0, low=2.0, high=256.0),
    }
    spec = gain_by_slots(bound, {8: 2.9}, 8, LABELS)
    band = spec["layer"][0]
    bottom, top = band["encoding"]["y"]["scale"]["domain"]
    assert bottom == 1.0
    assert 1.3 * 3.0 <= top < 1.3 * 3.0 + 1
    rows = band["data"]["values"]
    assert [row["slots"] for row in rows] == sorted(row["slots"] for row in rows)
    assert max(row["high"] for row in rows) == pytest.approx(top)
    # The upper edge leaves the picture where a straight line to 256 does, on a log axis of slots.
    leaves = rows[1]
    share = (top - 1.6) / (256.0 - 1.6)
    assert math.log2(leaves["slots"]) == pytest.approx(1 + 2 * share)
    assert leaves["high"] == pytest.approx(top)
    assert leaves["low"] == pytest.approx(1.4 + 0.6 * share)


def test_a_loss_is_shown_below_one() -> None:
    bound = {s: Estimate(estimate=1.1, low=1.0, high=1.2) for s in (2, 4)}
    spec = gain_by_slots(bound, {4: 0.83}, 4, LABELS)
    bottom, _ = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert 0 < bottom <= 0.83
