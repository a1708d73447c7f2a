"""Every reason of a probe has its sentence in both languages and its row in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import slotwise_workflows.probe as package
from slotwise_workflows.report.words import LANGUAGES, Language, load_words

CODE = re.compile(r'Reason\(\s*code="(\w+)"')
LAYOUT = re.compile(r'": \("\w+", "(\w+)"\)')
NAMED = re.compile(r'batching, code = "dynamic", "(\w+)"')
ROOT = Path(__file__).parents[3]


def _codes() -> set[str]:
    folder = Path(package.__file__).parent
    found: set[str] = set()
    for file in folder.rglob("*.py"):
        text = file.read_text("utf-8")
        for pattern in (CODE, LAYOUT, NAMED):
            found |= set(pattern.findall(text))
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_has_its_sentence(language: Language) -> None:
    sentences = {key for key in load_words(language).table if key.startswith("probe_reason.")}
    assert {f"probe_reason.{code}" for code in _codes()} == sentences


def test_every_reason_has_its_row() -> None:
    page = (ROOT / "docs/reference/probe.md").read_text("utf-8")
    assert _codes() <= set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE))
