"""What a probe is asked for, beside how the endpoint batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slotwise_workflows.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Replayed:
    """A log to be sent again, see `plan_replay`.

    Attributes:
        traffic: Its requests.
        first: Send so many; None sends as many as the plan allows.
        busiest_s: Send the busiest stretch of so many seconds instead.
        rate_scale: How many times as fast.
        length_scale: Lengths times this.
        workers: Processes that send it, as actors of Ray where they are more than one.
        address: Of an existing Ray cluster whose machines send it.
        key_variable: Environment variable that holds the API key there.
    """

    traffic: Traffic
    first: int | None = None
    busiest_s: float | None = None
    rate_scale: float = 1.0
    length_scale: float = 1.0
    workers: int = 1
    address: str | None = None
    key_variable: str | None = None

    @property
    def spread(self) -> bool:
        """Whether others than this process send it."""
        return self.workers > 1 or self.address is not None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be found out beside how the endpoint batches.

    Attributes:
        cost: Whether to measure what an iteration costs.
        like: A log whose lengths the requests of the cost stage have; None takes the article's.
        replay: A log to be sent again.
    """

    cost: bool = True
    like: Traffic | None = None
    replay: Replayed | None = None
