"""How it was done: method, glossary, provenance."""

from __future__ import annotations

import json
import shlex
from typing import Any

from slotwise_workflows.report.document import (
    Block,
    Code,
    Column,
    Definitions,
    Heading,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import Provenance

_PARAGRAPHS = ("p1", "p2", "p3", "p4", "p5", "validation")
_TERMS = (
    "slot",
    "batch_at_once",
    "continuous",
    "idle_share",
    "longest",
    "capacity",
    "utilisation",
    "latency",
    "ttft",
    "p95",
    "cv",
    "interval",
    "drift",
)
_MAX_FILES = 20
_MAX_SETTINGS = 60
_LONG = 200


def method(words: Words) -> Section:
    """What was computed and what it was checked against."""
    return Section(
        "method",
        words("method.title"),
        tuple(Paragraph(words(f"method.{key}")) for key in _PARAGRAPHS),
    )


def glossary(words: Words) -> Section:
    """The terms of the report."""
    items = tuple((words(f"glossary.{t}.term"), words(f"glossary.{t}.text")) for t in _TERMS)
    return Section("glossary", words("glossary.title"), (Definitions(items),))


def provenance(own: Provenance, words: Words) -> Section:
    """Versions, seed, hashes, command, settings: enough to run it again."""
    packages = words("format.list_separator").join(
        f"{clean(name)} {clean(version)}" for name, version in sorted(own.packages.items())
    )
    rows = [
        (words("provenance.slotwise"), clean(own.slotwise)),
        (words("provenance.python"), clean(own.python)),
        (words("provenance.platform"), clean(own.platform, _LONG)),
        (words("provenance.seed"), str(own.seed)),
    ]
    if own.created:
        rows.append((words("provenance.created"), clean(own.created)))
    if packages:
        rows.append((words("provenance.packages"), packages))
    blocks: list[Block] = [
        _texts(words, "provenance.caption", ("item", "value"), rows),
        Heading(words("provenance.command")),
        Code(clean(shlex.join(clean(word, _LONG) for word in own.command), 2000)),
    ]
    if own.inputs:
        files = [
            (clean(file.name, 80), words.number(file.bytes, "count"), clean(file.sha256))
            for file in own.inputs[:_MAX_FILES]
        ]
        if len(own.inputs) > _MAX_FILES:
            files.append((f"+{len(own.inputs) - _MAX_FILES}", "…", "…"))
        blocks.append(_texts(words, "provenance.inputs", ("file", "bytes", "sha256"), files))
    settings = _flat(own.config)[:_MAX_SETTINGS]
    if settings:
        blocks.append(_texts(words, "provenance.config", ("key", "value"), settings))
    return Section("provenance", words("provenance.title"), tuple(blocks))


def _texts(words: Words, caption: str, heads: tuple[str, ...], rows: list[Any]) -> Table:
    columns = tuple(Column(words(f"provenance.{h}"), numeric=h == "bytes") for h in heads)
    return Table(words(caption), columns, tuple(rows))


def _flat(config: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            rows += _flat(value, f"{name}.")
        else:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            rows.append((clean(name, 80), clean(shown, _LONG)))
    return rows
