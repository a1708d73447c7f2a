"""What has been sent and answered so far: the one thing that changes while a probe runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from slotwise_workflows.probe.model import Sample


@dataclass(slots=True)
class Tally:
    """Kept apart from whoever sends, so that an interrupt leaves what was there.

    Attributes:
        requests: Sent so far, answered or not.
        samples: Those that came to an end, in that order.
        on_answer: Told how many there are after each.
    """

    requests: int = 0
    samples: list[Sample] = field(default_factory=list)
    on_answer: Callable[[int], None] = lambda _answered: None

    def sending(self) -> None:
        """One more goes out."""
        self.requests += 1

    def answered(self, sample: Sample) -> None:
        """One has come to its end."""
        self.samples.append(sample)
        self.on_answer(len(self.samples))

    def sent_elsewhere(self, requests: int, samples: Sequence[Sample]) -> None:
        """What other processes sent, and what was answered of it."""
        self.requests += requests
        self.samples += samples
