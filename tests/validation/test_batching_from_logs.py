"""How often logs tell how their servers batch, as the page has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from batching_from_logs import measure, tables

PAGE = Path(__file__).parents[2] / "docs" / "validation" / "batching_from_logs.md"


@pytest.mark.big
def test_the_page_shows_how_often_logs_tell() -> None:
    page, tally = PAGE.read_text(encoding="utf-8"), measure()
    for table in tables(tally):
        assert table in page
    assert sum(counted["wrong"] for counted in tally.values()) == 0
