"""What a probe plans, sees and concludes, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from slotwise_workflows.probe.findings import CostFinding, ReplayFigures
from slotwise_workflows.record import Record
from slotwise_workflows.result import Confidence, Reason, TimelineRow

SCHEMA: Literal["slotwise/probe/v1"] = "slotwise/probe/v1"

Api = Literal["chat", "completions"]
Kind = Literal[
    "vllm",
    "sglang",
    "tgi",
    "llama.cpp",
    "ollama",
    "lmstudio",
    "tensorrt-llm",
    "openai",
    "azure",
    "unknown",
]
Batching = Literal["continuous", "static", "dynamic", "serial", "undetermined"]
Release = Literal["batch", "own"]
Stage = Literal["baseline", "group", "refill", "slots", "cost", "replay"]
Stopped = Literal["user", "max_seconds"]


class Sample(Record):
    """One request, without a word of it; times in nanoseconds of the client's monotonic clock."""

    stage: Stage = Field(description="what it was sent for")
    name: str = Field(description="baseline, alone-1, long, short-1, ...")
    trial: int = Field(description="from 1, of all trials; 0 for requests alone")
    asked_tokens: int = Field(description="the max_tokens it was sent with")
    scheduled_ns: int | None = Field(
        None, description="when an open loop meant to send it; latency counts from there"
    )
    sent_ns: int = Field(description="when its bytes went out, on a connection that was there")
    first_token_ns: int | None = Field(description="first non-empty token of any channel")
    last_token_ns: int | None
    end_ns: int
    chunks: int = Field(description="chunks with a token; not a number of tokens")
    first_chunk_tokens: int | None = Field(
        None, description="of the first chunk with a token, where the server counts in every chunk"
    )
    gap_p50_ns: int | None = Field(None, description="between chunks with a token; null below two")
    gap_max_ns: int | None = Field(None, description="likewise, the longest")
    streamed: bool = Field(description="whether the answer came as an event stream")
    status: int | None = Field(description="HTTP status; null where none came")
    prompt_tokens: int | None
    cached_tokens: int | None = Field(
        None, description="prompt tokens that the server says it had cached"
    )
    output_tokens: int | None = Field(
        description="as the server's usage says; null where it does not"
    )
    retry_after_s: float | None = Field(None, description="as a refusal asked for, else null")
    finish_reason: str | None
    fault: str | None = Field(description="class of the failure, else null")

    @property
    def answered(self) -> bool:
        """Whether a whole answer came, with a token in it."""
        return self.fault is None and self.first_token_ns is not None


class Endpoint(Record):
    """What the first requests found out about an endpoint; none of it is taken for its policy."""

    kind: Kind = Field(description="which product it is, or unknown")
    sign: str = Field(description="what it was recognised by; none for unknown")
    api: Api
    model: str | None
    streams: bool = Field(description="whether the answer came as an event stream")
    usage: bool = Field(description="whether it counts tokens")
    cached_tokens_told: bool = Field(description="whether it says how much of a prompt was cached")
    lengths_forced: bool | None = Field(
        description="true: a field forces lengths, and the answer was as long as asked for; "
        "false: it was not; null: not counted, or as long without being forced to"
    )
    forced_by: list[str] = Field(description="fields that force lengths, as sent")
    dropped_fields: list[str] = Field(description="fields that it refused and is sent no more")
    max_model_tokens: int | None = Field(description="prompt and output, as it says itself")
    slots_told: int | None = Field(
        description="requests at once, as it says itself; a remark, never the result"
    )


class Plan(Record):
    """What may be sent at most; told before anything is."""

    trials: int = Field(description="repetitions of the group test")
    shorts: int = Field(description="short requests of one group test")
    requests: int = Field(description="at most, all stages together")
    output_tokens: int = Field(description="asked for at most, all requests together")
    long_s: float = Field(description="how long the long request is sized to last")
    seconds: float = Field(description="after which the probe gives up")


class Sizes(Record):
    """Tokens asked for in one group test, from the measured baseline."""

    long: int
    shorts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Tokens of one group test."""
        return self.long + sum(self.shorts)


class Baseline(Record):
    """One request alone on the server."""

    ttft_s: float
    latency_s: float
    output_tokens: int | None
    seconds_per_token: float
    streams: bool = Field(description="tokens arrive as they are made, not all at the end")


class Alone(Record):
    """The requests that were sent alone, at the start, between the trials and at the end."""

    requests: int
    ttft_s: float = Field(description="median")
    ttft_min_s: float
    ttft_max_s: float
    latency_min_s: float
    noise_s: float = Field(description="median less minimum of the times to the first token")
    seconds_per_token: float = Field(description="median")
    step_s: float = Field(description="median time between chunks, which may hold several tokens")
    seconds_per_token_min: float
    seconds_per_token_max: float
    wait_s: float = Field(description="most that one took beyond what the others explain")
    varies: bool = Field(description="they differ by more than noise: the endpoint is not quiet")


class Evidence(Record):
    """What one trial showed."""

    stage: Stage
    trial: int
    batching: Batching
    reason: Reason
    joined: int = Field(0, description="shorts that began soon, beside the long request")
    waited: int = Field(0, description="shorts that began only when the long request had ended")
    late: int = Field(0, description="shorts in between")
    waits: list[float] = Field(
        [], description="each short's wait over what was left of the long request when it was sent"
    )
    overlap: float | None = Field(
        None,
        description="of the shorts that waited: their durations over the time they took together",
    )
    clusters: list[int] = Field(
        [], description="requests that began together, in the order in which they began"
    )
    position: float | None = Field(
        None,
        description="refill: when the queued request began; 0, when the shorter one ended; "
        "1, when the longest did",
    )
    together: int = Field(1, description="most requests seen making tokens at once")
    slots: int | None = Field(
        None, description="where a request more had to wait for another one's end, else null"
    )
    gather_s: tuple[float, float | None] | None = Field(
        None,
        description="batches only: the last request that still shared the first one's batch was "
        "sent so long after it, the first that did not so long (null: none)",
    )
    release: Release | None = Field(
        None, description="batches only: own, answers end with their last token; batch, all at once"
    )


class ProbeResult(Record):
    """The content of ``probe.json`` and of ``probe --json``."""

    schema_: Literal["slotwise/probe/v1"] = Field(SCHEMA, alias="schema")
    url: str
    api: Api
    model: str | None
    endpoint: Endpoint
    batching: Batching
    confidence: Confidence
    reason: Reason
    remarks: list[Reason] = Field(description="what else was seen, and what limits the verdict")
    slots: int | None = Field(
        description="exact, of all servers behind the address; null where only a bound was seen"
    )
    slots_at_least: int = Field(description="most requests seen making tokens at once")
    release: Release | None
    gather_s: tuple[float, float | None] | None = Field(
        description="how long a batch waits for company: between so much and so much"
    )
    interrupted: bool = Field(description="ended before the plan did; what was done is judged")
    stopped_by: Stopped | None
    plan: Plan
    sizes: Sizes
    baseline: Baseline
    alone: Alone
    trials: list[Evidence]
    timeline: list[TimelineRow] = Field(description="of the trial that tells most")
    requests_sent: int
    output_tokens: int = Field(description="as the server counts them")
    cost: CostFinding | None = Field(
        None, description="what an iteration costs; null if not measured"
    )
    replay: ReplayFigures | None = Field(None, description="a log sent again; null if it was not")
    samples: list[Sample]

    @property
    def delay_ms(self) -> float | None:
        """How long a batch waits for company, halfway between the bounds; None where none does."""
        if self.batching != "dynamic" or self.gather_s is None:
            return None
        low, high = self.gather_s
        return 1000 * (low if high is None else (low + high) / 2)

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )
