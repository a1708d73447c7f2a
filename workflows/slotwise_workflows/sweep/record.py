"""The summary of a sweep as data: what ``sweep.json`` holds, and a diagnosis of its small one."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from slotwise_sim.memory import Memory
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.record import Estimate, Record

SCHEMA: Literal["slotwise/sweep/v1"] = "slotwise/sweep/v1"


class _OfAServer(Record):
    """What a line of a summary is of."""

    cost: str = Field(description="what tokens or iterations cost, by its name in `costs`")
    slots: int = Field(description="requests one server runs at once")
    replicas: int = Field(description="servers behind the balancer")
    balancer: str
    length_cv: float | None = Field(
        description="coefficient of variation that lengths were respread to; null: their own"
    )
    policy: str
    replications: int


class SweepRow(_OfAServer):
    """One policy in one setting: means over the replications, with their 95 % intervals."""

    arrivals: Literal["open", "closed", "offline"]
    load: float | None = Field(
        description="times the traffic's own arrival rate; null where its times are not used"
    )
    users: int | None = Field(description="of a closed loop; else null")
    requests: int = Field(description="of one replication")
    gain: Estimate | None = Field(
        description="sustainable requests per second over batches in order of arrival; null below "
        "one batch"
    )
    latency_ratio: Estimate = Field(description="the baseline's mean latency over this one's")
    latency_mean_s: Estimate
    latency_p95_s: Estimate
    queue_delay_mean_s: Estimate
    ttft_p95_s: Estimate
    idle_share: Estimate
    requests_per_s: Estimate
    output_tokens_per_s: Estimate
    makespan_s: Estimate
    preemptions: Estimate
    utilisation: Estimate | None = Field(
        description="offered over sustainable load; null where requests do not come by themselves"
    )

    @property
    def overloaded(self) -> bool:
        """Whether more is offered than can be sustained: then waits grow to the end."""
        return self.utilisation is not None and self.utilisation.estimate >= 1


class SweepLimit(_OfAServer):
    """Where one policy is just enough on one server; null where any replication finds none."""

    gain: Estimate | None = Field(description="as in a row")
    capacity_load: Estimate | None = Field(
        description="the highest load that is sustained and meets every objective, in times the "
        "traffic's own; 0 where none does"
    )
    capacity_per_s: Estimate | None = Field(description="the same in requests per second")
    servers_needed: Estimate | None = Field(
        description="fewest servers that carry the traffic as it is and meet every objective"
    )
    break_even_load: Estimate | None = Field(
        description="the lowest load from which this policy is worth having in place of the "
        "baseline; 0 from any; null of the baseline"
    )
    break_even_until: Estimate | None = Field(
        description="the load up to which it is; null where some replication has no such end: "
        "there the gain in capacity over the baseline is `gain_adopt` or more"
    )
    break_even_cv: Estimate | None = Field(
        description="the least coefficient of variation of the lengths at which the gain over the "
        "baseline is `gain_adopt`; 0 at any; null of the baseline, and where none up to 4 is, or "
        "as far as these requests can vary and fit"
    )


class Here(Record):
    """Where the traffic itself stands among what is varied: at load 1."""

    requests: int
    length_cv: float | None = Field(description="of its output lengths; null of a single request")
    rate_per_s: float | None = Field(description="of its arrivals; null where they have no span")
    slots: int | None = Field(
        description="of the server that the file, or the log, tells of; null where none does"
    )


class SweepFigures(Record):
    """What was found, setting by setting."""

    objectives: dict[str, float] = Field(description="p95 in seconds, of latency and ttft")
    thresholds: dict[str, float] = Field(
        description="gain_adopt and waiting_adopt, from which a policy is worth having"
    )
    baseline: str = Field(description="the policy that the others are compared with")
    here: Here
    rows: list[SweepRow]
    limits: list[SweepLimit] = Field(description="empty where none were searched")


class Failure(Record):
    """A point that was not computed."""

    cost: str
    slots: int
    replicas: int
    balancer: str
    length_cv: float | None
    load: float | None
    users: int | None
    replication: int
    limits: bool = Field(description="whether its limits were searched; else it was replayed")
    why: str


class SweepReport(SweepFigures):
    """The content of ``sweep.json`` and of ``sweep --json``."""

    schema_: Literal["slotwise/sweep/v1"] = Field(SCHEMA, alias="schema")
    name: str
    engine: Literal["local", "ray"]
    points: int = Field(description="settings times replications, searches included")
    reused: int = Field(description="of these, found finished by an earlier run")
    seed: int
    costs: dict[str, CostRecord] = Field(description="by the name that rows have them by")
    memory: Memory | None = Field(description="of one server; null where it limits nothing")
    notes: list[str] = Field(description="what a reader of the figures must know")
    failures: list[Failure]

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )
