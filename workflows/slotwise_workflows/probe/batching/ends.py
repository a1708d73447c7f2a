"""What the ends of answers tell alone, where tokens are not seen as they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slotwise_workflows.probe.model import Release

FITS_TO = 0.08
"""Residual of the ends, over their mean distance from the long one's end, that is a fit."""
WORSE_FROM = 2.5
"""How many times as large the residual of any other explanation must be."""
_START_FROM = -0.1
_START_TO = 0.4

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ends:
    """What explains the ends of requests that all waited.

    Attributes:
        size: How many ran at once; 1 by turn; as many as there are means at least so many.
        release: Where several ran: how they ended.
        residual: Root mean square, over the mean distance from the end that they waited for; 1 at
            most.
        others: The smallest residual of an explanation of another kind.
    """

    size: int
    release: Release | None
    residual: float
    others: float

    @property
    def clear(self) -> bool:
        """Whether it fits, and nothing else does."""
        return self.residual <= FITS_TO and self.others >= max(WORSE_FROM * self.residual, FITS_TO)


def explain_ends(after_s: Sequence[float], tokens: Sequence[int]) -> Ends:
    """Which way of running explains when requests ended that had all waited for another.

    For each number at once and each way of ending, when each would end is a number of steps: the
    steps of the batches before its own, each as many as its longest member has, and then its own,
    or its batch's. Ends that are a line over these steps fit.

    Args:
        after_s: Each request's end, in seconds after the end of the one that all waited for, in
            the order sent.
        tokens: Their tokens, likewise.

    Returns:
        The explanation with the smallest residual.
    """
    ends = np.asarray(after_s, np.float64)
    found: list[tuple[float, int, Release | None]] = [(_residual(ends, _steps(tokens, 1)), 1, None)]
    for size in range(2, len(tokens) + 1):
        found.append((_residual(ends, _steps(tokens, size)), size, "own"))
        found.append((_residual(ends, _steps(tokens, size, whole=True)), size, "batch"))
    # Served the shortest first, by turn, they end in the order of their lengths.
    order = np.argsort(ends, kind="stable")
    by_end = [tokens[index] for index in order]
    found.append((_residual(ends[order], _steps(by_end, 1)), 1, None))
    best = min(found, key=lambda one: one[0])
    kind = _kind(best[1], best[2])
    others = [rest for rest, size, release in found if _kind(size, release) != kind]
    return Ends(best[1], best[2], best[0], min(others))


def _kind(size: int, release: Release | None) -> str:
    return release if size > 1 and release is not None else "turns"


def _steps(tokens: Sequence[int], size: int, *, whole: bool = False) -> Floats:
    steps: list[int] = []
    before = 0
    for start in range(0, len(tokens), size):
        batch = tokens[start : start + size]
        longest = max(batch)
        steps += [before + (longest if whole else own) for own in batch]
        before += longest
    return np.asarray(steps, np.float64)


def _residual(ends: Floats, steps: Floats) -> float:
    """Of the best line over the steps, over the mean.

    The line may begin a little after the end that all waited for, since a prompt has to be read;
    one that begins late and hardly rises would fit any ends that come together.
    """
    mean = float(ends.mean())
    if mean <= 0:
        return 1.0
    spread = steps - steps.mean()
    square = float(spread @ spread)
    slope = float(spread @ ends) / square if square > 0 else mean / float(steps.mean())
    start = min(max(mean - slope * float(steps.mean()), _START_FROM * mean), _START_TO * mean)
    slope = max(0.0, float(steps @ (ends - start)) / float(steps @ steps))
    rest = ends - start - slope * steps
    return min(1.0, float(np.sqrt(np.mean(rest**2))) / mean)
