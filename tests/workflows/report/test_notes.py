"""The consultant's own words: read as a subset of Markdown, shown as text, in every skin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.report import Branding, OwnAction, load_words
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Bullets, Heading, Item, Paragraph, Table
from slotwise_workflows.report.notes import read_notes
from slotwise_workflows.report.render import as_html, as_markdown
from slotwise_workflows.report.words import Language
from slotwise_workflows.result import Result

NOTES = """\
## What we saw

The **evening** peak is `batch` work, see [the ticket](https://example.com/7).
It can move.

- first
- *second*

1. ask
2. move
"""


def test_paragraphs_headings_and_lists_stay_what_they_are() -> None:
    assert read_notes(NOTES) == (
        Heading("What we saw"),
        Paragraph(
            "The evening peak is batch work, see the ticket (https://example.com/7). It can move."
        ),
        Bullets((Item("first"), Item("second"))),
        Bullets((Item("ask"), Item("move")), ordered=True),
    )


def test_a_line_that_ends_within_japanese_ends_without_a_space() -> None:
    assert read_notes("夜間の負荷は\n移せます。\nvLLM\nへ移行") == (
        Paragraph("夜間の負荷は移せます。 vLLM へ移行"),
    )


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        ("a\n\n| a | b |\n| - | - |\n| 1 | 2 |\n", "a table on its line 3"),
        ("- a\n  - b\n", "a list inside a list on its line 2"),
        ("x\n\ny ![i](u)\n", "a picture on its line 3"),
        ("x **y [![i](u)](v)**\n", "a picture on its line 1"),
        ("```\na\n```\n", "a block of code on its line 1"),
        ("> q\n", "a quotation on its line 1"),
        ("a\n\n***\n", "a line across on its line 3"),
    ],
)
def test_what_a_report_does_not_show_is_refused(markdown: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^holds {said}, which a report does not show: write"):
        read_notes(markdown)


def test_html_and_what_acts_is_text() -> None:
    hostile = "<script>alert(1)</script> [x](javascript:alert(1)) \u202egnp.exe"
    [block] = read_notes(hostile)
    assert block == Paragraph(
        "<script>alert(1)</script> [x](javascript:alert(1)) \N{REPLACEMENT CHARACTER}gnp.exe"
    )


@given(st.text(max_size=200))
def test_whatever_is_written_is_read_or_refused(markdown: str) -> None:
    try:
        blocks = read_notes(markdown)
    except ValueError as fault:
        assert "which a report does not show" in str(fault)  # noqa: PT017 - either is right
        return
    for block in blocks:
        assert isinstance(block, Heading | Paragraph | Bullets)


def test_they_stand_in_a_section_of_their_own_in_every_skin(
    make_result: Callable[..., Result], language: Language
) -> None:
    words = load_words(language)
    actions = (OwnAction("Move the | batch", "佐藤", "2026-12-15"), OwnAction("<b>Ask</b>"))
    result = make_result("adopt")
    plain = compose(result, words, Branding())
    document = compose(result, words, Branding(notes=NOTES, actions=actions))
    own, *rest = document.sections
    assert own.id == "consultant"
    assert tuple(rest) == plain.sections  # nothing else moves, and no number can be changed
    assert document.first_page == plain.first_page
    [table] = [block for block in own.blocks if isinstance(block, Table)]
    assert table.rows == (("Move the | batch", "佐藤", "2026-12-15"), ("<b>Ask</b>", "—", "—"))
    html, markdown = as_html(document), as_markdown(document)
    assert "<td>佐藤</td><td>2026-12-15</td>" in html
    assert "&lt;b&gt;Ask&lt;/b&gt;" in html
    assert "Move the \\| batch | 佐藤 | 2026-12-15 |" in markdown
    assert "- second" in markdown


def test_without_any_there_is_no_section(make_result: Callable[..., Result]) -> None:
    document = compose(make_result("adopt"), load_words("en"), Branding("A", "B"))
    assert "consultant" not in {section.id for section in document.sections}
