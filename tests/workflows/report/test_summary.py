"""The one-page summary: chosen from the report, and never more than one page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from slotwise_workflows.report import Branding, load_words
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Bullets, Document, Figure, KeyNumbers, Paragraph
from slotwise_workflows.report.render import as_slide
from slotwise_workflows.report.summary import summarised
from slotwise_workflows.report.words import Language
from slotwise_workflows.result import Reason, Result, Verdict

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
LONG = "Example Holdings International 株式会社 情報システム本部 基盤技術部 推論基盤グループ"


def texts(value: Any) -> Iterator[str]:
    """Every string in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for own in value:
            yield from texts(own)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts(getattr(value, field.name))


def test_it_says_nothing_that_the_report_does_not(any_document: Document) -> None:
    said = set(texts(any_document))
    assert set(texts(summarised(any_document))) - {"picture"} <= said


def test_it_holds_what_one_page_can(any_document: Document) -> None:
    slide = summarised(any_document)
    assert slide.sections == ()
    assert len(slide.cover.because) <= 2
    for section in slide.first_page:
        [block] = section.blocks
        assert isinstance(block, KeyNumbers | Bullets | Figure | Paragraph)
        assert not isinstance(block, KeyNumbers | Bullets) or len(block.items) <= 3


@pytest.mark.parametrize("case", ["adopt", "no_gain", "not_yours", "tiny", "step_cost"])
def test_it_has_verdict_numbers_picture_flips_and_action(
    make_result: Callable[..., Result], case: str, language: Language
) -> None:
    document = compose(make_result(case), load_words(language), Branding("客先", "B"))
    slide = summarised(document)
    told, flips, picture = slide.first_page
    assert slide.cover.action
    assert flips.id == "flips"
    assert isinstance(picture.blocks[0], Figure)
    if case == "not_yours":  # a server that is not theirs is shown neither in numbers nor drawn
        assert told.id == "elsewhere"
        assert picture.blocks[0].label == "measured"
    else:
        assert isinstance(told.blocks[0], KeyNumbers)
    html = as_slide(slide)
    for shown in (slide.cover.sentence, slide.cover.action, "客先", slide.words["footer"]):
        assert shown.replace("'", "&#39;") in html
    assert "<script" not in html
    assert not re.search(r'(?:src|href)="(?!#)', html)


def crowded(make_result: Callable[..., Result], verdict: str) -> Result:
    """A log of several models with the longest sentences there are."""
    numbers = {"gain": 12.34, "low": 10.12, "high": 14.56, "p95": 123.4, "objective": 20.0}
    reasons = [
        Reason(code="gain_objective_ttft", numbers=dict(numbers)),
        Reason(
            code="objective_out_of_reach",
            numbers={"replicas": 16, "p95": 123.4, "objective": 20.0, "servers": 1234},
        ),
    ]
    result = make_result("several_models")
    leading = result.models[0].model_copy(
        update={"model": "organisation/a-model-with-a-rather-long-name-70b", "verdict": verdict}
    )
    flips = [
        Reason(code="flip_load", numbers={"rate": 12.3, "times": 12.3}),
        Reason(code="flip_cv", numbers={"cv": 0.11}),
    ]
    return result.model_copy(
        update={
            "verdict": verdict,
            "reasons": reasons,
            "models": [leading.model_copy(update={"flip": flips}), *result.models[1:]],
            "actions": [Reason(code="pilot", numbers={"replicas": 1, "slots": 8})],
        }
    )


@pytest.mark.skipif(BROWSER is None, reason="no browser to print with")
@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_it_prints_on_one_page(
    make_result: Callable[..., Result], language: Language, verdict: str, tmp_path: Path
) -> None:
    result = crowded(make_result, verdict)
    document = compose(result, load_words(language), Branding(LONG, LONG))
    page = tmp_path / "summary.html"
    page.write_text(as_slide(summarised(document)), encoding="utf-8")
    assert pages(page) == 1


@pytest.mark.skipif(BROWSER is None, reason="no browser to print with")
def test_what_does_not_fit_would_be_seen(
    make_result: Callable[..., Result], tmp_path: Path
) -> None:
    """The count of pages tells: nothing that runs over is cut off."""
    document = compose(make_result("adopt"), load_words("en"), Branding("A " * 2000))
    slide = summarised(document)
    html = as_slide(slide).replace(slide.cover.sentence, slide.cover.sentence * 30)
    (tmp_path / "summary.html").write_text(html, encoding="utf-8")
    assert pages(tmp_path / "summary.html") > 1


def pages(page: Path) -> int:
    """How many pages a browser prints."""
    printed = page.with_suffix(".pdf")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    quiet = ["--disable-background-networking", f"--user-data-dir={page.parent / 'profile'}"]
    subprocess.run(
        [str(BROWSER), *options, *quiet, f"--print-to-pdf={printed}", page.as_uri()],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return len(re.findall(rb"/Type /Page\b(?!s)", printed.read_bytes()))
