"""The policies and cost models, as values; `simulate` runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Release = Literal["batch", "own"]


@dataclass(frozen=True, slots=True)
class PerToken:
    """A request occupies its slot for ``ms_per_token * output_tokens``, whatever else runs."""

    ms_per_token: float

    def __post_init__(self) -> None:
        if not 0 < self.ms_per_token < float("inf"):
            raise ValueError("ms_per_token must be finite and > 0")


@dataclass(frozen=True, slots=True)
class Static:
    """Full batches in arrival order; each starts and ends together."""

    release: Release = "batch"
    pad: bool = True


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Static, but a batch may start short once its oldest member has waited ``max_delay_ms``."""

    max_delay_ms: float
    release: Release = "batch"
    pad: bool = True

    def __post_init__(self) -> None:
        if not self.max_delay_ms >= 0:
            raise ValueError("max_delay_ms must be >= 0; infinity is static batching")


@dataclass(frozen=True, slots=True)
class Continuous:
    """A free slot is refilled at once."""


Policy = Static | Dynamic | Continuous
Cost = PerToken
