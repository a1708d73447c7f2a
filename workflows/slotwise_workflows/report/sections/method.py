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
from slotwise_workflows.result import Diagnosis, Provenance

_PARAGRAPHS = ("p1", "p2", "p3", "p4", "p5", "validation")
_UNDER_A_STEP_COST = ("p1_step", "p2_step", "p3_step", "p4", "p5", "validation", "validation_step")
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
_TERMS_OF_A_STEP_COST = ("step_cost", "padding", "kv_memory")
_MAX_FILES = 20
_MAX_SETTINGS = 60
_LONG = 200
_OWN_WORDS = ("report.notes", "report.actions")  # they stand in a section of their own


def method(diagnosis: Diagnosis, words: Words) -> Section:
    """What was computed and what it was checked against."""
    told = _PARAGRAPHS if diagnosis.cost is None else _UNDER_A_STEP_COST
    return Section(
        "method",
        words("method.title"),
        tuple(Paragraph(words(f"method.{key}")) for key in told),
    )


def glossary(diagnosis: Diagnosis, words: Words) -> Section:
    """The terms of the report."""
    terms = _TERMS if diagnosis.cost is None else (*_TERMS, *_TERMS_OF_A_STEP_COST)
    items = tuple((words(f"glossary.{t}.term"), words(f"glossary.{t}.text")) for t in terms)
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
    settings = _settings(own.config, words)[:_MAX_SETTINGS]
    if settings:
        blocks.append(_texts(words, "provenance.config", ("key", "value"), settings))
    return Section("provenance", words("provenance.title"), tuple(blocks))


def _texts(words: Words, caption: str, heads: tuple[str, ...], rows: list[Any]) -> Table:
    columns = tuple(Column(words(f"provenance.{h}"), numeric=h == "bytes") for h in heads)
    return Table(words(caption), columns, tuple(rows))


def _settings(config: dict[str, Any], words: Words, prefix: str = "") -> list[tuple[str, str]]:
    """What was set, by its name in words where it has one; what is null or empty is left out."""
    rows: list[tuple[str, str]] = []
    for key, value in config.items():
        if f"{prefix}{key}".endswith(_OWN_WORDS):
            continue
        if isinstance(value, dict) and value:
            rows += _settings(value, words, f"{prefix}{key}.")
        elif value is not None and value not in ("", [], {}):
            rows.append((_setting(f"{prefix}{key}", words), _value(value, words)))
    return rows


def _setting(path: str, words: Words) -> str:
    """A setting's name in words; one of a workload file that has none as the file spells it."""
    for group, name in (("setting", path), ("fact", path.removeprefix("server."))):
        if f"{group}.{name}" in words:
            return words(f"{group}.{name}")
    return clean(path, 80)


def _value(value: Any, words: Words) -> str:
    if isinstance(value, bool):
        return words("value.yes" if value else "value.no")
    if isinstance(value, list) and all(isinstance(own, str) for own in value):
        return clean(words("format.list_separator").join(value), _LONG)
    if value == ".inf":  # a delay without an end, as a workload file spells it
        return words("value.full_wait")
    if isinstance(value, str):
        known = f"value.{value}"
        return words(known) if known in words else clean(value, _LONG)
    return clean(json.dumps(value, ensure_ascii=False).removesuffix(".0"), _LONG)
