"""What goes into a replay beside the requests, and what its outcome is measured by.

Workers of a sweep import this, and nothing of workload files or logs with it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slotwise_sim import Outcome, Workload
from slotwise_sim.metrics import Figures, figures
from slotwise_sim.synthetic import predicted_tokens
from slotwise_workflows.errors import ConfigError

_LEAST_S = 1e-12  # of all requests together: below, rates would leave the range of numbers
_PREDICTIONS = 3  # of the seed's streams; arrivals, outputs and prompts have the first three


def with_predictions(workload: Workload, error: float, seed: int) -> Workload:
    """The requests with what a predictor of this error says of their lengths.

    The stream of random numbers is the predictions' own and begins anew at every call: policies
    that go by predictions of the same error go by the same ones, whatever else is simulated.
    """
    stream = np.random.SeedSequence(seed, spawn_key=(_PREDICTIONS,))
    predicted = predicted_tokens(workload.output_tokens, error, np.random.default_rng(stream))
    return replace(workload, predicted_tokens=predicted)


def measure(outcome: Outcome, *, place: str = "") -> Figures:
    """The figures of an outcome.

    Args:
        outcome: What `simulate` returned.
        place: Where the cost is stated, for the error: file and line.

    Raises:
        ConfigError: No request takes any time, so there is nothing to compare.
    """
    if not outcome.busy_slot_s > _LEAST_S:
        raise ConfigError(
            "server.cost makes no request take any time",
            where=place,
            why="every term that these requests meet is 0, or as good as 0",
            hint="Raise base_ms, prefill_base_ms or per_prefill_token_ms above 0",
        )
    return figures(outcome)
