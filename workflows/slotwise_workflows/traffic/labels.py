"""Segment columns: labels to split by, and never text.

A segment's values are written into results, reports and tables. A column of prompts would be, too,
so a column that reads like text is refused instead of cut to size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slotwise_workflows.errors import UsageError
from slotwise_workflows.traffic import fields

Record = Mapping[str, Any]
Labels = tuple[str | None, ...]

LONGEST_LABEL = 200
# Of so few rows it cannot be told whether values repeat.
FEWEST_ROWS = 20
# A UUID has 36 characters.
LONGEST_ID = 40
_WHY = "prompts and answers are never kept"
_HINT = "Name a column of labels, such as a route, a tenant or the name of a prompt template"


def label_reader(segments: Mapping[str, Sequence[str]]) -> Callable[[Record, str], Labels]:
    """How the labels of a record are read.

    Args:
        segments: Each segment's name and the specs it is read by, the preferred one first.

    Returns:
        A function of a record and its ``file:line`` that raises UsageError where a value is no
        label: longer than 200 characters, or of several lines.
    """
    getters = [(name, fields.first_of(tuple(specs), _written)) for name, specs in segments.items()]

    def read(record: Record, source: str) -> Labels:
        return tuple(_label(get(record), name, source) for name, get in getters)

    return read


def check_labels(segments: Sequence[str], rows: Sequence[Labels]) -> None:
    """Refuses a column of short texts, by all of its values together.

    Labels repeat, for a segment splits the log; where more than half of the values are different
    they are ids or text. An id is one word; text has spaces, letters beyond ASCII, or is long.

    Args:
        segments: Names of the segments.
        rows: The labels of each kept request, in the order of `segments`.

    Raises:
        UsageError: A column reads like text.
    """
    for i, name in enumerate(segments):
        values = [label for row in rows if (label := row[i]) is not None]
        different = set(values)
        if len(values) < FEWEST_ROWS or 2 * len(different) <= len(values):
            continue
        words = sum(" " in value or not value.isascii() for value in different)
        length = sum(len(value) for value in different) / len(different)
        if 2 * words > len(different) or length > LONGEST_ID:
            raise _refusal(
                name,
                "",
                f"{len(different)} of its {len(values)} values are different, and they are no ids",
            )


def _written(value: Any) -> str | None:
    """A label as the log writes it, uncut; of a list the first; None where missing."""
    if isinstance(value, list):
        return _written(value[0]) if value else None
    if fields.is_missing(value) or isinstance(value, Mapping):
        return None
    return str(value).strip()


def _label(value: str | None, name: str, source: str) -> str | None:
    if value is None:
        return None
    if len(value) > LONGEST_LABEL:
        raise _refusal(name, source, f"this value has {len(value):,} characters")
    if len(value.splitlines()) > 1:
        raise _refusal(name, source, "this value has several lines")
    return sys.intern(value)  # a million rows name few labels


def _refusal(name: str, source: str, told: str) -> UsageError:
    return UsageError(
        f"--segment {fields.shown(name)} names a column of text, not of labels",
        where=source,
        why=f"{told}, and {_WHY}",
        hint=_HINT,
    )
