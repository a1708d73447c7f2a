"""What one piece of an OpenAI-compatible answer says; its text is looked at and let go."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

DONE = "[DONE]"
_CHANNELS = ("content", "reasoning_content", "reasoning", "refusal")
_FAILED = frozenset({"error", "abort"})
_LONGEST_NAME = 300
_REASON = re.compile("[A-Za-z_]{1,24}")
"""A word, and not whatever a server might write there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What matters of a chunk or of a whole answer.

    Attributes:
        has_token: It carries a non-empty token of any channel: content, reasoning, a tool call.
        output_tokens: Tokens generated, as the server counts them; None where it does not say.
        prompt_tokens: Likewise.
        cached_tokens: Prompt tokens it had cached, likewise.
        finish_reason: Why the answer ends, where it does.
        fault: The kind of an error told after HTTP 200, else None.
    """

    has_token: bool = False
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    fault: str | None = None


def read_piece(text: str) -> Piece:
    """Reads a chunk of a stream, or a whole answer that was not streamed.

    Args:
        text: JSON, from a server nobody vouches for.

    Returns:
        The piece; with a ``fault`` where it is an error or no JSON object.
    """
    body = read_json(text)
    if not isinstance(body, dict):
        return Piece(fault="ndjson" if _is_first_of_lines(text) else "not_json")
    if body.get("error") or body.get("object") == "error":
        return Piece(fault="error_event")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    choice = _first_choice(body)
    reason = choice.get("finish_reason")
    if not isinstance(reason, str):
        reason = None
    elif not _REASON.fullmatch(reason):
        reason = "other"
    return Piece(
        has_token=_has_token(choice),
        output_tokens=_count(usage.get("completion_tokens")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
        finish_reason=reason,
        fault="error_event" if reason in _FAILED else None,
    )


def read_json(text: str) -> Any:
    """The value that a server's text holds; None where it is no JSON, or nested too deep."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def merge(earlier: Piece, later: Piece) -> Piece:
    """What both pieces say, the later one where both do."""

    def last(name: str) -> Any:
        value = getattr(later, name)
        return getattr(earlier, name) if value is None else value

    return Piece(
        has_token=earlier.has_token or later.has_token,
        output_tokens=last("output_tokens"),
        prompt_tokens=last("prompt_tokens"),
        cached_tokens=last("cached_tokens"),
        finish_reason=last("finish_reason"),
        fault=earlier.fault or later.fault,
    )


def _first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """``choices: []`` is what the chunk with the usage holds."""
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _has_token(choice: dict[str, Any]) -> bool:
    said = choice.get("delta") or choice.get("message")
    said = said if isinstance(said, dict) else {}
    if said.get("tool_calls") or said.get("function_call"):
        return True
    return any(map(_has_text, (choice.get("text"), *(said.get(name) for name in _CHANNELS))))


def _has_text(value: object) -> bool:
    """Content is a text, or a list of parts that hold texts."""
    if isinstance(value, list):
        return any(isinstance(part, dict) and any(map(_is_text, part.values())) for part in value)
    return _is_text(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_first_of_lines(text: str) -> bool:
    """Several lines of which the first alone is an object: a stream, but not of events."""
    first, newline, _rest = text.strip().partition("\n")
    return newline != "" and isinstance(read_json(first), dict)


def _count(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if whole else None  # type: ignore[return-value]


def model_cards(body: object) -> list[dict[str, Any]]:
    """The entries of a list of models that have a name fit to be shown; empty if it is none."""
    listed = body.get("data") if isinstance(body, dict) else None
    entries = listed if isinstance(listed, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and _is_name(entry.get("id"))][
        :1000
    ]


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable()
