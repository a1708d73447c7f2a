"""How formats pack several requests into one record, each as one small function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]
Unpack = Callable[[Record], Iterable[Record]]


def each(*keys: str, only: tuple[str, str] | None = None) -> Unpack:
    """The objects in nested lists, e.g. ``each("data", "results")``.

    The record that holds a list is reached from its items under ``^``: ``^.timestamp``.

    Args:
        keys: The list, and the lists inside its items.
        only: A key and the value that an item must have to be a record at all.
    """

    def unpack(record: Record) -> Iterable[Record]:
        found: list[Record] = [record]
        for key in keys:
            found = [
                {**item, "^": owner}
                for owner in found
                for item in _items(owner.get(key))
                if isinstance(item, Mapping)
            ]
        return [item for item in found if only is None or item.get(only[0]) == only[1]]

    return unpack


def parallel(anchor: str) -> Unpack:
    """Arrays side by side: every list as long as ``anchor``'s is a column, all else is repeated."""

    def unpack(record: Record) -> Iterable[Record]:
        lengths = record.get(anchor)
        if not isinstance(lengths, list):
            return (record,)
        n = len(lengths)
        columns = {k: v for k, v in record.items() if isinstance(v, list) and len(v) == n}
        rest = {k: v for k, v in record.items() if not isinstance(v, list)}
        return ({**rest, **{k: v[i] for k, v in columns.items()}} for i in range(n))

    return unpack


def otlp_spans(record: Record) -> Iterable[Record]:
    """The spans of an OTLP trace export, attributes as plain keys beside the span's own."""
    found = (record.get(key) for key in ("resourceSpans", "resource_spans", "batches"))
    for resource in _items(next((value for value in found if value is not None), None)):
        if not isinstance(resource, Mapping):
            continue
        shared = _attributes(_get(resource.get("resource"), "attributes"))
        scopes = resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))
        for scope in _items(scopes):
            for span in _items(_get(scope, "spans")):
                if isinstance(span, Mapping):
                    yield {**shared, **span, **_attributes(span.get("attributes"))}


def _attributes(pairs: Any) -> dict[str, Any]:
    if isinstance(pairs, Mapping):  # some exporters write a plain object
        return dict(pairs)
    return {
        str(pair.get("key")): _any_value(pair.get("value"))
        for pair in _items(pairs)
        if isinstance(pair, Mapping)
    }


def _any_value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
        if kind in value:
            return value[kind]
    array = value.get("arrayValue")
    if isinstance(array, Mapping):
        return [_any_value(item) for item in _items(array.get("values"))]
    return None


def _get(owner: Any, key: str) -> Any:
    return owner.get(key) if isinstance(owner, Mapping) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
