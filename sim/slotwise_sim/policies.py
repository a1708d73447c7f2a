"""The policies, as values: in which order requests fill the slots. `simulate` runs them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

Release = Literal["batch", "own"]
Prefill = Literal["mixed", "separate"]


def one_of(names: Any, field: str, value: str) -> None:
    """Makes sure that an option has a name that exists; a type checker sees only what is typed.

    Raises:
        ValueError: The literal ``names`` has no such value.
    """
    if value not in get_args(names):
        raise ValueError(f"{field} must be one of {', '.join(get_args(names))}, got {value!r}")


@dataclass(frozen=True, slots=True)
class Static:
    """Full batches in arrival order; each starts and ends together."""

    release: Release = "batch"
    pad: bool = True

    def __post_init__(self) -> None:
        one_of(Release, "release", self.release)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Static, but a batch may start short once its oldest member has waited ``max_delay_ms``."""

    max_delay_ms: float
    release: Release = "batch"
    pad: bool = True

    def __post_init__(self) -> None:
        if not self.max_delay_ms >= 0:
            raise ValueError("max_delay_ms must be >= 0; infinity is static batching")
        one_of(Release, "release", self.release)


@dataclass(frozen=True, slots=True)
class Binned:
    """Dynamic within each of ``bins`` classes of predicted length: like waits for like.

    The classes hold equally many requests. Where the workload has no predictions, the lengths
    themselves are taken: an oracle.
    """

    bins: int
    max_delay_ms: float = 0.0
    release: Release = "batch"
    pad: bool = True

    def __post_init__(self) -> None:
        if self.bins < 1:
            raise ValueError(f"bins must be >= 1, got {self.bins}")
        if not self.max_delay_ms >= 0:
            raise ValueError("max_delay_ms must be >= 0; infinity waits for a full batch")
        one_of(Release, "release", self.release)


@dataclass(frozen=True, slots=True)
class Continuous:
    """A free slot is refilled at once; the options matter under a step cost only.

    Attributes:
        prefill: Prompts are prefilled beside what decodes, or in iterations of their own.
        max_batched_tokens: Most tokens of an iteration, decoded and prefilled; None is unlimited.
    """

    prefill: Prefill = "mixed"
    max_batched_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.max_batched_tokens is not None and self.max_batched_tokens < 1:
            raise ValueError(f"max_batched_tokens must be >= 1, got {self.max_batched_tokens}")
        one_of(Prefill, "prefill", self.prefill)


BatchPolicy = Static | Dynamic | Binned
Policy = BatchPolicy | Continuous


def answers_together(policy: Policy) -> bool:
    """Whether all of a batch are answered when it ends."""
    return not isinstance(policy, Continuous) and policy.release == "batch"


def fills_batches(policy: Policy) -> bool:
    """Whether a batch waits until it is full: then too little load is as bad as too much."""
    if isinstance(policy, Static):
        return True
    return not isinstance(policy, Continuous) and math.isinf(policy.max_delay_ms)
