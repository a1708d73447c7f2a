"""The inputs file of a run: JSON, checked against the workflow's schema, defaults filled in."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from slotwise_workflows.errors import InputError

_LARGEST_BYTES = 1 << 20


def read_inputs(path: Path, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Reads and checks an inputs file.

    Args:
        path: The file.
        schema: The workflow's `inputs`, an object schema of JSON Schema 2020-12.

    Returns:
        What the file says, as it says it.

    Raises:
        InputError: The file cannot be read, is no JSON object, or breaks the schema; the error's
            place is ``file#/pointer``.
    """
    inputs = _parse(path)
    _check(inputs, schema, path)
    checked: dict[str, Any] = inputs
    return checked


def defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The default of every property that has one."""
    return {
        name: rule["default"] for name, rule in schema["properties"].items() if "default" in rule
    }


def _parse(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise InputError(
            "cannot read the inputs file",
            where=str(path),
            why=error.strerror or type(error).__name__,
            hint="Name a JSON file with --inputs",
        ) from error
    if len(content) > _LARGEST_BYTES:
        raise InputError("the inputs file is larger than 1 MiB", where=str(path))
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_without_duplicates,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except json.JSONDecodeError as error:
        raise InputError(
            "the inputs file is not JSON", where=f"{path}:{error.lineno}", why=error.msg
        ) from error
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError("the inputs file is not JSON", where=str(path), why=why) from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {_shown(key)} stands twice in one object")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _check(inputs: Any, schema: Mapping[str, Any], path: Path) -> None:
    # Imported here: a run's first event need not wait for it.
    from jsonschema import Draft202012Validator

    known = schema["properties"]
    if isinstance(inputs, dict):
        for name in inputs:
            if name not in known:
                raise _unknown(name, known, path)
        for name in schema.get("required", ()):
            if name not in inputs:
                raise InputError(
                    f"the input {name} is missing", where=f"{path}#", hint=_described(known[name])
                )
    errors = sorted(
        Draft202012Validator(schema).iter_errors(inputs), key=lambda error: error.json_path
    )
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        first = errors[0]
        pointer = _pointer(first.absolute_path)
        raise InputError(_one_line(first.message) + more, where=f"{path}#{pointer}")


def _unknown(name: str, known: Iterable[str], path: Path) -> InputError:
    close = difflib.get_close_matches(name, known, n=1)
    return InputError(
        f"the workflow has no input {_shown(name)}",
        where=f"{path}#{_pointer([name])}",
        hint=f"Did you mean {close[0]}?" if close else f"It knows {', '.join(sorted(known))}",
    )


def _described(rule: Mapping[str, Any]) -> str:
    return str(rule.get("description", "")).rstrip(".")


def _pointer(keys: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901), cut where a hostile key would fill the screen."""
    escaped = (str(key).replace("~", "~0").replace("/", "~1") for key in keys)
    return "".join(f"/{_one_line(key)}" for key in escaped)


def _shown(text: str) -> str:
    return _one_line(repr(text))


def _one_line(text: str) -> str:
    plain = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return plain if len(plain) <= 200 else plain[:199] + "…"
