"""What each start, and each end, says of how the server fills its slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np

from slotwise_sim.workload import Bools, Floats, Ints
from slotwise_workflows.observe.timed import Timed

# Requests are compared with one another in blocks, evenly spread over the log, so that a million of
# them take no longer than twenty thousand. Those that a block begins with are only looked at.
BLOCK = 1000
MOST_BLOCKS = 20
WARM_UP = 0.1
# More batches at once than this are one engine's: nobody runs so many servers unknown to the log.
MOST_SERVERS = 8


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted, in requests.

    Attributes:
        met: Requests that came while others were there.
        joined: Starts by how many batches that had begun before ran on past them, shape
            (MOST_SERVERS + 1,): at least 1, at least 2, ...
        held: Starts that waited for all that ran, though there was room.
        beside: Of `waited`, those that ran beside the one before.
        waited: Requests that were waiting when the one before them started; 0 without first tokens.
        paced: Of `queued`, those that ended after the one before by their own tokens' time.
        queued: Requests of unusual length that were waiting when the one before the one before them
            ended; 0 with first tokens.
        tied: Of `apart`, ends that came within the tolerance of the one before.
        apart: Consecutive ends of answers that differ in their own time.
        expected: How many of those chance ties.
        short: Of `batches`, those that started with well fewer than most had.
        batches: Batches; 0 without first tokens.
        filled: Of `idled`, the full ones.
        idled: Batches that waited on an idle server.
    """

    met: int
    joined: Ints
    held: int
    beside: int
    waited: int
    paced: int
    queued: int
    tied: int
    apart: int
    expected: float
    short: int
    batches: int
    filled: int
    idled: int


def counts(requests: Timed) -> Counts:
    """Adds up what the blocks of a log show."""
    found = [_block(block, warm) for block, warm in blocks(requests)]
    return Counts(*(sum(column) for column in zip(*map(astuple, found), strict=True)))


def blocks(requests: Timed) -> Iterator[tuple[Timed, int]]:
    """Blocks of consecutive requests, with how many of the first are only looked at."""
    n = len(requests)
    if n <= BLOCK:
        yield requests, 0
        return
    for first in np.unique(np.linspace(0, n - BLOCK, min(MOST_BLOCKS, -(-n // BLOCK)), dtype=int)):
        block = requests.rows(slice(int(first), int(first) + BLOCK))
        yield block, int(WARM_UP * BLOCK) if first else 0


def _block(block: Timed, warm: int) -> Counts:
    joins = began_before(block)
    batches = _batches(joins, block)[warm:]
    at_least = np.array([(batches >= r).sum() for r in range(1, MOST_SERVERS + 2)])
    held = (_held if block.streamed else _held_by_ends)(block, joins.any(axis=0))[warm:]
    ended = np.searchsorted(np.sort(block.end), block.arrival)
    came = np.searchsorted(np.sort(block.arrival), block.arrival)
    met = int((came > ended)[warm:].sum())
    return Counts(
        max(met, int(at_least[0])),
        at_least,
        int(held.sum()),
        *_beside(block),
        *_paced(block),
        *_ties(block),
        *_full_or_short(block),
    )


def began_before(block: Timed) -> Bools:
    """Whether i had begun before j could, and ran on after j had begun; shape (i, j)."""
    tolerance = block.tolerance
    return np.asarray(
        (block.latest[:, None] + tolerance < block.earliest)
        & (block.latest + tolerance < block.end[:, None])
    )


def _batches(joins: Bools, block: Timed) -> Ints:
    """The fewest batches that those can have been which ran on past each start, shape (n,).

    Requests of one batch started together, so the fewest batches are the fewest instants that hit
    every request's bounds: the earliest latest start not hit yet, again and again.
    """
    hit = np.full(len(block), -np.inf)
    found = np.zeros(len(block), dtype=np.int64)
    for i in np.flatnonzero(joins.any(axis=1)):  # in order of latest start
        new = joins[i] & (block.earliest[i] > hit + block.tolerance)
        hit[new] = block.latest[i]
        found += new
    return found


def _held(block: Timed, joined: Bools) -> Bools:
    """Starts that waited until all had ended that ran when they were next, though there was room.

    There was room from when fewer ran than ever did, or from when the first of them was done, by
    its own tokens at the pace of the batch where all are answered together.
    """
    tolerance, first, end = block.tolerance, block.latest, block.end
    next_in_line = np.maximum(block.arrival, np.append(-np.inf, first[:-1]))
    ran = (first[:, None] + tolerance < first) & (end[:, None] > next_in_line + tolerance)
    running = ran.sum(axis=0)
    steps = np.maximum(block.tokens - 1, 1)
    batch_pace = np.where(ran, ((end - first) / steps)[:, None], np.inf).min(axis=0)
    with np.errstate(invalid="ignore"):  # no batch, no pace
        done = np.minimum(end[:, None], first[:, None] + steps[:, None] * batch_pace)
    first_done = np.where(ran, done, np.inf).min(axis=0)
    room = np.maximum(next_in_line, first_done)
    room = np.where(running < max(2, _most_at_once(block)), next_in_line, room)
    return np.asarray(~joined & (running > 0) & (first - room > 3 * tolerance))


def _held_by_ends(block: Timed, joined: Bools) -> Bools:
    """Requests that met one other, surely running, and with time to end before it, did not."""
    arrival, end = block.arrival, block.end
    in_flight = (arrival[:, None] <= arrival) & (end[:, None] > arrival)
    np.fill_diagonal(in_flight, val=False)
    alone = in_flight & (in_flight.sum(axis=0) == 1)
    left = end[:, None] - arrival
    needs = 3 * (block.pace * block.tokens + block.tolerance)
    met = alone & (block.latest[:, None] + block.tolerance < arrival) & (left > needs)
    return np.asarray(met.any(axis=0) & ~joined)


def _most_at_once(block: Timed) -> int:
    ended = np.searchsorted(np.sort(block.end), block.latest + block.tolerance)
    return int((np.arange(1, len(block) + 1) - ended).max())


def _beside(block: Timed) -> tuple[int, int]:
    """Of the requests that waited when the one before started, how many ran beside it."""
    if not block.streamed:
        return 0, 0
    tolerance = block.tolerance
    long = block.end - block.latest > 3 * tolerance
    waited = (block.arrival[1:] + tolerance < block.earliest[:-1]) & long[1:] & long[:-1]
    beside = block.latest[1:] + tolerance < block.end[:-1]
    return int((waited & beside).sum()), int(waited.sum())


def _paced(block: Timed) -> tuple[int, int]:
    """Of queued requests, by the order of ends, those that took their own time after the one before.

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


def _ties(block: Timed) -> tuple[int, int, float]:
    """Consecutive ends of unlike answers that fall together, and how many chance lets do so.

    By chance, ends come as a Poisson process at the rate of the time around them, as long as the
    longer of the two answers: 1 - exp(-rate x tolerance) of them fall within the tolerance. The
    tolerance is several iterations, for an engine ends all that end in one of them together.
    """
    order = np.argsort(block.end, kind="stable")
    end, tokens = block.end[order], block.tokens[order]
    own = block.pace * tokens
    near = max(block.tolerance, 5 * block.pace)
    unlike = np.abs(np.diff(own)) > 3 * near
    around = np.maximum(own[1:], own[:-1])
    ends = np.searchsorted(end, end[1:] + around) - np.searchsorted(end, end[1:] - around)
    rate = np.maximum(ends - 2, 0) / np.maximum(2 * around, 1e-9)
    chance = -np.expm1(-rate * near)
    tied = np.diff(end) <= near
    return int((unlike & tied).sum()), int(unlike.sum()), float(chance[unlike].sum())


def _full_or_short(block: Timed) -> tuple[int, int, int, int]:
    """Short batches of all, and full ones of those that waited on an idle server.

    A batch is what begins within the tolerance of its first. The first and the last of a block are
    not counted.
    """
    if not block.streamed:
        return 0, 0, 0, 0
    opener = _openers(block.latest, block.tolerance)
    sizes = np.diff(np.append(opener, len(block)))
    full = sizes >= 0.75 * np.percentile(sizes, 90)
    begun = block.latest[opener]
    oldest = np.minimum.reduceat(block.arrival, opener)
    idle_from = np.append(-np.inf, np.maximum.accumulate(block.end)[opener[1:] - 1])
    waited = begun - np.maximum(idle_from, oldest) > 3 * block.tolerance
    full, waited = full[1:-1], waited[1:-1]
    return int((~full).sum()), len(full), int((full & waited).sum()), int(waited.sum())


def _openers(start: Floats, tolerance: float) -> Ints:
    after = np.searchsorted(start, start + tolerance, side="right").tolist()
    found, at = [], 0
    while at < len(start):
        found.append(at)
        at = after[at]
    return np.array(found, dtype=np.int64)
