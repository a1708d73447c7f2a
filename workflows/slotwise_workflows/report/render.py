"""Skins: one document as HTML, Markdown or PDF, and as one page of HTML for a slide."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Branding, Document
from slotwise_workflows.report.summary import summarised
from slotwise_workflows.report.words import Language, load_words
from slotwise_workflows.result import Result

if TYPE_CHECKING:
    from jinja2 import Environment

FORMATS = ("html", "md", "summary", "pdf")
DEFAULT_FORMATS = ("html", "md", "summary")  # a PDF needs an extra

# What Markdown, HTML inside it, or a table's cell would take as markup: anywhere in a line; only at
# its start (list marks, rules, numbers); and what some Markdowns turn into links by themselves.
_MARKUP = re.compile(r"([\\`*_{}\[\]>#|~!&@])")
_TAG = re.compile(r"<(?=[A-Za-z/!?\\])")
_LINE_START = re.compile(r"^([-+=])")
_LIST_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)(:|\.)")


@dataclass(frozen=True, slots=True)
class Report:
    """One report in every skin."""

    html: str
    markdown: str
    summary: str


def render_report(
    result: Result, *, language: Language, branding: Branding | None = None
) -> Report:
    """Renders a result in one language.

    Args:
        result: What a diagnosis found; nothing else is read.
        language: Of the words.
        branding: For whom, by whom.

    Returns:
        The same numbers in each; the same result gives the same characters.

    Raises:
        InputError: The result names a code this version has no sentence for.
    """
    document = compose(result, load_words(language), branding or Branding())
    return Report(
        html=as_html(document),
        markdown=as_markdown(document),
        summary=as_slide(summarised(document)),
    )


def skin(name: str, document: Document, created: str | None) -> bytes:
    """One skin of a document, as the bytes of its file.

    Args:
        name: One of `FORMATS`.
        document: What the report consists of.
        created: When, by RFC 3339.

    Raises:
        MissingExtraError: What sets a PDF is not installed.
    """
    if name == "pdf":
        from slotwise_workflows.report.pdf import as_pdf

        return as_pdf(document, created)
    if name == "summary":
        return as_slide(summarised(document)).encode("utf-8")
    return (as_html if name == "html" else as_markdown)(document).encode("utf-8")


def as_html(document: Document) -> str:
    """One file: no script, no request to anywhere."""
    return _environment(escape=True).get_template("report.html.j2").render(doc=document)


def as_slide(document: Document) -> str:
    """The cover and the first page of a document on one page of 16:9."""
    return _environment(escape=True).get_template("summary.html.j2").render(doc=document)


def as_markdown(document: Document) -> str:
    """The same words and numbers; pictures become their description and their table."""
    text = _environment(escape=False).get_template("report.md.j2").render(doc=document)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@cache
def _environment(*, escape: bool) -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(__package__).joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=StrictUndefined,
        autoescape=escape,  # noqa: S701 - Markdown is escaped by its own filter
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters["md"] = markdown_text
    environment.tests["block"] = lambda block, kind: type(block).__name__ == kind
    return environment


def markdown_text(text: str) -> str:
    """Text that Markdown prints as it is: one line, nothing taken as markup, link or cell."""
    line = " ".join(text.split())
    line = _MARKUP.sub(r"\\\1", line)
    line = _TAG.sub("&lt;", line)  # an entity: not every Markdown knows the escape
    line = _LINE_START.sub(r"\\\1", line)
    line = _LIST_NUMBER.sub(r"\1\\\2", line)
    return _AUTOLINK.sub(r"\1\\\2", line)
