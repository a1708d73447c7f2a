"""Whether requests of other batches slow a request down: then they share its engine."""

from __future__ import annotations

import math

import numpy as np

from slotwise_sim.workload import Floats, Ints
from slotwise_workflows.observe.starts import blocks
from slotwise_workflows.observe.timed import Timed

FEWEST_TOKENS = 8
FEWEST_REQUESTS = 40
STRETCHES = 8
# Less than this between quiet and busy may be the network's doing.
LEAST_SLOWING = 0.05


def shared_pace(requests: Timed) -> float:
    """How many standard errors beyond nothing others slow a request down; 0 where untold.

    The logarithm of a request's time per token is regressed on how many requests of other batches
    ran beside it (on average over its own time), on how many of its own batch did, and on the
    logarithm of its length; within stretches of time, so that a slow hour does not count. Batches
    are what started within the tolerance. Engines apart slow nobody else down, whatever batches
    they form. The error is that of clusters, the batches (Liang and Zeger, 1986).
    """
    if not requests.streamed:
        return 0.0
    found = [_columns(*block) for block in blocks(requests)]
    columns = np.concatenate([own for own, _ in found])
    if len(columns) < FEWEST_REQUESTS:
        return 0.0
    sizes = [int(batch[-1]) + 1 if len(batch) else 0 for _, batch in found]
    offsets = np.append(0, np.cumsum(sizes)[:-1])
    batch = np.concatenate([b + o for (_, b), o in zip(found, offsets, strict=True)])
    stretch = np.arange(len(columns)) * STRETCHES // len(columns)
    return _score(columns, batch, stretch)


def _columns(block: Timed, warm: int) -> tuple[Floats, Ints]:
    """Log pace, others beside, own beside, log tokens; and the batch of each, ascending."""
    first, end, tolerance = block.latest, block.end, block.tolerance
    span = end - first
    usable = (block.tokens >= FEWEST_TOKENS) & (span > 3 * tolerance)
    usable[:warm] = False
    rows = np.flatnonzero(usable)
    if not len(rows):
        return np.empty((0, 4)), np.empty(0, dtype=np.int64)
    common = np.minimum(end[rows, None], end) - np.maximum(first[rows, None], first)
    common = np.maximum(common, 0) / span[rows, None]
    own = np.abs(first[rows, None] - first) <= tolerance
    beside, mates = (common * ~own).sum(axis=1), (common * own).sum(axis=1)
    pace = np.log(span[rows] / (block.tokens[rows] - 1))
    columns = np.column_stack([pace, beside, mates, np.log(block.tokens[rows])])
    batch = np.cumsum(np.append(False, np.diff(first[rows]) > tolerance))
    return columns, batch


def _score(columns: Floats, batch: Ints, stretch: Ints) -> float:
    counts = np.bincount(stretch)
    means = np.column_stack([np.bincount(stretch, column) / counts for column in columns.T])
    within = columns - means[stretch]
    pace, others = within[:, 0], within[:, 1:]
    gram = np.linalg.pinv(others.T @ others)
    slopes = gram @ others.T @ pace
    low, high = np.percentile(columns[:, 1], (5, 95))
    if slopes[0] * (high - low) < LEAST_SLOWING:
        return 0.0
    residual = pace - others @ slopes
    scores = np.column_stack([np.bincount(batch, column) for column in (others.T * residual)])
    clusters = int(batch[-1]) + 1
    error = math.sqrt(float((gram @ (scores.T @ scores) @ gram)[0, 0]))
    small = math.sqrt(max(clusters - 4 - STRETCHES, 1) / clusters)
    return float(slopes[0] * small / max(error, 1e-12))
