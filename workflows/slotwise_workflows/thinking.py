"""How long the users of a closed loop think between an answer and their next request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slotwise_sim.synthetic import exponential_times
from slotwise_sim.users import Users

_THINKING = 4  # of the seed's streams; arrivals, lengths and predictions have those before


@dataclass(frozen=True, slots=True)
class Thinking:
    """The time before each request.

    Attributes:
        mean_s: Seconds, >= 0.
        exponential: Whether it is drawn; else it is always the same.
    """

    mean_s: float = 0.0
    exponential: bool = False

    def users(self, count: int, requests: int, seed: int) -> Users:
        """So many users who think like this.

        Args:
            count: How many take turns, >= 1.
            requests: How many requests they send in all.
            seed: Of the draws.
        """
        if not self.exponential:
            return Users(count, np.full(requests, self.mean_s))
        stream = np.random.SeedSequence(seed, spawn_key=(_THINKING,))
        return Users(count, exponential_times(requests, self.mean_s, np.random.default_rng(stream)))
