"""A calibration's intervals, as the page has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration_intervals import measure, tables

PAGE = Path(__file__).parents[2] / "docs" / "validation" / "calibration_intervals.md"


@pytest.mark.big
def test_the_page_shows_how_often_intervals_hold_the_truth() -> None:
    page, trials = PAGE.read_text(encoding="utf-8"), measure()
    for table in tables(trials):
        assert table in page
    for name, trial in trials.items():
        if name != "preempting":
            assert trial.coverage >= 0.85, name
