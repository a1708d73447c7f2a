"""Conditions on a record: those of a format's entry, and those a user gives."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slotwise_workflows.errors import UsageError
from slotwise_workflows.traffic import fields

Record = Mapping[str, Any]
Condition = Callable[[Record], bool]

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def any_of(rules: Sequence[str]) -> Condition:
    """Whether a record meets one of the conditions of a format's entry."""
    compiled = tuple(tuple(_clause(part) for part in rule.split(" & ")) for rule in rules)
    if not compiled:
        return lambda _: False
    return lambda record: any(all(clause(record) for clause in rule) for rule in compiled)


def _clause(text: str) -> Condition:
    head, _, wanted = text.strip().partition("=")
    path, equal = head.removesuffix("!"), not head.endswith("!")

    def meets(record: Record) -> bool:
        value = fields.lookup(record, path)
        same = fields.is_missing(value) if not wanted else str(value).lower() == wanted.lower()
        return same is equal

    return meets


def where_condition(text: str) -> tuple[str, Condition]:
    """One ``--where``: its path, and the condition.

    Numbers are compared as numbers where both sides are; else as text. A missing value meets only
    ``!=``.

    Raises:
        UsageError: It is not ``column=value`` or the like.
    """
    match = re.fullmatch(r"\s*([^=!<>]+?)\s*(!=|<=|>=|<|>|==?)\s*(.*?)\s*", text, re.DOTALL)
    if not match:
        raise UsageError(
            f"--where {text!r} is not a condition", hint="Write column=value (also != < <= > >=)"
        )
    path, symbol, wanted = match.groups()
    wanted = wanted.strip("\"'") if wanted[:1] in "\"'" else wanted

    def meets(record: Record) -> bool:
        value = fields.lookup(record, path)
        if fields.is_missing(value):
            return symbol == "!=" and wanted != ""
        return _OPERATORS[symbol](*_comparable(value, wanted))

    return path, meets


def _comparable(value: Any, wanted: str) -> tuple[Any, Any]:
    try:
        return float(value), float(wanted)
    except (TypeError, ValueError):
        if isinstance(value, bool):
            return str(value).lower(), wanted.lower()
        return str(value), wanted
