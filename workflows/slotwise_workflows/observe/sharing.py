"""Whether requests that did not start together share an engine: then it batches continuously."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slotwise_sim.workload import Floats, Ints
from slotwise_workflows.observe.blocks import blocks
from slotwise_workflows.observe.timed import Timed

FEWEST_TOKENS = 8
FEWEST_REQUESTS = 20
STRETCHES = 8
# A request started alone where no other did within so many tolerances.
ALONE = 2
# Parts of an iteration: what is no time, and what is surely less than one.
AT_ONCE, LESS_THAN_ONE = 0.2, 0.8
BY_CHANCE = AT_ONCE / LESS_THAN_ONE
# Less than this between quiet and busy may be the network's doing.
LEAST_SLOWING = 0.1


@dataclass(frozen=True, slots=True)
class Shared:
    """What tells one engine from several, among requests that started apart.

    Attributes:
        at_once: Of `within`, ends that came at one instant.
        within: Consecutive ends less than an iteration apart.
        slowing: By how many standard errors others slow a request down.
    """

    at_once: int
    within: int
    slowing: float


def shared(requests: Timed) -> Shared:
    """Looks for both signs of one engine; they need first tokens."""
    if not requests.streamed:
        return Shared(0, 0, 0.0)
    return Shared(*_in_step(requests), _slowing(requests))


def _in_step(requests: Timed) -> tuple[int, int]:
    """Of consecutive ends within an iteration, started apart, those that came at one instant.

    An engine ends whatever ends in one iteration at its end, so that of two ends that are less than
    an iteration apart nearly all are no time apart; of engines apart `BY_CHANCE` are, for those
    within `LESS_THAN_ONE` of an iteration. An iteration is taken to last as long as a token takes.

    Returns:
        How many came at one instant, and of how many; nothing where the clock is too coarse.
    """
    step = requests.pace
    if requests.resolution > step * AT_ONCE / 2:
        return 0, 0
    order = np.argsort(requests.end, kind="stable")
    end, first = requests.end[order], requests.latest[order]
    gap = np.diff(end)[np.abs(np.diff(first)) > ALONE * requests.tolerance]
    return int((gap < AT_ONCE * step).sum()), int((gap < LESS_THAN_ONE * step).sum())


def _slowing(requests: Timed) -> float:
    """How many standard errors beyond nothing others slow a request down; 0 where untold.

    Of requests that started alone, the logarithm of the time per token is regressed on how many
    others ran beside (on average over their own time) and on the logarithm of the length; within
    stretches of time, so that a slow hour does not count. A batch of one has its engine to itself,
    so engines apart, whatever batches they form, let nobody slow it down. The error allows for
    residuals of unlike size (HC1: MacKinnon and White, 1985).
    """
    columns = np.concatenate([_columns(*block) for block in blocks(requests)])
    if len(columns) < FEWEST_REQUESTS:
        return 0.0
    stretch = np.arange(len(columns)) * STRETCHES // len(columns)
    return _score(columns, stretch)


def _columns(block: Timed, warm: int) -> Floats:
    """Log pace, others beside and log tokens of the requests that started alone."""
    first, end = block.latest, block.end
    span = end - first
    away = np.diff(first, prepend=-np.inf, append=np.inf) > ALONE * block.tolerance
    usable = away[1:] & away[:-1] & (block.tokens >= FEWEST_TOKENS) & (span > 5 * block.tolerance)
    usable[:warm] = False
    rows = np.flatnonzero(usable)
    common = np.minimum(end[rows, None], end) - np.maximum(first[rows, None], first)
    beside = np.maximum(common, 0).sum(axis=1) / span[rows] - 1
    pace = np.log(span[rows] / (block.tokens[rows] - 1))
    return np.column_stack([pace, beside, np.log(block.tokens[rows])])


def _score(columns: Floats, stretch: Ints) -> float:
    counts = np.bincount(stretch)
    means = np.column_stack([np.bincount(stretch, column) / counts for column in columns.T])
    within = columns - means[stretch]
    pace, others = within[:, 0], within[:, 1:]
    gram = np.linalg.pinv(others.T @ others)
    slopes = gram @ others.T @ pace
    low, high = np.percentile(columns[:, 1], (5, 95))
    if slopes[0] * (high - low) < LEAST_SLOWING:
        return 0.0
    scores = others * (pace - others @ slopes)[:, None]
    free = max(len(columns) - len(counts) - others.shape[1], 1)
    variance = (gram @ (scores.T @ scores) @ gram)[0, 0] * len(columns) / free
    return float(slopes[0] / max(math.sqrt(variance), 1e-12))
