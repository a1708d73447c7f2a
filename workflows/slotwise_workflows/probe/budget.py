"""How much of a plan is left."""

from __future__ import annotations

from collections.abc import Sequence

from slotwise_workflows.probe.model import Plan, Sample
from slotwise_workflows.record import Record


class Budget(Record):
    """What may be sent at most, and how long it may take."""

    requests: int = 160
    output_tokens: int = 16_384
    seconds: float = 120.0

    @classmethod
    def of(cls, plan: Plan) -> Budget:
        """All of a plan."""
        return cls(requests=plan.requests, output_tokens=plan.output_tokens, seconds=plan.seconds)

    def less(self, requests: int, samples: Sequence[Sample], seconds: float) -> Budget:
        """What is left after so many requests, with these answers, in so many seconds.

        An answer longer than was asked for counts in full.
        """
        tokens = sum(max(own.asked_tokens, own.output_tokens or 0) for own in samples)
        return Budget(
            requests=max(0, self.requests - requests),
            output_tokens=max(0, self.output_tokens - tokens),
            seconds=max(0.0, self.seconds - seconds),
        )

    def at_most(self, other: Budget) -> Budget:
        """The smaller of both, in each respect."""
        return Budget(
            requests=min(self.requests, other.requests),
            output_tokens=min(self.output_tokens, other.output_tokens),
            seconds=min(self.seconds, other.seconds),
        )


LOOKING = Budget(requests=128, output_tokens=32_768, seconds=300.0)
MEASURING = Budget()
"""What finding out how it batches takes as a rule, and what an iteration costs at most.

A plan that allows more than both gives what is beyond to the first; a replay has what is left.
"""


def for_looking(plan: Plan, *, alone: bool) -> Plan:
    """The part of a plan for finding out how it batches; that comes first.

    Args:
        plan: Of the whole probe.
        alone: Whether nothing comes after it: then it may use all.
    """
    if alone:
        return plan
    whole = Budget.of(plan)
    beyond = whole.less(MEASURING.requests, [], MEASURING.seconds)
    usual = whole.at_most(LOOKING)
    return plan.model_copy(
        update={
            "requests": max(usual.requests, beyond.requests),
            "output_tokens": max(
                usual.output_tokens, whole.output_tokens - MEASURING.output_tokens
            ),
            "seconds": max(usual.seconds, beyond.seconds),
        }
    )
