"""What the user says about their server; all of it may be unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # they bring NumPy, which a command's options should not wait for
    from slotwise_sim import Balancer, Memory
    from slotwise_sim.policies import Continuous, Release
    from slotwise_workflows.costs import StatedCost
    from slotwise_workflows.result import ProbeFigures

# What can be, for options, workload files and a host's inputs alike.
MOST_SLOTS = 100_000
MOST_REPLICAS = 100_000
MOST_USERS = 1_000_000
MOST_MS_PER_TOKEN = 60_000.0
MOST_DELAY_MS = 86_400_000.0  # a day; what waits longer waits for a full batch
MOST_OBJECTIVE_S = 1e6
MOST_HOUR_PRICE = 1e9

Serving = Literal["self_hosted", "managed_api", "unknown"]
Mode = Literal["online", "offline"]


@dataclass(frozen=True, slots=True)
class Given:
    """Facts from the command line or the workload file; None is "not told".

    Attributes:
        serving: Who runs the server.
        mode: Whether users wait for answers, or a job is to be finished.
        replicas: Servers of this kind behind one balancer.
        balancer: How it spreads requests over them.
        slots: Requests one server can run at once.
        ms_per_token: Milliseconds one output token takes, whatever else runs.
        max_delay_ms: How long today's server lets a short batch wait.
        latency_p95_s: The objective for the whole answer.
        ttft_p95_s: The objective for the first token.
        gpu_hour_price: Price of one server hour.
        currency: ISO 4217 code of that price.
        cost: What iterations cost, and who says so, where that is known; then ``ms_per_token`` is
            not told.
        memory: KV memory of one server; limits a step cost only.
        memory_at: Where that stands, file and line, for what is wrong with it; else empty.
        release: When a batch's answers go out today; at its end, if not told.
        pad: Whether prompts of a batch are padded to its longest, and finished sequences cost until
            it ends; matters under a step cost only.
        continuous: How the server that would replace it prefills; beside decoding and without a
            token budget, if not told.
        probe: What a look at the live endpoint found. It was measured, not told: whatever is told
            wins.
    """

    serving: Serving | None = None
    mode: Mode | None = None
    replicas: int | None = None
    balancer: Balancer = "round_robin"
    slots: int | None = None
    ms_per_token: float | None = None
    max_delay_ms: float | None = None
    latency_p95_s: float | None = None
    ttft_p95_s: float | None = None
    gpu_hour_price: float | None = None
    currency: str = "JPY"
    cost: StatedCost | None = None
    memory: Memory | None = None
    memory_at: str = ""
    release: Release | None = None
    pad: bool | None = None
    continuous: Continuous | None = None
    probe: ProbeFigures | None = None
