"""What is sent under load, and what became of it, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slotwise_sim.workload import Floats
from slotwise_workflows.probe.findings import ClientReport
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
class Schedule:
    """Requests and the instants at which they are due; see `open_loop`.

    Attributes:
        requests: n requests.
        at_s: Seconds after the start, shape (n,), in any order.
    """

    requests: Sequence[Planned]
    at_s: Floats

    def __len__(self) -> int:
        return len(self.requests)


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
