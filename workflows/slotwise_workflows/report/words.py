"""The report's words: one catalogue a language, and numbers put into its sentences.

A sentence names its numbers with the kind of thing each is, ``{gain:times}``, ``{share:percent}``,
``{requests:count request requests}`` (one, many; ``&`` is a space within either). `Words` turns the
number into digits and unit as the language writes them. Both catalogues hold the same keys with the
same placeholders.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from slotwise_workflows.errors import InputError
from slotwise_workflows.record import Estimate
from slotwise_workflows.report import numbers
from slotwise_workflows.report.numbers import DASH

Language = Literal["ja", "en"]
LANGUAGES: tuple[Language, ...] = ("ja", "en")
Value = float | int | str | None

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str, limit: int = 64) -> str:
    """Makes a string out of a log fit to print: one line, nothing invisible, bounded.

    Control, format (right-to-left marks among them) and unassigned characters become U+FFFD, so
    that they are seen instead of acting; what is longer than `limit` ends in an ellipsis.
    """
    shown = text[: limit + 1]
    shown = "".join("�" if unicodedata.category(c) in _INVISIBLE else c for c in shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


@dataclass(frozen=True, slots=True)
class Words:
    """One language's sentences, by dotted key."""

    language: Language
    table: Mapping[str, str]

    def __call__(self, key: str, **values: Value) -> str:
        """The sentence of `key` with its numbers in place.

        Raises:
            KeyError: The catalogue lacks the key, or the sentence a number.
        """
        return _Formatter(self).vformat(self.table[key], (), values)

    def __contains__(self, key: object) -> bool:
        return key in self.table

    def sentence(self, group: str, code: str, values: Mapping[str, Value]) -> str:
        """The sentence of a code of `recommend.codes`.

        Where a number is None and the catalogue has ``CODE_unknown``, that sentence is used.

        Raises:
            InputError: This version knows no such code, or the code came without its numbers.
        """
        key = f"{group}.{code}"
        if any(value is None for value in values.values()) and f"{key}_unknown" in self.table:
            key += "_unknown"
        try:
            return self(key, **values)
        except KeyError as missing:
            raise InputError(
                f"the report has no sentence for {group} {clean(code)!r}",
                where="result.json",
                why=f"{missing} is not known to this version",
                hint="Render it with the slotwise version in its provenance, or diagnose again",
            ) from None

    def number(self, value: Value, kind: str) -> str:
        """A number with its unit; `kind` as in the sentences' placeholders."""
        return _format(self, value, kind, {})

    def estimate(self, value: Estimate, kind: str = "times") -> str:
        """An estimate followed by its 95 % interval, at the digits the interval allows.

        Where the unit changes with the size, each of the three has its own.
        """
        every = (value.estimate, value.low, value.high)
        if len({_DIGITS[kind](own, 0)[1] for own in every}) > 1:
            mean, low, high = (self.number(own, kind) for own in every)
            return self("format.value_range", value=mean, low=low, high=high)
        bounds = {"low": value.low, "high": value.high}
        return self(
            "format.estimate",
            value=_format(self, value.estimate, kind, bounds),
            low=_format(self, value.low, f"bare_{kind}", bounds),
            high=_format(self, value.high, f"bare_{kind}", bounds),
        )


class _Formatter(string.Formatter):
    def __init__(self, words: Words) -> None:
        self._words = words
        self._values: Mapping[str, Any] = {}

    def vformat(self, template: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        self._values = kwargs
        return super().vformat(template, args, kwargs)

    def format_field(self, value: Any, format_spec: str) -> str:
        return _format(self._words, value, format_spec, self._values)

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion is not None:
            raise ValueError("sentences take no conversions")
        return value

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        del args  # sentences have named numbers only
        if not field_name.isidentifier():
            raise ValueError("sentences name plain values only")
        return kwargs[field_name], field_name


def _format(words: Words, value: Value, spec: str, beside: Mapping[str, Value]) -> str:
    if value is None:
        return DASH
    kind, *forms = spec.split(" ") if spec else ["text"]
    if isinstance(value, str):
        return clean(value, 400 if kind == "text" else 64)
    if forms:
        form = forms[0] if value == 1 else forms[1]
        return f"{numbers.count(value)} {form.replace('&', ' ')}"
    low, high = beside.get("low"), beside.get("high")
    decimals = 2
    if isinstance(low, float | int) and isinstance(high, float | int):
        decimals = numbers.interval_decimals(low, high)
    bare = kind.removeprefix("bare_")
    digits, unit = _DIGITS[bare](float(value), decimals)
    return digits if bare != kind else words.table[f"unit.{unit}"].replace("#", digits)


def _seconds(value: float, _: int) -> tuple[str, str]:
    """Milliseconds below a tenth of a second, minutes from ten on, hours from two on."""
    size = abs(value)
    if size >= 172_800:
        return numbers.significant(value / 86_400), "days"
    if size >= 7200:
        return numbers.significant(value / 3600), "hours"
    if size >= 600:
        return numbers.significant(value / 60), "minutes"
    if 0 < size < 0.1:
        return numbers.significant(value * 1000), "milliseconds"
    return numbers.significant(value), "seconds"


def _rate(value: float, _: int) -> tuple[str, str]:
    """Per second; per minute or hour where less than 0.1 a second arrive."""
    if value >= 0.1 or value == 0:
        return numbers.significant(value), "per_second"
    if value * 60 >= 0.1:
        return numbers.significant(value * 60), "per_minute"
    return numbers.significant(value * 3600), "per_hour"


_DIGITS: Mapping[str, Callable[[float, int], tuple[str, str]]] = {
    "times": lambda v, d: (numbers.times(v, d), "times"),
    "cv": lambda v, d: (numbers.times(v, d), "none"),
    "load": lambda v, d: (numbers.load(v, d), "times"),
    "percent": lambda v, _: (numbers.percent(v), "percent"),
    "points": lambda v, _: (numbers.percent(v), "points"),
    "seconds": _seconds,
    "limit": lambda v, _: (numbers.setting(v), "seconds"),
    "milliseconds": lambda v, _: (numbers.setting(v), "milliseconds"),
    "hours": lambda v, _: _seconds(3600 * v, 0),
    "factor": lambda v, _: (numbers.plain(v), "times"),
    "tokens": lambda v, _: (numbers.significant(v) if v % 1 else numbers.count(v), "tokens"),
    "rate": _rate,
    "per_second": lambda v, _: (numbers.significant(v), "per_second"),
    "count": lambda v, _: (numbers.count(v), "none"),
    "number": lambda v, _: (numbers.plain(v), "none"),
    "digits": lambda v, _: (numbers.significant(v), "none"),
    "tenths": lambda v, _: (f"{v:,.0f}" if v >= 10 or v < 0.05 else f"{v:.1f}", "none"),
    "text": lambda v, _: (numbers.plain(v), "none"),
}


@cache
def load_words(language: Language) -> Words:
    """The catalogue of one language.

    Raises:
        KeyError: There is no such language.
    """
    if language not in LANGUAGES:
        raise KeyError(language)
    text = files(__package__).joinpath("catalogue", f"{language}.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return Words(language, _flat(yaml.load(text, Loader=loader)))  # noqa: S506 - a safe loader


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat
