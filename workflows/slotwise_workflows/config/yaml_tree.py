"""A configuration file's text as a tree whose every node knows its line.

YAML is read by the core schema of YAML 1.2: ``1e-05`` and ``1e3`` are numbers, ``010`` is ten, and
``yes``, ``no``, ``on`` and ``off`` are words. What a configuration never needs is refused, since a
file may come from anywhere: tags, several documents, deep nesting, aliases that blow up.
The tree is built from PyYAML's events, so nothing recurses and nothing is constructed but plain
values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from slotwise_workflows.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_ALIASES = 100
MAX_NODES = 200_000
_MAX_DIGITS = 400

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where the wheel has it


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the file.

    Attributes:
        value: The plain value: a scalar, or a list or dict of plain values.
        line: 1-based line where it starts.
        children: Nodes of a list by index, of a mapping by key; empty for a scalar.
        key_lines: Lines of a mapping's keys.
        size: Nodes below and including this one, aliases counted as often as they are used.
    """

    value: Any
    line: int
    children: Mapping[str | int, Node]
    key_lines: Mapping[str, int]
    size: int

    def line_of(self, path: tuple[str | int, ...]) -> int:
        """The line of the key or item at ``path``, or of the nearest thing above it that exists."""
        node, line = self, self.line
        for step in path:
            if step not in node.children:
                break
            line = node.key_lines.get(step, node.children[step].line)  # type: ignore[arg-type]
            node = node.children[step]
        return line


def read_yaml(path: Path) -> Node:
    """Reads a configuration file.

    Raises:
        ConfigError: The file is missing, too large, not UTF-8, or not YAML of the kind above.
    """
    return parse_yaml(_read_bytes(path), name=str(path))


def parse_yaml(content: bytes, *, name: str) -> Node:
    """Parses the content of a configuration file; ``name`` is how errors call it.

    Raises:
        ConfigError: It is not UTF-8, or not YAML of the kind above.
    """
    if len(content) > MAX_BYTES:
        raise ConfigError(
            f"is larger than {MAX_BYTES >> 20} MiB",
            where=name,
            why="no workload file is",
            hint="Give the file that describes the workload, not the log itself",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"byte {error.start} is not UTF-8", where=f"{name}:{line}", hint="Save it as UTF-8"
        ) from None
    try:
        return _build(yaml.parse(text, Loader=_Loader), name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        why = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise ConfigError("is not valid YAML", where=where, why=why) from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        why = str(getattr(error, "reason", "unreadable"))
        raise ConfigError("is not valid YAML", where=f"{name}:{line}", why=why) from None


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            "no such file", where=str(path), hint="`slotwise config init` writes one"
        ) from None
    except OSError as error:
        raise ConfigError("cannot be read", where=str(path), why=error.strerror or "") from None


class _Open:
    """A list or mapping whose end has not been met."""

    __slots__ = ("anchor", "is_mapping", "items", "key", "key_lines", "line", "size")

    def __init__(self, *, is_mapping: bool, line: int, anchor: str | None) -> None:
        self.is_mapping = is_mapping
        self.line = line
        self.anchor = anchor
        self.items: dict[str | int, Node] = {}
        self.key_lines: dict[str, int] = {}
        self.key: str | None = None
        self.size = 1

    def close(self) -> Node:
        values = {key: node.value for key, node in self.items.items()}
        value = values if self.is_mapping else list(values.values())
        return Node(value, self.line, self.items, self.key_lines, self.size)


def _build(events: Iterator[Any], name: str) -> Node:
    """Builds the tree; the stack of open lists and mappings stands where recursion would."""
    stack: list[_Open] = []
    anchors: dict[str, Node] = {}
    root: Node | None = None
    aliases = nodes = 0
    for event in events:
        where = f"{name}:{event.start_mark.line + 1}"
        _refuse_extras(event, where, has_root=root is not None)
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(_open(event, stack, where))
            continue
        node, anchor = _finish(event, stack, anchors, where)
        if node is None:
            continue
        if anchor:
            anchors[anchor] = node
        is_alias = isinstance(event, yaml.AliasEvent)
        aliases += is_alias
        nodes += node.size if is_alias else 1
        if aliases > MAX_ALIASES or nodes > MAX_NODES:
            what = f"more than {MAX_ALIASES} aliases" if is_alias else f"over {MAX_NODES} values"
            raise ConfigError(what, where=where, hint="Write out what is needed, and no more")
        if stack:
            _put(stack[-1], node, event, where)
        else:
            root = node
    if root is None:
        raise ConfigError("is empty", where=name, hint="`slotwise config init` writes an example")
    return root


def _refuse_extras(event: Any, where: str, *, has_root: bool) -> None:
    if isinstance(event, yaml.DocumentStartEvent) and has_root:
        raise ConfigError("a second document starts", where=where, hint="Keep one a file")
    tag = getattr(event, "tag", None)
    if tag:
        raise ConfigError(
            f"tag {tag[:40]!r} is not allowed", where=where, hint="Write the value plain"
        )


def _open(event: Any, stack: list[_Open], where: str) -> _Open:
    if len(stack) >= MAX_DEPTH:
        raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", where=where)
    if stack and stack[-1].is_mapping and stack[-1].key is None:
        raise ConfigError("a key must be a word, not a list or mapping", where=where)
    is_mapping = isinstance(event, yaml.MappingStartEvent)
    return _Open(is_mapping=is_mapping, line=event.start_mark.line + 1, anchor=event.anchor)


def _finish(
    event: Any, stack: list[_Open], anchors: Mapping[str, Node], where: str
) -> tuple[Node | None, str | None]:
    """The value that is complete with this event, if any, and the anchor it may be called by."""
    line: int = event.start_mark.line + 1
    if isinstance(event, yaml.ScalarEvent):
        return Node(_scalar(event, where), line, {}, {}, 1), event.anchor
    if isinstance(event, yaml.CollectionEndEvent):
        ended = stack.pop()
        return ended.close(), ended.anchor
    if isinstance(event, yaml.AliasEvent):
        name = str(event.anchor)
        if name not in anchors:
            raise ConfigError(f"alias *{name[:40]} names nothing before it", where=where)
        return anchors[name], None
    return None, None


def _put(parent: _Open, node: Node, event: Any, where: str) -> None:
    """Adds a finished node to the list or mapping it stands in: as item, as key or as value."""
    if not parent.is_mapping:
        parent.items[len(parent.items)] = node
        parent.size += node.size
    elif parent.key is None:
        # A key is its text, whatever it looks like: `1: x` has the key "1".
        if not isinstance(event, yaml.ScalarEvent):
            raise ConfigError("a key must be a word", where=where)
        key = str(event.value)
        if key in parent.items:
            first = parent.key_lines[key]
            raise ConfigError(
                f"key {key[:60]!r} stands twice", where=where, why=f"the first is on line {first}"
            )
        parent.key = key
        parent.key_lines[key] = node.line
    else:
        parent.items[parent.key] = node
        parent.size += node.size
        parent.key = None


def _scalar(event: Any, where: str) -> Any:
    """A scalar's value by the core schema of YAML 1.2 (section 10.3.2)."""
    text: str = event.value
    if event.style:  # quoted, literal or folded: always text
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return text.lower() == "true"
    if len(text) > _MAX_DIGITS and _FLOAT.fullmatch(text):
        raise ConfigError(f"a number of {len(text)} digits", where=where, hint="Shorten it")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITY.fullmatch(text):
        return float("-inf") if text.startswith("-") else float("inf")
    if _NAN.fullmatch(text):
        return float("nan")
    return text
