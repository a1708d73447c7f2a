"""What the consultant adds in their own words: notes, and who does what until when."""

from __future__ import annotations

from slotwise_workflows.report.document import (
    Block,
    Branding,
    Column,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.notes import read_notes
from slotwise_workflows.report.numbers import DASH
from slotwise_workflows.report.words import Words, clean

_LONGEST = 300


def consultant(branding: Branding, words: Words) -> Section | None:
    """Notes and actions; None where there are none."""
    if not branding.notes and not branding.actions:
        return None
    blocks: list[Block] = [Paragraph(words("consultant.lead")), *read_notes(branding.notes)]
    if branding.actions:
        heads = tuple(Column(words(f"consultant.{key}"), False) for key in ("what", "owner", "due"))
        rows = tuple(
            (clean(own.what, _LONGEST), clean(own.owner, _LONGEST) or DASH, clean(own.due) or DASH)
            for own in branding.actions
        )
        blocks.append(Table(words("consultant.actions"), heads, rows))
    return Section("consultant", words("consultant.title"), tuple(blocks))
