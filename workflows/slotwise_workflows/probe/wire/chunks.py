"""What one piece of an OpenAI-compatible answer says; its text is looked at and let go."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Piece:
    """What matters of a chunk or of a whole answer.

    Attributes:
        has_token: It carries a non-empty token of any channel: content, reasoning, a tool call.
        output_tokens: Tokens generated, as the server counts them; None where it does not say.
        prompt_tokens: Likewise.
        finish_reason: Why the answer ends, where it does.
        fault: The kind of an error told after HTTP 200, else None.
    """

    has_token: bool = False
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    finish_reason: str | None = None
    fault: str | None = None


def read_piece(text: str) -> Piece:
    """Reads a chunk of a stream, or a whole answer that was not streamed.

    Args:
        text: JSON, from a server nobody vouches for.

    Returns:
        The piece; with a ``fault`` where it is an error or no JSON object.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return Piece(fault="not_json")
    if not isinstance(body, dict):
        return Piece(fault="not_json")
    if body.get("error"):
        return Piece(fault="error_event")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    choice = _first_choice(body)
    reason = choice.get("finish_reason")
    return Piece(
        has_token=_has_token(choice),
        output_tokens=_count(usage.get("completion_tokens")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        finish_reason=reason[:40] if isinstance(reason, str) else None,
    )


def merge(earlier: Piece, later: Piece) -> Piece:
    """What both pieces say, the later one where both do."""

    def last(name: str) -> Any:
        value = getattr(later, name)
        return getattr(earlier, name) if value is None else value

    return Piece(
        has_token=earlier.has_token or later.has_token,
        output_tokens=last("output_tokens"),
        prompt_tokens=last("prompt_tokens"),
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
    channels = (said.get(name) for name in ("content", "reasoning_content", "reasoning"))
    texts = (choice.get("text"), *channels)
    return any(isinstance(text, str) and text for text in texts) or bool(said.get("tool_calls"))


def _count(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if whole else None  # type: ignore[return-value]


def model_names(text: str) -> list[str]:
    """The models that ``GET /models`` lists, in its order; empty if it is no such list."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return []
    listed = body.get("data") if isinstance(body, dict) else None
    entries = listed if isinstance(listed, list) else []
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and name][:1000]
