"""The presets against the table that was handed over, where it is at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from slotwise_workflows.costs import Preset, all_presets

TABLE = Path(__file__).parents[3] / "shared" / "data" / "step-cost-presets.csv"
pytestmark = pytest.mark.skipif(not TABLE.exists(), reason="the handed data are not here")


@pytest.fixture
def handed() -> dict[str, dict[str, str]]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_there_are_the_same(handed: dict[str, dict[str, str]]) -> None:
    assert [preset.name for preset in all_presets()] == list(handed)


@pytest.mark.parametrize("preset", all_presets(), ids=lambda preset: preset.name)
def test_each_has_the_same_facts(preset: Preset, handed: dict[str, dict[str, str]]) -> None:
    row = handed[preset.name]
    terms = [name for name in row if name.endswith("_ms")]
    assert len(terms) == 6
    assert {name: getattr(preset.step, name) for name in terms} == {
        name: float(row[name]) for name in terms
    }
    assert preset.kv_tokens == (int(row["kv_tokens"]) if row["kv_tokens"] else None)
    assert (preset.hardware, preset.kind) == (row["hardware"], row["kind"])
