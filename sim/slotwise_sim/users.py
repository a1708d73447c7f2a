"""What ties requests to one another: users who wait for answers, and a balancer that counts them.

Without users, requests arrive when they arrive: an open loop. Users close it, because one of them
sends nothing while an answer is awaited. A slow server is then sent less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from slotwise_sim.workload import Floats

Balancer = Literal["round_robin", "least_busy"]
"""Which replica an arriving request is sent to: the next one, or the one with the fewest requests
in flight (sent to it and not answered yet); of several, the next of those."""


@dataclass(frozen=True, slots=True)
class Users:
    """A closed loop: so many users share one list of requests, each awaiting an answer.

    The list is the workload in order of arrival; its instants of arrival are not used. A user who
    has read an answer takes the next request of the list, thinks, and sends it.

    Attributes:
        count: Users, >= 1; each begins with one request, if there are enough.
        think_s: Seconds thought before each request is sent, finite and >= 0, in the order of the
            list, shape (n,).

    Raises:
        ValueError: ``count`` is below 1, or a time is out of range.
    """

    count: int
    think_s: Floats

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"users must be >= 1, got {self.count}")
        if not (np.isfinite(self.think_s).all() and (self.think_s >= 0).all()):
            raise ValueError("think_s must be finite and >= 0")
