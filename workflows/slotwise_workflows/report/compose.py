"""From a result to a document: the order of the sections, and nothing else."""

from __future__ import annotations

from slotwise_workflows.report.document import Branding, Document, Section
from slotwise_workflows.report.sections import (
    data,
    first_page,
    method,
    outlook,
    pictures,
    tables,
)
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import Result

_SKIN_WORDS = ("contents", "skip", "numbers", "because", "now", "after")


def compose(result: Result, words: Words, branding: Branding) -> Document:
    """Puts a result into words and pictures.

    Args:
        result: What a diagnosis found.
        words: The language.
        branding: For whom, by whom.

    Raises:
        InputError: The result names a code this version has no sentence for.
    """
    shown = first_page.leading(result)
    sections = (
        pictures.pictures(shown, words),
        outlook.what_if(shown, words),
        outlook.money(shown, words),
        outlook.elsewhere(shown, words),
        outlook.limits(shown, words),
        outlook.rollout(shown, result.provenance, words),
        data.data(result, words),
        data.assumptions(result, words),
        method.method(words),
        method.glossary(words),
        method.provenance(result.provenance, words),
        tables.tables(shown, words),
        tables.models(result, words),
    )
    first = (
        first_page.models(result, words),
        first_page.numbers(shown, words),
        first_page.flips(shown, words),
    )
    fixed = {key: words(f"page.{key}") for key in _SKIN_WORDS}
    fixed["footer"] = words("page.footer", version=clean(result.provenance.slotwise))
    return Document(
        language=words.language,
        title=words("page.title"),
        facts=_facts(result, words, branding),
        cover=first_page.cover(result, words),
        first_page=_present(first),
        sections=_present(sections),
        words=fixed,
    )


def _present(sections: tuple[Section | None, ...]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section is not None)


def _facts(result: Result, words: Words, branding: Branding) -> tuple[tuple[str, str], ...]:
    traffic = result.traffic
    facts = [
        ("client", clean(branding.client, 80)),
        ("prepared_by", clean(branding.prepared_by, 80)),
        ("log", clean(result.name)),
        ("window", _window(result, words)),
        ("requests", words("page.requests_value", requests=traffic.requests, rows=traffic.rows)),
    ]
    return tuple((words(f"page.{key}"), value) for key, value in facts if value)


def _window(result: Result, words: Words) -> str:
    span = result.traffic.arrival
    if span is None:
        return words("page.window_unknown")
    if isinstance(span.first, str) and isinstance(span.last, str):
        return words("page.window_value", first=_minute(span.first), last=_minute(span.last))
    seconds = float(span.last) - float(span.first)
    return words("page.window_relative", span=seconds)


def _minute(moment: str) -> str:
    """An RFC 3339 time to the minute, its zone kept; anything else as it is."""
    day, mark, time = clean(moment, 40).partition("T")
    if not mark or len(time) < 6:
        return clean(moment, 40)
    zone = "UTC" if time.endswith("Z") else time[-6:] if time[-6:-5] in {"+", "-"} else ""
    return f"{day} {time[:5]} {zone}".rstrip()
