"""How a run ended that went through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finished:
    """A run's exit code and outputs.

    Attributes:
        exit_code: 0, or 4 where the log holds too little to decide on.
        outputs: Valid against the workflow's `outputs`.
    """

    exit_code: int
    outputs: dict[str, Any]
