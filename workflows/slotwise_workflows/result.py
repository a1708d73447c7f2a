"""What a diagnosis found, as data: the content of ``result.json``.

Every rendering says these numbers and no others. The models are frozen, forbid unknown keys, and
publish their JSON Schema (``Result.model_json_schema()``). Times are seconds, lengths are tokens,
shares are fractions of one.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from slotwise_sim.attribution import Attribution
from slotwise_sim.memory import Memory
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.record import Estimate, Record
from slotwise_workflows.sweep.record import SweepFigures

SCHEMA: Literal["slotwise/result/v1"] = "slotwise/result/v1"
INSPECTION_SCHEMA: Literal["slotwise/inspection/v1"] = "slotwise/inspection/v1"

Verdict = Literal[
    "adopt", "conditional", "no_gain", "already", "not_yours", "marginal", "insufficient_data"
]
Confidence = Literal["high", "medium", "low"]
Source = Literal["measured", "simulated", "given", "estimated", "assumed"]


class LengthFigures(Record):
    """A sample's own length figures, in tokens; NumPy's linear percentiles, ddof 1."""

    mean: float
    p50: float
    p95: float
    max: float
    std: float | None = Field(description="null for one request")
    cv: float | None = Field(description="std / mean; null for one request")


class Mean(Record):
    """How many values there were and their mean, in seconds."""

    n: int
    mean: float


class Distribution(Record):
    """Figures of a simulated time, in seconds; percentiles are observed order statistics."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class PolicyFigures(Record):
    """What one policy did with the workload."""

    latency_s: Distribution
    queue_delay_s: Distribution
    ttft_s: Distribution
    tpot_s: Distribution | None
    makespan_s: float
    requests_per_s: float
    output_tokens_per_s: float
    busy_slot_s: float
    idle_share: float
    preemptions: int


class ArrivalSpan(Record):
    """First and last arrival: RFC 3339 for wall clocks, seconds for relative ones."""

    first: str | float
    last: str | float


class SegmentFigures(Record):
    """One value of one segment (a route, a model)."""

    requests: int
    token_share: float = Field(description="its share of all output tokens")
    output_tokens: LengthFigures
    gain_bound: dict[str, Estimate]


class Segmentation(Record):
    """A log split by one column."""

    values: dict[str, SegmentFigures] = Field(description="the largest first; at most 50 values")
    others: int = Field(description="requests in values beyond those shown")
    between_share: float | None = Field(
        description="share of the variance of output lengths that lies between values"
    )


class ArrivalFigures(Record):
    """How requests arrive over time."""

    span_s: float
    rate_per_s: float
    rate_by_bin: list[float] = Field(description="requests per second in equal bins of time")
    bin_s: float
    busiest_start_s: float = Field(description="from the first arrival")
    busiest_span_s: float
    busiest_rate_per_s: float
    gap_cv: float | None = Field(
        description="burstiness: CV of the gaps between arrivals; null where the clock is coarser"
    )
    days: float


class Inspection(Record):
    """What a log is: the content of ``inspect --json``."""

    schema_: Literal["slotwise/inspection/v1"] = Field(INSPECTION_SCHEMA, alias="schema")
    format: str
    rows: int
    requests: int
    excluded: dict[str, int]
    flags: list[str]
    output_tokens: LengthFigures
    prompt_tokens: LengthFigures | None
    arrival: ArrivalSpan | None
    latency_s: Mean | None
    ttft_s: Mean | None
    truncated: int
    aborted: int
    gain_bound: dict[str, Estimate]
    segments: dict[str, Segmentation]
    notes: list[str] = Field(
        default=[], description="places of unusable rows and the like, for a person to read"
    )

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class Reason(Record):
    """Why: a code that the catalogues know, with the numbers its sentence needs."""

    code: str
    numbers: dict[str, float | int | str | None] = Field(default={})


class Fact(Record):
    """Something the verdict rests on, where it came from and how much hangs on it."""

    name: str = Field(description="serving, batches_already, mode, slots, ms_per_token, cost, ...")
    value: float | str | None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    source: Source
    basis: str = Field(
        default="", description="catalogue code: what it was read off, e.g. latency_envelope"
    )
    detail: str = Field(default="", description="of a cost: who says so, and how good it is")
    weight: Literal["none", "some", "decides", "unknown"] = Field(
        default="unknown", description="how much the verdict depends on it"
    )


class WhatIf(Record):
    """One point of the small sweep: other slots, another load."""

    slots: int
    load: float = Field(description="times today's arrival rate; 0 where arrivals are unknown")
    gain: float = Field(description="capacity gain at these slots")
    latency_mean_s: dict[str, float] = Field(description="by policy; empty without arrivals")
    latency_p95_s: dict[str, float]
    idle_share: dict[str, float]
    overloaded: dict[str, bool]


class Occupancy(Record):
    """One request in one slot, for the picture of slots over time; seconds from the window."""

    slot: int
    start_s: float
    own_end_s: float = Field(description="its own last token")
    held_until_s: float = Field(description="until its slot is free again")


class Timeline(Record):
    """The busiest window twice on one time axis."""

    start_s: float
    span_s: float
    slots: int
    drawn_slots: int = Field(description="slots 0 to drawn_slots - 1 have their bars here")
    batch: str = Field(description="the batch-at-once policy shown")
    static: list[Occupancy]
    continuous: list[Occupancy]
    idle_slot_s: dict[str, float]
    tokens_axis: bool = Field(
        description="true where the time axis rests on an assumed time per token"
    )


class Histogram(Record):
    """Output lengths: equal bins from ``start`` of ``width`` tokens."""

    start: float
    width: float
    counts: list[int]


class Diagnosis(Record):
    """The answer for one model's traffic, or for the log as a whole."""

    model: str | None
    requests: int
    token_share: float
    verdict: Verdict
    confidence: Confidence
    reasons: list[Reason] = Field(description="the deciding reason first")
    limits: list[Reason] = Field(description="what keeps the confidence down, and risks")
    actions: list[Reason] = Field(description="the next action first")
    alternatives: list[Reason] = Field(description="where to look instead, from the same log")
    flip: list[Reason] = Field(description="the values at which the verdict changes")
    gain: Estimate | None = Field(description="capacity, continuous over batch-at-once")
    drift: float | None = Field(
        description="gain_bound less the gain in order of arrival, both by lengths alone"
    )
    attribution: Attribution | None = Field(
        default=None,
        description="where a gain comes from, as ratios of requests per second whose product is "
        "total, with all requests waiting; null at a fixed time per token",
    )
    waiting: Estimate | None = Field(
        description="fall of mean latency in the busiest hour, as a share; null where not claimed"
    )
    gain_bound: dict[str, Estimate]
    idle_share: dict[str, float] = Field(description="of the replay, by policy")
    idle_at_full: dict[str, Estimate] = Field(
        default={},
        description="idle share of a server that always has work, in order of arrival, by policy; "
        "empty where the sample fills no batch",
    )
    replay: Literal["arrivals", "backlog"] = Field(
        default="arrivals",
        description="arrivals: the busiest hour at its own times; backlog: all requests at once, "
        "in order, because the times or the number of servers are unknown: then no time of a "
        "request means anything",
    )
    policies: dict[str, PolicyFigures]
    capacity_per_s: dict[str, float] = Field(
        default={}, description="sustainable requests per second by policy, all replicas together"
    )
    utilisation: dict[str, float] = Field(
        default={}, description="busiest-hour load over capacity by policy; empty where not claimed"
    )
    servers_needed: dict[str, int | None] = Field(
        default={},
        description="fewest servers of these slots that carry the busiest hour and meet the "
        "objectives, by policy; null where none do; empty where not claimed",
    )
    intervals: dict[str, Estimate] = Field(
        default={},
        description="over replications: latency_ratio (over the assumed facts, too), "
        "makespan_ratio, idle_share.POLICY, latency_p95_s.POLICY; empty where not claimed",
    )
    what_if: list[WhatIf]
    sweep: SweepFigures | None = Field(
        default=None,
        description="a small sweep around today's setting, on resampled traffic: other slots and "
        "loads, and from which load and variation the change pays; null where no batch is filled",
    )
    facts: list[Fact]
    batching: ObservedBatching | None = Field(
        default=None, description="what the log's own times say of how its server batches"
    )
    output_tokens: LengthFigures
    prompt_tokens: LengthFigures | None
    histogram: Histogram
    arrivals: ArrivalFigures | None
    timeline: Timeline | None
    slots: int = Field(description="the slots that gain, policies and timeline are stated at")
    slots_is_range: bool = Field(description="true where the slots were neither given nor found")
    ms_per_token: float | None = Field(description="null under a step cost")
    cost: CostRecord | None = Field(
        default=None, description="the step cost; null where a token takes the same time always"
    )
    memory: Memory | None = Field(
        default=None, description="KV memory of one server; null where it limits nothing"
    )
    money: dict[str, float | str] = Field(
        default={},
        description="only from a given price: currency, server_hour, servers_now, servers_after, "
        "hour_now, hour_after, hour_saved",
    )


class TimelineRow(Record):
    """One request of a probe's trial, in seconds from when the trial's first was sent."""

    name: str
    sent_s: float
    first_token_s: float
    last_token_s: float


class Prediction(Record):
    """A log sent to the endpoint again: measured times beside those simulated of it, in seconds.

    Keys: latency_mean, latency_p50, ttft_mean, makespan; latency_p95 and ttft_p95 from 72 requests
    on.
    """

    window: str = Field(description="which requests of the log were sent")
    requests: int = Field(description="that were answered")
    failed: int
    rate_scale: float = Field(description="arrivals came so many times as fast as in the log")
    length_scale: float = Field(description="lengths were those of the log times this")
    measured: dict[str, float]
    simulated: dict[str, float] = Field(description="empty where no cost is known")
    client_bottleneck: bool = Field(description="the client was too slow for its own schedule")


class ProbeFigures(Record):
    """What a look at the live endpoint found."""

    url: str = Field(description="without its query")
    kind: str = Field(description="the product: vllm, sglang, llama.cpp, ... unknown")
    model: str | None
    batching: Literal["continuous", "static", "dynamic", "serial", "undetermined"]
    confidence: Confidence
    reason: Reason
    remarks: list[Reason]
    slots: int | None = Field(description="null where only a bound was seen")
    slots_at_least: int
    release: Literal["batch", "own"] | None
    gather_s: tuple[float, float | None] | None = Field(
        description="how long a batch waits for company: between so much and so much"
    )
    requests_sent: int
    output_tokens: int = Field(description="as the server counts them")
    timeline: list[TimelineRow] = Field(description="of the trial that tells most")
    cost: CostRecord | None = Field(description="fitted to the probe; null where it was not")
    held_out: int = Field(0, description="requests that the cost was not fitted to; 0 without any")
    cost_errors: dict[str, float] = Field(
        default={},
        description="simulated over measured, less one, of those held out, else of those fitted to:"
        " latency_mean, latency_p95, ttft_mean",
    )
    cost_counts: bool = Field(
        default=False, description="whether what is simulated rests on it: it is not too far off"
    )
    prediction: Prediction | None

    @property
    def trusted(self) -> bool:
        """Whether what it found of the server counts; at low confidence it is shown alone."""
        return self.batching != "undetermined" and self.confidence != "low"


class InputFile(Record):
    """One file that was read."""

    name: str
    sha256: str
    bytes: int


class Provenance(Record):
    """Enough to run it again."""

    slotwise: str
    python: str
    platform: str
    packages: dict[str, str]
    seed: int
    command: list[str]
    inputs: list[InputFile]
    config: dict[str, Any]
    created: str | None = Field(description="RFC 3339; SOURCE_DATE_EPOCH honoured")


class Result(Diagnosis):
    """The content of ``result.json`` and of ``diagnose --json``."""

    schema_: Literal["slotwise/result/v1"] = Field(SCHEMA, alias="schema")
    name: str
    traffic: Inspection
    models: list[Diagnosis] = Field(
        description="one each where the log holds several models, the largest first; at most 20"
    )
    other_models: int = Field(default=0, description="models beyond those, not diagnosed")
    thresholds: dict[str, float]
    probe: ProbeFigures | None = Field(
        default=None, description="of the live endpoint; null where none was probed"
    )
    provenance: Provenance
    control: Result | None = Field(
        default=None, description="demo only: the same requests with equal lengths"
    )

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )
