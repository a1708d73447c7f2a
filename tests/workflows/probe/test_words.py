"""Every reason has its sentence and its row; a result is told in sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import slotwise_workflows.probe as package
from slotwise_workflows.probe.words import REASONS, sentence
from slotwise_workflows.result import Reason

CODE = re.compile(r'Reason\(\s*code="(\w+)"')
LAYOUT = re.compile(r'": \("\w+", "(\w+)"\)')
NAMED = re.compile(r'batching, code = "dynamic", "(\w+)"')
ROOT = Path(__file__).parents[3]


def _codes() -> set[str]:
    folder = Path(package.__file__).parent
    found: set[str] = set()
    for file in (folder / "run.py", *(folder / "batching").glob("*.py")):
        text = file.read_text("utf-8")
        for pattern in (CODE, LAYOUT, NAMED):
            found |= set(pattern.findall(text))
    return found


def test_every_reason_has_its_sentence_and_its_row() -> None:
    assert _codes() == set(REASONS)
    page = (ROOT / "docs/reference/probe.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE))
    assert set(REASONS) <= rows


@pytest.mark.parametrize("code", sorted(REASONS))
def test_a_sentence_is_one_line_without_a_full_stop(code: str) -> None:
    numbers: dict[str, float | int | str | None] = {
        "shorts": 6, "joined": 2, "late": 1, "waited": 3, "together": 2, "overlap": 1.4,
        "requests": 8, "fault": "cut", "ttft_ms": 20.0, "per_token_ms": 50.0,
        "wait_ms": 900.0, "left": 0.1, "residual": 0.02,
    }  # fmt: skip
    text = sentence(Reason(code=code, numbers=numbers))
    assert "\n" not in text
    assert not text.endswith(".")
    assert "{" not in text
