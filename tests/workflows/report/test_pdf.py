"""The PDF says what the other skins say, in fonts of its own, and can be read by all."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
import typst
from pypdf import PdfReader

from slotwise_workflows.errors import MissingExtraError
from slotwise_workflows.report import Branding, load_words, pdf
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Document
from slotwise_workflows.report.pdf import as_pdf
from slotwise_workflows.report.render import as_markdown
from slotwise_workflows.result import Result

CREATED = "2026-12-01T09:00:00Z"
A4 = (595, 842)  # points
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
BRAND = Branding("Heron & <Söhne>", "診断 太郎", "2026-12-01", "SW-14", confidential="社外秘")


def read(made: bytes) -> PdfReader:
    return PdfReader(io.BytesIO(made), strict=True)


def text_of(reader: PdfReader) -> str:
    """All that is printed, breaks that were put into long words taken out."""
    return "\n".join(page.extract_text() for page in reader.pages).replace("\u200b", "")


def squeezed(text: str) -> str:
    return "".join(text.split()).replace("\u200b", "")


@pytest.fixture(scope="module")
def adopt(make_result: Callable[..., Result]) -> Document:
    return compose(make_result("adopt"), load_words("ja"), BRAND)


def test_it_holds_the_numbers_of_the_document(any_document: Document) -> None:
    text = text_of(read(as_pdf(any_document, CREATED)))
    said = set(NUMBER.findall(text)) | set(NUMBER.findall(squeezed(text)))
    told = set(NUMBER.findall(as_markdown(any_document).replace("\\", "")))
    assert told - said == set()


def test_its_pages_are_a4_with_title_client_number_and_the_line_on_who_may_read_it(
    adopt: Document,
) -> None:
    reader = read(as_pdf(adopt, CREATED))
    count = len(reader.pages)
    assert count > 5
    for number, page in enumerate(reader.pages, start=1):
        assert (round(page.mediabox.width), round(page.mediabox.height)) == A4
        text = squeezed(page.extract_text())
        assert f"{number}/{count}" in text
        assert "社外秘" in text
        assert squeezed(adopt.title) in text
        assert "Heron&<Söhne>" in text


def test_every_section_is_a_bookmark_and_stands_in_the_contents(adopt: Document) -> None:
    reader = read(as_pdf(adopt, CREATED))
    titles = [squeezed(str(own.title)) for own in reader.outline if not isinstance(own, list)]
    for section in (*adopt.first_page, *adopt.sections):
        assert any(squeezed(section.title) in title for title in titles), section.title
    contents = squeezed(reader.pages[1].extract_text())
    assert all(squeezed(section.title) in contents for section in adopt.sections)


def test_bold_japanese_is_a_bold_font(adopt: Document) -> None:
    made = as_pdf(adopt, CREATED)
    pages: list[Any] = list(read(made).pages)
    fonts = {
        str(font.get_object()["/BaseFont"]).split("+")[1]
        for page in pages
        for font in page["/Resources"]["/Font"].values()
    }
    assert {"NotoSansCJKjp-Bold-Identity-H", "NotoSansCJKjp-Regular-Identity-H"} <= fonts


def test_it_says_to_screen_readers_what_it_is(adopt: Document) -> None:
    made = as_pdf(adopt, CREATED)
    reader = read(made)
    assert b"pdfuaid" in made
    root: Any = reader.root_object
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "ja"
    assert reader.metadata is not None
    assert reader.metadata.title == adopt.title
    assert reader.metadata.author == BRAND.prepared_by


def test_the_same_document_gives_the_same_bytes(adopt: Document) -> None:
    assert as_pdf(adopt, CREATED) == as_pdf(adopt, CREATED)
    dated = read(as_pdf(adopt, CREATED)).metadata
    assert dated is not None
    assert str(dated.creation_date_raw) == "D:20261201090000Z"
    undated = read(as_pdf(adopt, "no time")).metadata
    assert undated is not None
    assert str(undated.creation_date_raw) == "D:19700101000000Z"


@pytest.mark.parametrize(
    "text", ['#panic("x")', "*b* _i_ `c` $x$ @ref <label> = h", "\\u{41} // no /* no */", "[[]]#"]
)
def test_no_text_is_read_as_markup(adopt: Document, text: str) -> None:
    marked = replace(adopt, title=text, cover=replace(adopt.cover, sentence=text, badge=text))
    assert squeezed(text) in squeezed(text_of(read(as_pdf(marked, CREATED))))


def test_a_character_that_no_font_has_costs_the_claim_of_access_alone(adopt: Document) -> None:
    made = as_pdf(replace(adopt, title="\U0001f40e ก"), CREATED)
    assert b"pdfuaid" not in made
    assert len(read(made).pages) > 5
    with pytest.raises(typst.TypstError, match="missing document title"):
        as_pdf(replace(adopt, title=""), CREATED)


def test_without_what_sets_it_one_line_says_what_to_install(
    adopt: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "find_spec", lambda name: find_spec(name) if name != "typst" else None)
    with pytest.raises(MissingExtraError, match="which are not installed") as caught:
        as_pdf(adopt, CREATED)
    assert "slotwise[pdf]" in caught.value.hint
