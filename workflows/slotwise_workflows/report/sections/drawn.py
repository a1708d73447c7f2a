"""A picture and its numbers as blocks of a page."""

from __future__ import annotations

from collections.abc import Sequence

from slotwise_workflows.report import reading, svg
from slotwise_workflows.report.charts.common import Spec
from slotwise_workflows.report.document import Column, Figure, Label, Table
from slotwise_workflows.report.words import Words


def figure(
    words: Words,
    name: str,
    spec: Spec,
    *,
    title: str,
    description: str,
    table: Table,
    label: Label = "simulated",
    note: str = "",
    defs: str = "",
) -> Figure:
    """A picture with its finding as title.

    Args:
        words: The language.
        name: The figure's identifier.
        spec: What is drawn.
        title: What it shows, in one sentence.
        description: The same in words, for who cannot see it.
        table: The same in numbers.
        label: The kind of its numbers.
        note: What stands below it.
        defs: Patterns that it fills areas with.
    """
    drawn = svg.draw(spec, name=name, title=title, description=description, defs=defs)
    return Figure(
        name, title, description, drawn, table, label, reading.label_word(words, label), note
    )


def table(caption: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """The numbers of a picture; what they are by stands in the first column."""
    columns = tuple(Column(head, numeric=i > 0) for i, head in enumerate(heads))
    return Table(caption, columns, tuple(rows))
