"""The requests of a simulation, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_TOKENS = 2**31 - 1
"""Of a longest prompt and a longest output together: the loops count them in 32 bits."""


@dataclass(frozen=True, slots=True)
class Workload:
    """n requests in the order they were given; arrivals need not ascend.

    Attributes:
        arrival_s: Seconds since the origin, >= 0, shape (n,).
        output_tokens: Tokens each request generates, >= 1, shape (n,).
        prompt_tokens: Tokens of each prompt, >= 0, shape (n,); zeros where unknown.
        max_tokens: The cap each request was sent with, shape (n,), or None.
        cached_tokens: Tokens of each prompt that need no prefill because a cache holds them, shape
            (n,), or None where there are none.
        predicted_tokens: What was guessed of each output length beforehand, shape (n,), or None.

    Raises:
        ValueError: Shapes differ, there is no request, or a value is out of range.
    """

    arrival_s: Floats
    output_tokens: Ints
    prompt_tokens: Ints
    max_tokens: Ints | None = None
    cached_tokens: Ints | None = None
    predicted_tokens: Floats | None = None

    def __post_init__(self) -> None:
        n = len(self.output_tokens)
        if n == 0:
            raise ValueError("a workload needs at least one request")
        columns = (getattr(self, field.name) for field in fields(self))
        if any(column is not None and column.shape != (n,) for column in columns):
            raise ValueError("all columns of a workload must have shape (n,)")
        if not (np.isfinite(self.arrival_s).all() and self.arrival_s.min() >= 0):
            raise ValueError("arrival_s must be finite and >= 0")
        if self.output_tokens.min() < 1:
            raise ValueError("output_tokens must be >= 1")
        if self.prompt_tokens.min() < 0:
            raise ValueError("prompt_tokens must be >= 0")
        most = int(self.prompt_tokens.max()) + int(self.output_tokens.max())
        if most > MOST_TOKENS:
            raise ValueError(f"prompt and output have at most {MOST_TOKENS} tokens, not {most}")
        if (
            self.cached_tokens is not None
            and not ((self.cached_tokens >= 0) & (self.cached_tokens <= self.prompt_tokens)).all()
        ):
            raise ValueError("cached_tokens must be between 0 and prompt_tokens")
        if self.predicted_tokens is not None and not np.isfinite(self.predicted_tokens).all():
            raise ValueError("predicted_tokens must be finite")

    def __len__(self) -> int:
        return len(self.output_tokens)


def at_load(workload: Workload, load: float) -> Workload:
    """The same requests arriving ``load`` times as fast; lengths and order stay.

    Raises:
        ValueError: The load is not above zero.
    """
    if not load > 0:
        raise ValueError(f"load must be > 0, got {load}")
    return replace(workload, arrival_s=workload.arrival_s / load)


def of_one_replica(workload: Workload, replicas: int) -> Workload:
    """What the first of several servers gets, round robin in order of arrival."""
    return rows_of(workload, np.argsort(workload.arrival_s, kind="stable")[::replicas])


def all_at_once(workload: Workload) -> Workload:
    """The same requests in order of arrival, all of them waiting from the start."""
    ordered = rows_of(workload, np.argsort(workload.arrival_s, kind="stable"))
    return replace(ordered, arrival_s=np.zeros(len(workload)))


def rows_of(workload: Workload, rows: slice | Ints) -> Workload:
    """Some of the requests, in the order of the rows; a slice copies nothing."""

    def picked(column: Ints | None) -> Ints | None:
        return None if column is None else column[rows]

    predicted = workload.predicted_tokens
    return Workload(
        arrival_s=workload.arrival_s[rows],
        output_tokens=workload.output_tokens[rows],
        prompt_tokens=workload.prompt_tokens[rows],
        max_tokens=picked(workload.max_tokens),
        cached_tokens=picked(workload.cached_tokens),
        predicted_tokens=None if predicted is None else predicted[rows],
    )
