"""The commented workload file that `config init` writes, its interview and its hearing sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import yaml

from slotwise_workflows.given import MOST_SLOTS

Language = Literal["ja", "en"]
Kind = Literal["count", "duration", "amount", "words"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the interview; its answer fills the template's line of ``key``."""

    key: str
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Interview:
    """The interview in one language."""

    intro: str
    questions: tuple[Question, ...]
    unknown: frozenset[str]
    again: Mapping[Kind, str]

    def parse(self, question: Question, answer: str) -> str | None:
        """The answer as the template takes it, or None for "I don't know" in any wording.

        Raises:
            ValueError: It is not the kind of value asked for; the message asks again.
        """
        answer = " ".join(answer.split())
        if answer.rstrip(".。").casefold() in self.unknown:
            return None
        if question.kind == "words":
            return answer
        try:
            value = float(answer.replace(",", ""))
        except ValueError:
            raise ValueError(self.again[question.kind]) from None
        right = (
            math.isfinite(value)
            and {
                "count": 1 <= value <= MOST_SLOTS and value == round(value),
                "duration": value >= 0,
                "amount": value > 0,
            }[question.kind]
        )
        if not right:
            raise ValueError(self.again[question.kind])
        return str(int(value)) if value == round(value) else repr(value)


def interview(language: Language) -> Interview:
    """The questions about engine, slots, replicas, delay, objective and price."""
    texts = _interview_texts()
    return Interview(
        intro=texts["intro"][language],
        questions=tuple(Question(q["key"], q["kind"], q[language]) for q in texts["questions"]),
        unknown=frozenset(texts["unknown"]),
        again={
            kind: texts["again"][language].format(want=want[language])
            for kind, want in texts["want"].items()
        },
    )


def template(language: Language, answers: Mapping[str, str | None] | None = None) -> str:
    """The commented workload file, with the interview's answers filled in.

    Args:
        language: Of the comments and of the report.
        answers: By key of the question, as `Interview.parse` gives them; None or a missing key
            leaves the line off, so that the figure is estimated or carried as a range.
    """
    text = _text(f"workload.{language}.yaml")
    told = {key: value for key, value in (answers or {}).items() if value is not None}
    engine = told.pop("engine", None)
    if engine is not None:
        text = _with_engine(text, engine)
    if "max_delay_ms" in told:
        delay = f"{{max_delay_ms: {told.pop('max_delay_ms')}}}"
        text = _switch_on(text, "- dynamic", delay)
    for key, value in told.items():
        text = _switch_on(text, key, value)
    return text


def hearing_sheet(language: Language) -> str:
    """The printable questions for a client, as Markdown."""
    return _text(f"hearing_sheet.{language}.md")


def _switch_on(text: str, key: str, value: str) -> str:
    """Turns the commented line of ``key`` on with another value; its comment stays."""
    line = re.compile(rf"^( *)# {re.escape(key)}: [^#\n]*?( *#.*)?$", re.MULTILINE)
    changed, count = line.subn(
        lambda match: f"{match[1]}{key}: {value}{'  ' + match[2].strip() if match[2] else ''}",
        text,
    )
    if count != 1:
        raise ValueError(f"the template has {count} lines of {key!r}")
    return changed


def _with_engine(text: str, engine: str) -> str:
    """Notes the engine as told, and who runs it where the name says so."""
    texts = _interview_texts()
    name = engine.casefold()
    for serving in ("self_hosted", "managed"):  # "vLLM, OpenAI compatible" is one's own
        if any(re.search(rf"(?<!\w){re.escape(w)}", name) for w in texts[serving]):
            told = "managed_api" if serving == "managed" else serving
            text = _switch_on(text, "serving", told)
            break
    # A comment ends with its line, so nothing that was typed can become a key.
    printable = "".join(c for c in engine if c.isprintable())[:120]
    return text.replace("\nserver:\n", f"\nserver:\n  # engine: {printable}\n", 1)


def _interview_texts() -> dict[str, Any]:
    texts = yaml.safe_load(_text("interview.yaml"))
    if not isinstance(texts, dict):
        raise TypeError("interview.yaml is a mapping")
    return texts


def _text(name: str) -> str:
    place = resources.files("slotwise_workflows.config") / "templates" / name
    return place.read_text(encoding="utf-8")
