"""The pages in a real browser: quiet, without a request, readable by all, whole on paper."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from pypdf import PdfReader

pytestmark = pytest.mark.browser

TELEPHONE, DESK = 375, 1280  # pixels
A4_WIDTH = 794  # pixels, 210 mm
ROWS = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
OPEN_ALL = "document.querySelectorAll('details').forEach(own => { own.open = true })"
TALL_ROWS = "tbody th { overflow-wrap: anywhere; min-width: 0; width: 2em; line-height: 3; }"
CUT_ROWS = "tr { break-inside: auto !important; }"
SAME = str.maketrans({"\u2012": "\u2013", "\u2ed1": "\u9577"})  # dashes, and forms of 長


@contextmanager
def opened(chromium: Browser, path: Path, width: int = DESK) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": width, "height": 800})
    try:
        page.goto(path.as_uri())
        yield page
    finally:
        page.close()


def test_it_says_nothing_and_asks_for_nothing(chromium: Browser, any_page: Path) -> None:
    page = chromium.new_page()
    heard: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(any_page.as_uri(), wait_until="networkidle")
    page.close()
    assert heard == []
    assert [url for url in asked if not url.startswith("data:image/png")] == [any_page.as_uri()]


@pytest.mark.parametrize("width", [TELEPHONE, DESK])
def test_it_does_not_scroll_sideways(chromium: Browser, long_page: Path, width: int) -> None:
    with opened(chromium, long_page, width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [TELEPHONE, DESK])
def test_it_can_be_read_by_all(chromium: Browser, long_page: Path, width: int) -> None:
    with opened(chromium, long_page, width) as page:
        page.evaluate(OPEN_ALL)
        found = Axe().run(page).response["violations"]
    assert [(own["id"], own["nodes"][0]["html"]) for own in found] == []


def test_a_slide_can_be_read_by_all_and_is_whole(chromium: Browser, slide: Path) -> None:
    with opened(chromium, slide) as page:
        assert [own["id"] for own in Axe().run(page).response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollHeight") <= 800
        printed = page.pdf(prefer_css_page_size=True, print_background=True)
    (sheet,) = PdfReader(io.BytesIO(printed)).pages
    assert (round(sheet.mediabox.width), round(sheet.mediabox.height)) == (960, 540)


def flat(text: str) -> str:
    """Without blanks, and with one character for those that share a glyph in a PDF."""
    return unicodedata.normalize("NFKC", "".join(text.split())).translate(SAME)


def sheets_of(page: Page) -> list[str]:
    """The text of each sheet, as it is printed."""
    printed = page.pdf(prefer_css_page_size=True, print_background=True)
    return [flat(own.extract_text()) for own in PdfReader(io.BytesIO(printed)).pages]


def cut_rows(page: Page) -> list[list[str]]:
    """Rows of tables that stand whole on no sheet."""
    page.evaluate(OPEN_ALL)
    sheets = sheets_of(page)
    rows: list[list[str]] = page.eval_on_selector_all("tr", ROWS)
    return [row for row in rows if not any(flat("".join(row)) in own for own in sheets)]


def test_on_paper_no_row_is_cut_and_page_one_is_one_sheet(
    chromium: Browser, long_page: Path
) -> None:
    with opened(chromium, long_page, A4_WIDTH) as page:
        assert cut_rows(page) == []
        sheets = sheets_of(page)
        for title in page.locator("section.numbered > h2").all_text_contents():
            assert any(flat(title) in own for own in sheets[1:]), title
            assert flat(title) not in sheets[0]


def test_a_cut_row_would_be_seen(chromium: Browser, written: dict[str, Path]) -> None:
    with opened(chromium, written["adopt-en"], A4_WIDTH) as page:
        page.add_style_tag(content=TALL_ROWS)
        assert cut_rows(page) == []
        page.add_style_tag(content=CUT_ROWS)
        assert cut_rows(page) != []
