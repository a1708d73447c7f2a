"""Whether requests that did not start together share an engine: then it batches continuously."""

from __future__ import annotations

import math

import numpy as np

from slotwise_sim.workload import Floats, Ints
from slotwise_workflows.observe.blocks import blocks
from slotwise_workflows.observe.timed import Timed

FEWEST_TOKENS = 8
FEWEST_REQUESTS = 20
STRETCHES = 8
# A request started alone where no other did within so many tolerances.
ALONE = 2
# Less than this between quiet and busy may be the network's doing.
LEAST_SLOWING = 0.15
# Where few start alone, those that seem to had a mate whose row is missing, at a busy time at that.
MOSTLY_ALONE = 0.3


def slowing(requests: Timed) -> float:
    """How many standard errors beyond nothing others slow a request down; 0 where untold.

    Of requests that started alone, the logarithm of the time per token is regressed on how many
    others ran beside (on average over the time that its tokens take at the log's pace, and they as
    long as theirs take: late ends would be in both) and on the logarithm of the length; within
    stretches of time, so that a slow hour does not count. A batch of one has its engine to itself,
    so engines apart, whatever batches they form, let nobody slow it down. The error allows for
    residuals of unlike size (HC1: MacKinnon and White, 1985).
    """
    if not requests.streamed:
        return 0.0
    found = [_columns(*block) for block in blocks(requests)]
    columns = np.concatenate([alone for alone, _ in found])
    if len(columns) < max(FEWEST_REQUESTS, MOSTLY_ALONE * sum(usable for _, usable in found)):
        return 0.0
    stretch = np.arange(len(columns)) * STRETCHES // len(columns)
    return _score(columns, stretch)


def _columns(block: Timed, warm: int) -> tuple[Floats, int]:
    """Log pace, others beside and log tokens of those that started alone, of how many in all."""
    first, end = block.latest, block.end
    span = end - first
    until = block.surely_until()
    usable = (block.tokens >= FEWEST_TOKENS) & (span > 5 * block.tolerance) & (until > first)
    usable[:warm] = False
    away = np.diff(first, prepend=-np.inf, append=np.inf) > ALONE * block.tolerance
    rows = np.flatnonzero(usable & away[1:] & away[:-1])
    common = np.minimum(until[rows, None], until) - np.maximum(first[rows, None], first)
    beside = np.maximum(common, 0).sum(axis=1) / (until - first)[rows] - 1
    pace = np.log(span[rows] / (block.tokens[rows] - 1))
    return np.column_stack([pace, beside, np.log(block.tokens[rows])]), int(usable.sum())


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
