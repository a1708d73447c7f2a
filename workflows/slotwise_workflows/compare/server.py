"""One server setting and what each policy does with a workload on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from slotwise_sim import (
    Balancer,
    Continuous,
    Cost,
    Dynamic,
    Memory,
    Outcome,
    PerToken,
    Policy,
    Static,
    Workload,
    simulate,
)
from slotwise_sim.backlog import Backlog, backlog
from slotwise_sim.policies import Release
from slotwise_workflows.compare.sustained import sustained_per_s
from slotwise_workflows.facts import Facts, Range
from slotwise_workflows.given import Given

BATCH_AT_ONCE = "dynamic"
"""The baseline: the strongest batch-at-once server the client could have."""

COMPARED = (BATCH_AT_ONCE, "continuous")

BESIDE_DECODING = Continuous(prefill="mixed", max_batched_tokens=None)


@dataclass(frozen=True, slots=True)
class Server:
    """A setting.

    Attributes:
        slots: Of one replica.
        replicas: Servers of this kind.
        balancer: How requests are spread over them.
        cost: How long tokens or iterations take.
        max_delay_ms: How long today's server lets a short batch wait.
        memory: KV memory of one replica; it limits continuous batching, under a step cost.
        release: When a batch's answers go out.
        pad: Whether prompts of a batch are padded to its longest, and finished sequences cost until
            it ends.
        continuous: How continuous batching prefills.
    """

    slots: int
    replicas: int
    cost: Cost
    max_delay_ms: float
    balancer: Balancer = "round_robin"
    memory: Memory | None = None
    release: Release = "batch"
    pad: bool = True
    continuous: Continuous = BESIDE_DECODING

    def policies(self) -> dict[str, Policy]:
        """The baseline, the article's full-wait batching, and continuous batching."""
        return {
            "static": Static(self.release, self.pad),
            BATCH_AT_ONCE: Dynamic(self.max_delay_ms, self.release, self.pad),
            "continuous": self.continuous,
        }

    def run(self, workload: Workload, policy: str) -> Outcome:
        """Serves a workload under one policy; `serial` is one request at a time."""
        at, chosen = self._set_to(policy)
        return simulate(
            workload,
            chosen,
            at.cost,
            slots=at.slots,
            replicas=at.replicas,
            balancer=at.balancer,
            memory=at.memory,
        )

    def mean_latency_s(self, workload: Workload, policy: str) -> float:
        """Mean time from arrival to the whole answer, in seconds."""
        outcome = self.run(workload, policy)
        return float((outcome.end_s - outcome.arrival_s).mean())

    def backlog(self, served: Workload, policy: str) -> Backlog:
        """What requests take of one replica that always has work, in the order it serves them."""
        at, chosen = self._set_to(policy)
        return backlog(served, chosen, at.cost, slots=at.slots, memory=at.memory)

    def sustained_per_s(self, workload: Workload, policy: str) -> float:
        """Requests per second that all replicas sustain, batched in the order of the workload."""
        at, chosen = self._set_to(policy)
        return sustained_per_s(
            workload, chosen, at.cost, slots=at.slots, replicas=at.replicas, memory=at.memory
        )

    def _set_to(self, policy: str) -> tuple[Server, Policy]:
        """The server under one policy: `serial` refills a single slot."""
        if policy == "serial":
            return replace(self, slots=1, memory=None), BESIDE_DECODING
        return self, self.policies()[policy]


def stated_server(facts: Facts, given: Given) -> Server:
    """The setting that figures are stated at: what is known, or the middle of what is assumed."""
    return Server(
        slots=int(facts.slots.value),
        replicas=facts.replicas.value or 1,
        cost=PerToken(facts.ms_per_token.value) if facts.cost is None else facts.cost.cost,
        max_delay_ms=facts.max_delay_ms.value,
        balancer=given.balancer,
        memory=facts.memory,
        release=given.release or "batch",
        # At a fixed time per token padding changes nothing, and a padded batch is computed sooner.
        pad=facts.cost is None or facts.padding.value,
        continuous=given.continuous or BESIDE_DECODING,
    )


def possible_servers(stated: Server, facts: Facts) -> Iterator[Server]:
    """The corners of what is assumed: every end of the slots with every end of the pace."""
    for slots in _ends(facts.slots):
        for cost in _costs(stated, facts):
            yield replace(stated, slots=int(slots), cost=cost)


def _costs(stated: Server, facts: Facts) -> tuple[Cost, ...]:
    """A time per token may be a range; a step cost is stated as a whole."""
    if facts.cost is not None:
        return (stated.cost,)
    return tuple(PerToken(ms) for ms in _ends(facts.ms_per_token))


def _ends(span: Range) -> tuple[float, ...]:
    return (span.value,) if span.exact else (span.low, span.high)
