"""What a user can meet is in the docs: verdicts, reasons, facts, thresholds, keys of the result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from slotwise_workflows import result
from slotwise_workflows.facts import Facts
from slotwise_workflows.recommend import codes
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.record import Record
from slotwise_workflows.report import load_words
from slotwise_workflows.traffic.model import FLAGS

ROOT = Path(__file__).parents[2]
VERDICT = (ROOT / "docs/background/verdict.md").read_text(encoding="utf-8")
RESULT = (ROOT / "docs/reference/result.md").read_text(encoding="utf-8")
MODELS = [
    model
    for model in vars(result).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model not in {BaseModel, Record}
]


@pytest.mark.parametrize("verdict", get_args(result.Verdict))
def test_every_verdict_is_documented(verdict: str) -> None:
    assert f"`{verdict}`" in VERDICT
    assert f"`{verdict}`" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("reason", codes.REASONS)
def test_every_reason_is_documented(reason: str) -> None:
    assert f"`{reason}`" in VERDICT


@pytest.mark.parametrize(("key", "field"), Thresholds.model_fields.items())
def test_every_threshold_is_documented_with_its_default(key: str, field: object) -> None:
    row = re.search(rf"^\| `{key}` \| ([\d.]+) \|", VERDICT, re.MULTILINE)
    assert row is not None
    assert float(row[1]) == getattr(field, "default")  # noqa: B009 - any pydantic field has one


# What other facts and limits are made of.
_NOT_FACTS = {"in_flight", "observed", "probed_in_vain", "slots_probed"}


@pytest.mark.parametrize("fact", [f for f in Facts.__slots__ if f not in _NOT_FACTS])
def test_every_fact_is_documented(fact: str) -> None:
    assert f"| `{fact}` |" in VERDICT
    assert fact in codes.FACTS


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_is_documented_and_has_a_sentence(flag: str) -> None:
    assert f"`{flag}" in (ROOT / "docs/reference/log-formats.md").read_text(encoding="utf-8")
    for language in ("ja", "en"):
        assert load_words(language)(f"flag.{flag}")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_of_the_result_is_documented(model: type[BaseModel]) -> None:
    section = RESULT.split(f"\n## {model.__name__}\n")[1].split("\n## ")[0]
    inherited = result.Diagnosis.model_fields if model is result.Result else {}
    for name, field in model.model_fields.items():
        if name not in inherited:
            assert f"| `{field.alias or name}` |" in section


def test_every_link_leads_somewhere() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if not target.startswith(("http:", "https:", "mailto:"))
        and not (page.parent / target).exists()
    ]
    assert broken == []
