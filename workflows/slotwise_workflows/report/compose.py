"""From a result to a document: the order of the sections, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

from slotwise_workflows.report import reading
from slotwise_workflows.report.branding import BRAND_TEXTS
from slotwise_workflows.report.document import Branding, Document, Section
from slotwise_workflows.report.sections import (
    attribution,
    consultant,
    data,
    endpoint,
    first_page,
    method,
    outlook,
    pictures,
    tables,
)
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import ArrivalSpan, Diagnosis, Result

_BRAND_FACTS = ("client", "prepared_by", "date", "document_number")
_SHORT_WINDOW_S = 3600.0  # minutes alone would not tell how long it is
_SKIN_WORDS = ("contents", "skip", "numbers", "because", "now", "after", "logo")


def compose(result: Result, words: Words, branding: Branding) -> Document:
    """Puts a result into words and pictures.

    Args:
        result: What a diagnosis found.
        words: The language.
        branding: For whom, by whom.

    Raises:
        InputError: The result names a code this version has no sentence for.
    """
    shown = reading.leading(result)
    if shown.verdict == "not_yours":
        first, sections = _for_a_user_of_an_api(result, shown, words)
    else:
        first, sections = _for_an_operator(result, shown, words)
    footer = words("page.footer", version=clean(result.provenance.slotwise))
    return Document(
        language=words.language,
        title=words("page.title"),
        facts=_facts(result, words, branding),
        cover=first_page.cover(result, words),
        first_page=_present(first),
        sections=_present((consultant.consultant(branding, words), *sections)),
        brand=shown_brand(branding),
        words=page_words(words, footer),
    )


def page_words(words: Words, footer: str) -> dict[str, str]:
    """The fixed words of a page's skin."""
    return {key: words(f"page.{key}") for key in _SKIN_WORDS} | {"footer": footer}


def shown_brand(branding: Branding) -> Branding:
    """What of it the skins print by themselves, as it may be printed."""
    texts = {name: clean(getattr(branding, name), 160) for name in BRAND_TEXTS}
    return replace(branding, **texts, notes="", actions=())


_Parts = tuple[Section | None, ...]


def _for_an_operator(result: Result, shown: Diagnosis, words: Words) -> tuple[_Parts, _Parts]:
    """Page one and the rest, for whoever runs the server."""
    first = (
        first_page.models(result, words),
        first_page.numbers(shown, words),
        first_page.flips(shown, words),
    )
    rest = (
        endpoint.endpoint(result, words),
        pictures.pictures(shown, words),
        attribution.attribution(shown, words),
        outlook.what_if(shown, words),
        outlook.money(shown, words),
        outlook.elsewhere(shown, words),
        outlook.limits(shown, words),
        outlook.rollout(shown, result.provenance, words),
        *_foundations(result, words),
        tables.tables(shown, words),
        tables.models(result, words),
    )
    return first, rest


def _for_a_user_of_an_api(result: Result, shown: Diagnosis, words: Words) -> tuple[_Parts, _Parts]:
    """Page one holds what a user of an API can do; what a server would gain is an appendix."""
    first = (
        first_page.models(result, words),
        outlook.elsewhere(shown, words),
        first_page.flips(shown, words),
    )
    appendix = (
        first_page.numbers(shown, words),
        pictures.simulated(shown, words),
        attribution.attribution(shown, words),
        outlook.what_if(shown, words),
        outlook.money(shown, words),
        outlook.limits(shown, words),
        tables.tables(shown, words),
    )
    rest = (
        endpoint.endpoint(result, words),
        pictures.measured(shown, words),
        *_foundations(result, words),
        tables.models(result, words),
        *(_as_appendix(section, words) for section in appendix if section is not None),
    )
    return first, rest


def _foundations(result: Result, words: Words) -> _Parts:
    return (
        data.data(result, words),
        data.assumptions(result, words),
        method.method(result, words),
        method.glossary(result, words),
        method.provenance(result.provenance, words),
    )


def _as_appendix(section: Section, words: Words) -> Section:
    title = words("appendix.title", title=section.title)
    return replace(section, title=title)


def _present(sections: tuple[Section | None, ...]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section is not None)


def _facts(result: Result, words: Words, branding: Branding) -> tuple[tuple[str, str], ...]:
    traffic = result.traffic
    facts = [
        ("log", clean(result.name)),
        ("window", window(traffic.arrival, words)),
        ("requests", words("page.requests_value", requests=traffic.requests, rows=traffic.rows)),
    ]
    told = tuple((words(f"page.{key}"), value) for key, value in facts if value)
    return (*brand_facts(branding, words), *told)


def brand_facts(branding: Branding, words: Words) -> tuple[tuple[str, str], ...]:
    """For whom, by whom, when, and under which number; what is not told is left out."""
    told = ((name, clean(getattr(branding, name), 80)) for name in _BRAND_FACTS)
    return tuple((words(f"page.{name}"), text) for name, text in told if text)


def window(span: ArrivalSpan | None, words: Words) -> str:
    """The first and the last arrival, or what is known of them."""
    if span is None:
        return words("page.window_unknown")
    if isinstance(span.first, str) and isinstance(span.last, str):
        short = _seconds_between(span.first, span.last) < _SHORT_WINDOW_S
        first, last = (_moment(text, seconds=short) for text in (span.first, span.last))
        return words("page.window_value", first=first, last=last)
    seconds = float(span.last) - float(span.first)
    return words("page.window_relative", span=seconds)


def _seconds_between(first: str, last: str) -> float:
    """Infinite where either is no RFC 3339 time, so that nothing is taken for short."""
    try:
        between = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    except (ValueError, TypeError):
        return math.inf
    return between.total_seconds()


def _moment(moment: str, *, seconds: bool) -> str:
    """An RFC 3339 time to the minute or second, its zone kept; anything else as it is."""
    day, mark, time = clean(moment, 40).partition("T")
    if not mark or len(time) < 6:
        return clean(moment, 40)
    zone = "UTC" if time.endswith("Z") else time[-6:] if time[-6:-5] in {"+", "-"} else ""
    return f"{day} {time[: 8 if seconds else 5]} {zone}".rstrip()
