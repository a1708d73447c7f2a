"""What a pipeline tells while it works; a console and a host's events file both listen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step begins; its id is the one in the workflow's definition."""

    step: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a step is, in units of its own (bytes read, replications run)."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file is complete and in its place."""

    step: str
    path: Path


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step is done."""

    step: str


Event: TypeAlias = StepStarted | Progress | Artifact | StepFinished
OnEvent: TypeAlias = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Listen to nothing."""
