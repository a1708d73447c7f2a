"""Reports as files, and a Chromium to open them in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from slotwise_workflows.report import write_report
from slotwise_workflows.report.branding import branding_of
from slotwise_workflows.report.compare import compare_runs
from slotwise_workflows.report.compare_page import write_comparison
from slotwise_workflows.report.words import LANGUAGES
from slotwise_workflows.result import Result

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CASES = ("adopt", "no_gain", "already", "not_yours", "tiny", "several_models", "hostile")
BRAND = {
    "client": "Heron AG",
    "prepared_by": "Auk & Co.",
    "date": "2026-12-01",
    "document_number": "SW-2026-014",
    "confidential": "Confidential",
    "accent": "#7a1f5c",
    "logo": "logo.svg",
}
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30">'
    '<circle cx="15" cy="15" r="14"/><rect x="40" y="8" width="50" height="14"/></svg>'
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of the system; Playwright's own is not downloaded.

    Of one module: while it is open an event loop runs, and other tests want to run theirs.
    """
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def written(
    make_result: Callable[..., Result], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Pages by name: reports and summaries of some kinds, and a comparison, in each language."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "logo.svg").write_text(LOGO)
    brand = branding_of(BRAND, folder)
    pages = {}
    for language in LANGUAGES:
        for case in CASES:
            place = folder / f"{case}-{language}"
            write_report(make_result(case), place, language=language, branding=brand)
            pages[f"{case}-{language}"] = place / "report.html"
            pages[f"summary-{case}-{language}"] = place / "summary.html"
        moved = compare_runs(make_result("adopt"), make_result("no_gain"))
        place = folder / f"comparison-{language}"
        write_comparison(moved, place, language=language, formats=("html",), branding=brand)
        pages[f"comparison-{language}"] = place / "comparison.html"
    return pages


REPORTS = [f"{case}-{language}" for language in LANGUAGES for case in CASES]
COMPARISONS = [f"comparison-{language}" for language in LANGUAGES]
SUMMARIES = [f"summary-{name}" for name in REPORTS]


@pytest.fixture(params=[*REPORTS, *COMPARISONS, *SUMMARIES])
def any_page(request: pytest.FixtureRequest, written: dict[str, Path]) -> Path:
    return written[request.param]


@pytest.fixture(params=[*REPORTS, *COMPARISONS])
def long_page(request: pytest.FixtureRequest, written: dict[str, Path]) -> Path:
    """One that is read on a telephone and printed on A4; a summary is a slide."""
    return written[request.param]


@pytest.fixture(params=SUMMARIES)
def slide(request: pytest.FixtureRequest, written: dict[str, Path]) -> Path:
    return written[request.param]
