"""The requests of a simulation, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Workload:
    """n requests in the order they were given; arrivals need not ascend.

    Attributes:
        arrival_s: Seconds since the origin, >= 0, shape (n,).
        output_tokens: Tokens each request generates, >= 1, shape (n,).
        prompt_tokens: Tokens of each prompt, >= 0, shape (n,); zeros where unknown.
        max_tokens: The cap each request was sent with, shape (n,), or None.

    Raises:
        ValueError: Shapes differ, there is no request, or a value is out of range.
    """

    arrival_s: Floats
    output_tokens: Ints
    prompt_tokens: Ints
    max_tokens: Ints | None = None

    def __post_init__(self) -> None:
        n = len(self.output_tokens)
        if n == 0:
            raise ValueError("a workload needs at least one request")
        columns = [self.arrival_s, self.output_tokens, self.prompt_tokens]
        if self.max_tokens is not None:
            columns.append(self.max_tokens)
        if any(column.shape != (n,) for column in columns):
            raise ValueError("all columns of a workload must have shape (n,)")
        if not (np.isfinite(self.arrival_s).all() and self.arrival_s.min() >= 0):
            raise ValueError("arrival_s must be finite and >= 0")
        if self.output_tokens.min() < 1:
            raise ValueError("output_tokens must be >= 1")
        if self.prompt_tokens.min() < 0:
            raise ValueError("prompt_tokens must be >= 0")

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
    return _rows(workload, np.argsort(workload.arrival_s, kind="stable")[::replicas])


def all_at_once(workload: Workload) -> Workload:
    """The same requests in order of arrival, all of them waiting from the start."""
    ordered = _rows(workload, np.argsort(workload.arrival_s, kind="stable"))
    return replace(ordered, arrival_s=np.zeros(len(workload)))


def _rows(workload: Workload, rows: Ints) -> Workload:
    return Workload(
        workload.arrival_s[rows],
        workload.output_tokens[rows],
        workload.prompt_tokens[rows],
        None if workload.max_tokens is None else workload.max_tokens[rows],
    )
