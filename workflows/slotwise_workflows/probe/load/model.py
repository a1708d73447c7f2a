"""What is sent under load, and how well the client kept to it, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import Field

from slotwise_workflows.probe.model import Sample
from slotwise_workflows.record import Record


@dataclass(frozen=True, slots=True)
class Planned:
    """A request that is to be sent.

    Attributes:
        name: Its name in the results.
        tokens: The ``max_tokens`` it is sent with.
        prompt: A generated prompt.
        trial: From 1 within its stage.
    """

    name: str
    tokens: int
    prompt: str = field(repr=False)
    trial: int = 1


class Delays(Record):
    """Percentiles of a time, in seconds; observed values, never interpolated."""

    p50: float
    p95: float
    p99: float
    max: float


class ClientReport(Record):
    """How well the client itself did; what it measures is worth no more than that."""

    requests: int = Field(description="sent")
    dispatch_delay_s: Delays | None = Field(
        description="sent less due: by the schedule, or after a user's own last answer and thought"
    )
    loop_lag_s: Delays | None = Field(description="how late the client's own timer went off")
    busy_share: float = Field(
        description="processor time of the client's process over the time that passed; it may pass "
        "1 where threads run, and holds what is spent on waiting exactly"
    )
    most_in_flight: int = Field(description="requests unanswered at once")
    held_back: int = Field(description="how often the next request had to wait for max_in_flight")
    bottleneck: list[str] = Field(
        description="why the client was the bottleneck: dispatch_delay, loop_lag, max_in_flight; "
        "empty where it was not"
    )

    @property
    def client_bottleneck(self) -> bool:
        """Whether what was measured is the client's doing in part."""
        return bool(self.bottleneck)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a load.

    Attributes:
        samples: The requests that were sent, in the order of the plan.
        client: How well the client did.
        unsent: Requests of the plan that were not sent, since too many had failed or time was up.
    """

    samples: Sequence[Sample]
    client: ClientReport
    unsent: int = 0
