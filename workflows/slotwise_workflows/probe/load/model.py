"""What is sent under load, and what became of it, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slotwise_workflows.probe.load.findings import ClientReport
from slotwise_workflows.probe.model import Sample


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


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a load.

    Attributes:
        samples: The requests that were sent, in the order of the plan.
        client: How well the client did.
        unsent: Requests of the plan that were not sent, since too many had failed or time was up.
        start_uncertainty_s: By how much the clocks of several machines may differ in the samples.
    """

    samples: Sequence[Sample]
    client: ClientReport
    unsent: int = 0
    start_uncertainty_s: float = 0.0
