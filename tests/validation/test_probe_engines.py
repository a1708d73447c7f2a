"""The page on real engines prints what was measured, and the prediction holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import probe_engines
from probe_engines import MAIN, Comparison, gain

PAGE = Path(probe_engines.__file__).with_suffix(".md")


@cache
def measured() -> Comparison:
    return probe_engines.measure()


def test_the_page_shows_the_tables_that_its_script_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "uv run docs/validation/probe_engines.py" in page
    for table in probe_engines.tables(measured()):
        assert table in page


def test_every_request_got_the_tokens_that_both_servers_were_asked_for() -> None:
    rows = probe_engines.read()
    for lengths in probe_engines.LENGTHS:
        for run in range(3):
            sent = rows.filter(sent_for=lengths, run=run)
            one, other = (
                sorted(sent.filter(server=server)["output_tokens"])
                for server in probe_engines.POLICIES
            )
            assert one == other
            assert len(one) == 64


@pytest.mark.parametrize("lengths", ["mixed", "equal"])
def test_the_gain_is_predicted_within_a_tenth(lengths: str) -> None:
    seen = gain(measured(), lengths)
    assert gain(measured(), lengths, MAIN) == pytest.approx(seen, rel=0.1)


def test_makespans_are_predicted_within_a_tenth() -> None:
    for run in measured().runs:
        simulated = run.simulated[MAIN]
        assert simulated.continuous == pytest.approx(run.measured.continuous, rel=0.1)
        assert simulated.static == pytest.approx(run.measured.static, rel=0.1)


def test_counting_steps_does_not_predict_it() -> None:
    for run in measured().runs:
        if run.lengths == "mixed":
            assert run.tokens_alone.gain > 1.5 * run.measured.gain
