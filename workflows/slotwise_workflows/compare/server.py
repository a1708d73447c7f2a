"""One server setting and what each policy does with a workload on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from slotwise_sim import Continuous, Dynamic, Outcome, PerToken, Policy, Static, Workload, simulate
from slotwise_workflows.facts import Facts, Range

BATCH_AT_ONCE = "dynamic"
"""The baseline: the strongest batch-at-once server the client could have."""


@dataclass(frozen=True, slots=True)
class Server:
    """Slots of one replica, replicas, milliseconds a token takes, and today's batching delay."""

    slots: int
    replicas: int
    ms_per_token: float
    max_delay_ms: float

    def policies(self) -> dict[str, Policy]:
        """The baseline, the article's full-wait batching, and continuous batching."""
        return {
            "static": Static(),
            BATCH_AT_ONCE: Dynamic(self.max_delay_ms),
            "continuous": Continuous(),
        }

    def run(self, workload: Workload, policy: str) -> Outcome:
        """Serves a workload under one policy; `serial` is one request at a time."""
        slots = 1 if policy == "serial" else self.slots
        chosen = Continuous() if policy == "serial" else self.policies()[policy]
        cost = PerToken(self.ms_per_token)
        return simulate(workload, chosen, cost, slots=slots, replicas=self.replicas)

    def mean_latency_s(self, workload: Workload, policy: str) -> float:
        """Mean time from arrival to the whole answer, in seconds."""
        outcome = self.run(workload, policy)
        return float((outcome.end_s - outcome.arrival_s).mean())


def stated_server(facts: Facts) -> Server:
    """The setting that figures are stated at: what is known, or the middle of what is assumed."""
    return Server(
        slots=int(facts.slots.value),
        replicas=facts.replicas.value or 1,
        ms_per_token=facts.ms_per_token.value,
        max_delay_ms=facts.max_delay_ms.value,
    )


def possible_servers(facts: Facts) -> Iterator[Server]:
    """The corners of what is assumed: every end of the slots with every end of the pace."""
    stated = stated_server(facts)
    for slots in _ends(facts.slots):
        for ms_per_token in _ends(facts.ms_per_token):
            yield replace(stated, slots=int(slots), ms_per_token=ms_per_token)


def _ends(span: Range) -> tuple[float, ...]:
    return (span.value,) if span.exact else (span.low, span.high)
