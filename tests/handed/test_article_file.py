"""The generator in code against the article's trace as a file, where that file is at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from slotwise_sim.article import article_workload

TRACE = Path(__file__).parents[3] / "shared" / "data" / "article-600.csv"


@pytest.mark.skipif(not TRACE.exists(), reason="the article's trace is not at hand")
def test_every_row_is_the_same() -> None:
    with TRACE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    workload = article_workload()
    assert [int(row["output_tokens"]) for row in rows] == workload.output_tokens.tolist()
    # The logarithm may differ in its last digit between platforms; nothing else can.
    arrival_s = [float(row["arrival_ms"]) / 1000 for row in rows]
    assert workload.arrival_s.tolist() == pytest.approx(arrival_s, rel=1e-12)
