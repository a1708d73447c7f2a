"""What each start says of how the server fills its slots: who joined, who waited for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slotwise_sim.workload import Bools, Floats, Ints
from slotwise_workflows.observe.blocks import blocks
from slotwise_workflows.observe.timed import Timed

# More batches at once than this are not told apart.
MOST_SERVERS = 8
# A logged end is no later than the server's by more than this share of the time since its start.
LATE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Starts:
    """What was counted, in requests.

    Attributes:
        met: Requests that came while others were there.
        joined: Of `met`, those that began while at least 1, 2, ... batches, which had begun before,
            ran on past them; ``MOST_SERVERS + 1`` counts.
        let_in: Those that joined, where all that started together count as one.
        held: Those that waited for all that ran, though there was room, counted likewise.
        beside: Of `waited`, those that ran beside the one before.
        waited: Requests that were waiting when the one before them started; 0 without first tokens.
        short: Of `batches`, those that started with well fewer than most had.
        batches: Batches; 0 without first tokens.
        filled: Of `idled`, the full ones.
        idled: Batches that waited on an idle server.
    """

    met: int
    joined: tuple[int, ...]
    let_in: int
    held: int
    beside: int
    waited: int
    short: int
    batches: int
    filled: int
    idled: int


def count_starts(requests: Timed) -> Starts:
    """Adds up what the blocks of a log show."""
    met = let_in = held = 0
    joined = np.zeros(MOST_SERVERS + 1, dtype=np.int64)
    pairs, sizes = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.int64)
    for block, warm in blocks(requests):
        joins = began_before(block)
        batches = _batches(joins, block)[warm:]
        joined += [int((batches >= least).sum()) for least in range(1, MOST_SERVERS + 2)]
        waits = _held if block.streamed else _held_by_ends
        joining = np.asarray(joins.any(axis=0))
        let_in += _occasions(block, joining, warm)
        held += _occasions(block, waits(block, joining), warm)
        met += int((_met(block) | joining)[warm:].sum())
        pairs += _beside(block)
        sizes += _full_or_short(block)
    return Starts(met, tuple(joined.tolist()), let_in, held, *pairs.tolist(), *sizes.tolist())


def _met(block: Timed) -> Bools:
    """Requests that came while others were there."""
    ended = np.searchsorted(np.sort(block.end), block.arrival, side="right")
    came = np.searchsorted(np.sort(block.arrival), block.arrival, side="right") - 1  # not itself
    return np.asarray(came > ended)


def began_before(block: Timed) -> Bools:
    """Whether i had begun before j could, and surely ran on after j had begun; shape (i, j)."""
    tolerance = block.tolerance
    return np.asarray(
        (block.latest[:, None] + tolerance < block.earliest)
        & (block.latest + tolerance < block.surely_until()[:, None])
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
    its own tokens at the pace of the batch where all are answered together. Ends may be logged
    late: who ran is taken by them, and how many ever did, and until when, by what is sure. Starts
    long before a logged end, of an answer that began before, are left out: it may have been right.
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
    left = (end - first)[:, None] * LATE_SHARE
    may_join = ((end[:, None] - first > left + tolerance) & ran).any(axis=0)
    all_done = np.where(ran, block.surely_until()[:, None], -np.inf).max(axis=0)
    return np.asarray(~joined & ~may_join & (running > 0) & (all_done - room > 3 * tolerance))


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


def _occasions(block: Timed, those: Bools, warm: int) -> int:
    """How many of some starts there are, where all that came together count as one."""
    starts = block.latest[warm:][those[warm:]]
    return int((np.diff(starts, prepend=-np.inf) > block.tolerance).sum())


def _most_at_once(block: Timed) -> int:
    ended = np.searchsorted(np.sort(block.surely_until()), block.latest + block.tolerance)
    return int((np.arange(1, len(block) + 1) - ended).max())


def _beside(block: Timed) -> tuple[int, int]:
    """Of the requests that waited when the one before started, how many ran beside it."""
    if not block.streamed:
        return 0, 0
    tolerance = block.tolerance
    long = block.end - block.latest > 3 * tolerance
    waited = (block.arrival[1:] + tolerance < block.earliest[:-1]) & long[1:] & long[:-1]
    beside = block.latest[1:] + tolerance < block.surely_until()[:-1]
    return int((waited & beside).sum()), int(waited.sum())


def _full_or_short(block: Timed) -> tuple[int, int, int, int]:
    """Short batches of all, and full ones of those that waited on an idle server.

    A batch is what begins within the tolerance of its first. The first and the last of a block are
    not counted, nor any where answers are so short that batches run into one another.
    """
    if not block.streamed or np.median(block.end - block.latest) < 10 * block.tolerance:
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
