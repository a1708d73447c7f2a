"""The report on one page, for a slide: chosen from the composed report, so no number is new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from slotwise_workflows.report.document import (
    Block,
    Bullets,
    Document,
    Figure,
    KeyNumbers,
    Section,
)

# What one page holds, in either language.
_MOST_REASONS = 2
_MOST_BULLETS = 3
_PICTURES = ("timeline", "lengths", "gain", "arrivals")  # the first that was drawn


def summarised(report: Document) -> Document:
    """The verdict, three numbers, one picture, what would change it, the next action, the source.

    Args:
        report: As `compose` made it.

    Returns:
        A document whose first page is all of it. For a user of an API, what they can do stands
        where the three numbers of a server of one's own would.
    """
    first = (_section(report, "numbers", "elsewhere"), _section(report, "flips"), _picture(report))
    return replace(
        report,
        cover=replace(report.cover, because=report.cover.because[:_MOST_REASONS]),
        first_page=tuple(section for section in first if section is not None),
        sections=(),
    )


def _section(report: Document, *ids: str) -> Section | None:
    """The first section of page one with one of these names, cut to what fits."""
    found = next((own for own in report.first_page if own.id in ids), None)
    return None if found is None else replace(found, blocks=tuple(_cut(found)))


def _cut(section: Section) -> Iterator[Block]:
    """The block that the section is about: its numbers or its list, else all it says."""
    told = next((own for own in section.blocks if isinstance(own, KeyNumbers | Bullets)), None)
    if told is None:
        yield from section.blocks
    elif isinstance(told, Bullets):
        yield replace(told, items=told.items[:_MOST_BULLETS])
    else:
        yield told


def _picture(report: Document) -> Section | None:
    drawn = {
        block.id: block
        for section in report.sections
        if section.id == "pictures"
        for block in section.blocks
        if isinstance(block, Figure)
    }
    shown = next((drawn[name] for name in _PICTURES if name in drawn), None)
    return None if shown is None else Section("picture", shown.title, (shown,))
