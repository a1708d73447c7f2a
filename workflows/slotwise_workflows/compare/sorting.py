"""The cure for those who cannot change their engine: sort a job, so that like lengths batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slotwise_sim import Workload
from slotwise_sim.synthetic import predicted_tokens
from slotwise_sim.workload import Floats, Ints, rows_of
from slotwise_workflows.compare.server import BATCH_AT_ONCE, Server

# Standard error of a guessed length's logarithm: two of three guesses within a factor of 1.6.
GUESS_ERROR = 0.5


@dataclass(frozen=True, slots=True)
class Sorted:
    """What batches of a job gain if its requests are sorted by length first.

    Attributes:
        perfect: By the lengths themselves, which nobody knows beforehand: an upper bound.
        guessed: By guesses that are typically off by the factor `off`.
        off: That factor.
    """

    perfect: float
    guessed: float
    off: float


def sorted_by_length(job: Workload, server: Server, rng: np.random.Generator) -> Sorted:
    """What sorting gains over the order of today.

    Args:
        job: All requests, in the order in which they are batched today; they fill a batch.
        server: The stated setting.
        rng: For the guesses.
    """

    def per_s(lengths: Floats | Ints) -> float:
        by_length = rows_of(job, np.argsort(lengths, kind="stable"))
        return server.sustained_per_s(by_length, BATCH_AT_ONCE)

    today_per_s = server.sustained_per_s(job, BATCH_AT_ONCE)
    guesses = predicted_tokens(job.output_tokens, GUESS_ERROR, rng)
    return Sorted(
        perfect=per_s(job.output_tokens) / today_per_s,
        guessed=per_s(guesses) / today_per_s,
        off=math.exp(GUESS_ERROR),
    )
