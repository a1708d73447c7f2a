"""Reading one field out of one record: paths, small expressions, and what a value means.

A *path* names a key or a column, with dots for nesting: ``usage.prompt_tokens``. Keys that hold
dots themselves (``gen_ai.usage.input_tokens``) are found first; a JSON string is looked through as
if it were the object it spells; of a list, the first item that has the rest of the path answers.

A *spec* is a path, or a little more::

    latencyMs [ms]                              a duration with its unit
    input_tokens + cache_read_input_tokens      the first term must be there, others may be missing
    last_token_ts - queued_ts                   all terms must be there
    usageDetails.output*                        the sum of every key that starts so
    inference_time / time_per_token             a ratio of durations, as a whole number
    response_timestamps.-1                      an item of a list by its position
    "time [s]"                                  a path that looks like more than one

Nothing is ever evaluated: a Python dict's repr is read as a literal, never as code.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

Record = Mapping[str, Any]
Getter = Callable[[Record], Any]

SECONDS: Mapping[str, Decimal] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
}
#: The most tokens that are taken for a count; two of them still fit the simulator's 32 bits.
MOST_TOKENS = 10**9
#: The longest duration that is taken for one, about four months: no request runs longer.
MOST_SECONDS = 1e7
#: Stands for a time that cannot be read, so that it is not taken for a missing one.
UNREADABLE = "unreadable"
_MOST_UNITS = 1e19  # an epoch in nanoseconds, where durations are differences of times
_LONGEST_NUMBER = 64
_MISSING_WORDS = frozenset(
    {"", "null", "none", "nan", "n/a", "na", "-", "--", "unknown", "undefined", "nil", "(null)"}
)
_TRUE = frozenset({"true", "1", "yes", "t", "y"})
_FALSE = frozenset({"false", "0", "no", "f", "n"})
_LONGEST_NESTED = 1 << 20
_DEEPEST = 12
_GROUPED_COMMA = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.0*)?")
_GROUPED_DOT = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,0*)?")
_GROUPED_SPACE = re.compile(r"[+-]?\d{1,3}([ \u00a0\u202f\u2009'’]\d{3})+")
# Numbers with a fraction: a group of thousands never begins with 0.
_DOT_DECIMAL = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?")
_COMMA_DECIMAL = re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d*)?")
_ONE_GROUP = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_SHORT_FRACTION = re.compile(r"[+-]?\d{1,3}\.\d+")
_DURATION = re.compile(r"([+-]?\d[\d.,]*(?:e[+-]?\d+)?)\s*(ns|us|µs|μs|ms|s|min|m|h)")


class AmbiguousNumberError(ValueError):
    """A number whose dot or comma may group thousands or mark decimals."""


# --- paths ---------------------------------------------------------------------------------------


def lookup(record: Any, path: str, depth: int = 0) -> Any:
    """The value at ``path``, or None; see the module's docstring for what is looked through."""
    if isinstance(record, Mapping):
        return record[path] if path in record else _inside(record, path, depth)
    if depth > _DEEPEST:
        return None
    if isinstance(record, str):
        nested = parse_nested(record)
        return None if nested is None else lookup(nested, path, depth + 1)
    if isinstance(record, list):
        if path.lstrip("-").isdecimal():
            return record[int(path)] if -len(record) <= int(path) < len(record) else None
        found = (lookup(item, path, depth + 1) for item in record)
        return next((value for value in found if value is not None), None)
    return None


def _inside(record: Record, path: str, depth: int) -> Any:
    """The rest of a path inside a nested object; keys may hold dots themselves."""
    dot = path.find(".")
    while dot > 0 and depth <= _DEEPEST:
        head = path[:dot]
        if head in record:
            found = lookup(record[head], path[dot + 1 :], depth + 1)
            if found is not None:
                return found
        dot = path.find(".", dot + 1)
    return None


def has(record: Any, path: str) -> bool:
    """Whether ``path`` exists, be its value null."""
    if not isinstance(record, Mapping):
        return lookup(record, path) is not None
    if path in record:
        return True
    dots = [i for i, letter in enumerate(path) if letter == "."]
    return any(path[:i] in record and has(record[path[:i]], path[i + 1 :]) for i in dots)


def parse_nested(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or array that a string spells in JSON, or as a Python literal; else None."""
    stripped = text.strip()
    if not stripped or stripped[0] not in "{[" or len(stripped) > _LONGEST_NESTED:
        return None
    try:
        value = json.loads(stripped, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(stripped)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}
    return value if isinstance(value, list) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without its keys that are given twice: which value counts cannot be told."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = [key for key, _ in pairs]
        return {key: value for key, value in found.items() if seen.count(key) == 1}
    return found


# --- specs ---------------------------------------------------------------------------------------


def spec_paths(spec: str) -> tuple[str, ...]:
    """The paths a spec reads, without units and stars."""
    return tuple(term.rstrip("*") for _, term in _terms(split_unit(spec)[0]))


def literal(path: str) -> str:
    """A spec that means this path, whatever signs are in it."""
    return f'"{path}"' if re.search(r"[\[\]*\"]| [-+/] ", path) else path


def split_unit(spec: str) -> tuple[str, str]:
    """A spec without its unit, and the unit; empty where it says none."""
    match = re.fullmatch(r"(.*\S)\s+\[(ns|us|ms|s)\]", spec)
    return (match[1], match[2]) if match else (spec, "")


def first_of(specs: tuple[str, ...], convert: Callable[[Any], Any]) -> Getter:
    """A reader of the first spec that yields a value; None where none does.

    Args:
        specs: Alternatives, the preferred one first.
        convert: Turns a raw value into what the field needs; None means missing.
    """
    getters = tuple(_getter(spec, convert) for spec in specs)
    if len(getters) == 1:
        return getters[0]

    def read(record: Record) -> Any:
        for get in getters:
            value = get(record)
            if value is not None:
                return value
        return None

    return read


def _getter(spec: str, convert: Callable[[Any], Any]) -> Getter:
    body, unit = split_unit(spec)
    terms = _terms(body)
    if unit:
        convert = _in_unit(convert, unit)
    if len(terms) == 1:
        path = terms[0][1]
        if path.endswith("*") and body[0] != '"':
            return lambda record: _sum_of_prefix(record, path[:-1], convert)
        if "." not in path:
            return lambda record: convert(record.get(path))
        return lambda record: convert(lookup(record, path))
    if terms[1][0] == "/":
        return lambda record: _ratio(record, terms[0][1], terms[1][1])
    return lambda record: _combine(terms, record, convert)


def _combine(
    terms: tuple[tuple[str, str], ...], record: Record, convert: Callable[[Any], Any]
) -> Any:
    total = convert(lookup(record, terms[0][1]))
    if total is None:
        return None
    for sign, path in terms[1:]:
        value = convert(lookup(record, path))
        if value is None:
            if sign == "+":
                continue
            return None
        total = total + value if sign == "+" else total - value
    return total


def _ratio(record: Record, above: str, below: str) -> int | None:
    a, b = seconds(lookup(record, above)), seconds(lookup(record, below))
    return round(a / b) if a and b and a / b < MOST_TOKENS else None


def _sum_of_prefix(record: Record, path: str, convert: Callable[[Any], Any]) -> Any:
    parent, _, prefix = path.rpartition(".")
    owner = lookup(record, parent) if parent else record
    if isinstance(owner, str):
        owner = parse_nested(owner)
    if not isinstance(owner, Mapping):
        return None
    values = [convert(value) for key, value in owner.items() if key.startswith(prefix)]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _terms(body: str) -> tuple[tuple[str, str], ...]:
    if len(body) > 2 and body[0] == body[-1] == '"':
        return (("", body[1:-1]),)
    parts = re.split(r" ([+\-/]) ", body)
    return (
        ("", parts[0].strip()),
        *zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True),
    )


def _in_unit(convert: Callable[[Any], Any], unit: str) -> Callable[[Any], Any]:
    factor = float(SECONDS[unit])

    def scaled(value: Any) -> Any:
        seconds = convert(value)
        written = isinstance(value, str) and _DURATION.fullmatch(value.strip())
        return seconds if seconds is None or written else seconds * factor

    return scaled


# --- values --------------------------------------------------------------------------------------


def shown(label: str) -> str:
    """A name out of a log, fit for an error message: printable and short."""
    safe = "".join(letter if letter.isprintable() else "?" for letter in label[:61])
    return safe if len(safe) <= 60 else safe[:59] + "…"


def is_missing(value: Any) -> bool:
    """Whether a value stands for "not known": null, NaN, an empty string, ``N/A``."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in _MISSING_WORDS
    return isinstance(value, float) and math.isnan(value)


def count(value: Any, *, decimal: str = "auto") -> int | None:
    """A number of tokens; None where it is missing or negative.

    Args:
        value: Whatever the log holds.
        decimal: ``.`` or ``,``: the file's decimal mark; ``auto`` where nothing tells.

    Raises:
        AmbiguousNumberError: ``1.500`` where nothing tells what the dot is.
        ValueError: Not a whole number, or beyond what a request can hold.
    """
    if type(value) is int:
        number: int | float = value
    elif is_missing(value):
        return None
    elif isinstance(value, str):
        number = _number(value.strip(), decimal)
    elif isinstance(value, float | Decimal):
        number = float(value)
    else:
        raise ValueError("no number")
    if number < 0:
        return None
    if number != number or number > MOST_TOKENS:
        raise ValueError(f"more than a request can hold ({number:g})")
    whole = int(number)
    if whole != number:
        raise ValueError(f"no whole number ({number:g})")
    return whole


def _number(text: str, decimal: str) -> int | float:
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    if _GROUPED_SPACE.fullmatch(text):
        return int(re.sub(r"[^\d+-]", "", text))
    if decimal == "," and _GROUPED_DOT.fullmatch(text):
        return int(text.partition(",")[0].replace(".", ""))
    if decimal != "," and _GROUPED_COMMA.fullmatch(text):
        return int(text.partition(".")[0].replace(",", ""))
    if decimal == "auto" and _GROUPED_DOT.fullmatch(text):
        raise AmbiguousNumberError(text)
    if decimal == ",":
        text = text.replace(",", ".")
    try:
        return float(text) if len(text) < 40 else math.nan
    except ValueError:
        raise ValueError("no number") from None


def with_dot(text: str, decimal: str = "auto") -> str:
    """A written number of seconds or the like with a dot for its decimals and nothing else.

    Text in which no comma and no second dot stands is returned as it is.

    Args:
        text: What the log holds, without spaces around it.
        decimal: ``.`` or ``,``: the file's decimal mark; ``auto`` where nothing tells.

    Raises:
        AmbiguousNumberError: ``1,024`` where nothing tells what the comma is.
        ValueError: The marks do not fit the file's.
    """
    if decimal == ",":
        if _COMMA_DECIMAL.fullmatch(text):
            return text.replace(".", "").replace(",", ".")
        if _SHORT_FRACTION.fullmatch(text):
            raise ValueError("no number with a decimal comma")
        return text
    if "," in text:
        if decimal == "auto" and _ONE_GROUP.fullmatch(text):
            raise AmbiguousNumberError(text)
        if _DOT_DECIMAL.fullmatch(text):
            return text.replace(",", "")
        if decimal == "." and _COMMA_DECIMAL.fullmatch(text):
            raise ValueError("no number with a decimal dot")
    elif text.count(".") < 2:
        return text
    return text.replace(".", "").replace(",", ".") if _COMMA_DECIMAL.fullmatch(text) else text


def seconds(value: Any, *, decimal: str = "auto") -> float | None:
    """A duration; ``754.5µs`` says its own unit. None where missing or unreadable.

    Args:
        value: Whatever the log holds.
        decimal: ``.`` or ``,``: the file's decimal mark; ``auto`` where nothing tells.

    Raises:
        AmbiguousNumberError: ``1,024`` where nothing tells what the comma is.
    """
    if isinstance(value, bool) or is_missing(value):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < _MOST_UNITS and math.isfinite(value) else None
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return None
    text = value.strip()
    match = _DURATION.fullmatch(text)
    try:
        number = (
            float(Decimal(with_dot(match[1], decimal)) * SECONDS[match[2]])
            if match
            else float(with_dot(text, decimal))
        )
    except AmbiguousNumberError:
        raise
    except (ValueError, ArithmeticError):  # of Decimal: 1e999999999
        return None
    return number if abs(number) < _MOST_UNITS else None


def instant(value: Any, *, decimal: str = "auto") -> Any:
    """A written time as `stamps.parse` takes it: numbers with a dot for their decimals.

    Raises:
        AmbiguousNumberError: ``1,024`` where nothing tells what the comma is.
    """
    if not isinstance(value, str):
        return raw(value)
    if is_missing(value):
        return None
    if "," not in value and decimal != "," and value.count(".") < 2:
        return value
    try:
        return with_dot(value.strip(), decimal)
    except AmbiguousNumberError:
        raise
    except ValueError:
        return UNREADABLE


def text(value: Any) -> str | None:
    """A short label; None where missing. Of a list the first; an object is no label."""
    if isinstance(value, list):
        return text(value[0]) if value else None
    if is_missing(value) or isinstance(value, Mapping):
        return None
    return str(value).strip()[:200]


def truth(value: Any) -> bool | None:
    """A yes or no; None where the value says neither."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    return False if word in _FALSE else None


def raw(value: Any) -> Any:
    """The value as it is, None where it stands for "not known"."""
    return None if is_missing(value) else value
