"""What the ends say of how the server fills its slots: who ended together, who one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slotwise_workflows.observe.blocks import blocks
from slotwise_workflows.observe.timed import Timed

AROUND = 50
UNLIKE_TOKENS = 50


@dataclass(frozen=True, slots=True)
class Ends:
    """What was counted, in requests.

    Attributes:
        tied: Of `apart`, ends that came within the tolerance of the one before.
        apart: Ends next to that of an answer of another own time, to a request of another time.
        expected: How many of those chance ties.
        paced: Of `queued`, those that ended after the one before by their own tokens' time.
        queued: Requests that were waiting when the one before the one before them ended; 0 with
            first tokens.
    """

    tied: int
    apart: int
    expected: float
    paced: int
    queued: int


def count_ends(requests: Timed) -> Ends:
    """Adds up what the blocks of a log show."""
    tied = apart = paced = queued = 0
    expected = 0.0
    for block, _ in blocks(requests):
        own_tied, own_apart, own_expected = _ties(block)
        own_paced, own_queued = _paced(block)
        tied, apart, expected = tied + own_tied, apart + own_apart, expected + own_expected
        paced, queued = paced + own_paced, queued + own_queued
    return Ends(tied, apart, expected, paced, queued)


def _ties(block: Timed) -> tuple[int, int, float]:
    """Consecutive ends of unlike answers that fall together, and how many chance lets do so.

    Requests that were sent together do not count: their client may have waited for them together.

    By chance, ends come as a Poisson process at the rate of the time around them, as long as the
    longer of the two answers: 1 - exp(-rate x tolerance) of them fall within the tolerance. The
    tolerance is several iterations, for an engine ends all that end in one of them together. A log
    that does not show the pace is of a busy server: there lengths are unlike where they would be at
    a fast one, and the time around is that of `AROUND` ends before and after.
    """
    order = np.argsort(block.end, kind="stable")
    end, arrival, tokens = block.end[order], block.arrival[order], block.tokens[order]
    near = max(block.tolerance, 5 * block.pace)
    longer, shorter = np.maximum(tokens[1:], tokens[:-1]), np.minimum(tokens[1:], tokens[:-1])
    if block.pace:
        unlike = block.pace * (longer - shorter) > 3 * near
        around = block.pace * longer
        ends = np.searchsorted(end, end[1:] + around) - np.searchsorted(end, end[1:] - around)
    else:
        unlike = longer - shorter > np.maximum(UNLIKE_TOKENS, longer / 2)
        at = np.arange(1, len(end))
        first, last = np.maximum(at - AROUND, 0), np.minimum(at + AROUND, len(end) - 1)
        ends, around = last - first, (end[last] - end[first]) / 2
    unlike &= np.abs(np.diff(arrival)) > near
    rate = np.maximum(ends - 2, 0) / np.maximum(2 * around, 1e-9)
    chance = -np.expm1(-rate * near)
    tied = np.diff(end) <= near
    return int((unlike & tied).sum()), int(unlike.sum()), float(chance[unlike].sum())


def _paced(block: Timed) -> tuple[int, int]:
    """Of queued requests, in order of their ends, those that took their own time after the last.

    One server that takes one request at a time leaves a gap of each request's own time. Where the
    log does not show the pace, that of the gaps is taken, and lengths near the usual one, for which
    even gaps would do, tell nothing.
    """
    if block.streamed:
        return 0, 0
    order = np.lexsort((block.arrival, block.end))
    arrival, end, tokens = block.arrival[order], block.end[order], block.tokens[order]
    before = end[:-2] - block.tolerance
    gap, tokens = np.diff(end)[1:], tokens[2:]
    queued = (arrival[1:-1] < before) & (arrival[2:] < before)
    pace = block.pace
    if not pace and queued.any():
        pace = float(np.median((gap / tokens)[queued]))
        queued &= np.abs(np.log(tokens / np.median(tokens))) > 0.25
    own = pace * tokens
    queued &= own > 10 * block.tolerance
    paced = np.abs(gap - own) <= block.tolerance + 0.05 * own
    return int((queued & paced).sum()), int(queued.sum())
