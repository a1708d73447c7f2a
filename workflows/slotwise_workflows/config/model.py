"""The workload file as frozen values: every key, its meaning, its bounds.

Nothing here reads a file. A key whose value is null counts as left out, so a section of which all
keys are commented out is valid. Which keys exist is what `Config` subclasses say; the reference
page and the JSON Schema are checked against them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from slotwise_sim.costs import Piece, Step
from slotwise_workflows.config.base import (
    Config,
    Count,
    NotNegative,
    OneOf,
    Positive,
    Tokens,
    Words,
    integral,
)
from slotwise_workflows.costs.presets import all_presets, find_preset
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.given import (
    MOST_DELAY_MS,
    MOST_HOUR_PRICE,
    MOST_MS_PER_TOKEN,
    MOST_OBJECTIVE_S,
    MOST_REPLICAS,
    MOST_SLOTS,
)
from slotwise_workflows.recommend.thresholds import Thresholds

SCHEMA_ID = "https://slotwise.invalid/schema/workload/v1.json"
MOST_REQUESTS = 100_000_000
MOST_PIECES = 100
MOST_BINS = 1000
MOST_KV_TOKENS = 1_000_000_000_000
MOST_BLOCK_TOKENS = 1_000_000


class Log(Config):
    """A traffic log to be read."""

    path: Words = Field(
        description="files, globs or directories; relative to this file", min_length=1
    )
    format: str = Field("auto", description="a log format's id; auto looks at the content")
    timezone: str | None = Field(
        None, description="IANA zone of times without one; UTC if not given"
    )
    segment: Words = Field((), description="columns or paths by which results are split")
    map: dict[str, str] = Field({}, description="field: column or dotted path, for one's own table")
    time_unit: Literal["auto", "s", "ms", "us", "ns"] = Field(
        "auto", description="unit of numeric times; auto goes by the digits of the whole column"
    )
    origin: Literal["first", "zero"] = Field(
        "first",
        description="t = 0: the first kept arrival, or the log's own zero (relative times only)",
    )
    decimal: Literal["auto", ".", ","] = Field(
        "auto", description="decimal sign of a CSV's numbers"
    )
    where: Words = Field(
        (), description="conditions column=value (also != < <= > >=) a row must meet"
    )
    allow_truncated: bool = Field(
        False, description="read a gzip stream that ends early up to its cut"
    )

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        if name is not None:
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(name)
            except (OSError, ValueError, KeyError):
                raise ValueError(
                    f"{name!r} is no IANA time zone, such as Asia/Tokyo or UTC"
                ) from None
        return name


class Rate(Config):
    """Arrivals at a rate."""

    rate: Positive = Field(description="requests per second")


class GammaRate(Rate):
    """Arrivals whose gaps are gamma distributed."""

    cv: Positive = Field(description="coefficient of variation of the gaps; 1 is Poisson")


class Arrivals(OneOf):
    """How requests arrive. ``upfront`` may also be written as a word."""

    words = ("upfront",)

    constant: Rate | None = Field(None, description="equal gaps")
    poisson: Rate | None = Field(None, description="independent arrivals")
    gamma: GammaRate | None = Field(None, description="more (cv > 1) or less bursty than Poisson")
    upfront: Literal[True] | None = Field(None, description="all at t = 0")
    trace: tuple[NotNegative, ...] | None = Field(
        None, strict=False, description="arrival times in seconds, one a request"
    )

    @model_validator(mode="before")
    @classmethod
    def _word(cls, data: Any) -> Any:
        if data == "upfront":
            return {"upfront": True}
        if isinstance(data, dict) and data.get("upfront", 0) in (None, {}):
            return {**data, "upfront": True}
        return data


class Lognormal(Config):
    """Lengths with a long tail."""

    # Bounded so that no draw leaves the range of whole numbers.
    mean: Annotated[float, Field(gt=0, le=10_000_000)] = Field(description="mean in tokens")
    cv: Annotated[float, Field(ge=0, le=20)] = Field(description="standard deviation over mean")


Range = Annotated[tuple[Tokens, Tokens], Field(strict=False)]
Sample = Annotated[tuple[Tokens, ...], Field(strict=False, min_length=1)]


class SimpleLengths(OneOf):
    """One distribution of token counts."""

    constant: Tokens | None = Field(None, description="every request the same")
    uniform: Range | None = Field(None, description="[smallest, largest], both included")
    lognormal: Lognormal | None = Field(None, description="rounded to whole tokens, at least 1")
    empirical: Sample | None = Field(None, description="token counts to draw from, equally likely")

    @field_validator("uniform")
    @classmethod
    def _ascending(cls, bounds: tuple[int, int] | None) -> tuple[int, int] | None:
        if bounds is not None and bounds[0] > bounds[1]:
            raise ValueError(f"[{bounds[0]}, {bounds[1]}] must ascend")
        return bounds

    def smallest(self) -> int:
        """The fewest tokens it can yield."""
        if self.constant is not None:
            return self.constant
        if self.uniform is not None:
            return self.uniform[0]
        return min(self.empirical) if self.empirical is not None else 1


class Component(SimpleLengths):
    """One part of a mixture: its weight beside its distribution."""

    beside = ("weight",)

    weight: Positive = Field(description="share of the requests, relative to the other weights")


class Lengths(SimpleLengths):
    """Token counts: one distribution, or a mixture of several."""

    mixture: Annotated[tuple[Component, ...], Field(strict=False, min_length=1)] | None = Field(
        None, description="each request draws one of these by weight"
    )

    def smallest(self) -> int:
        """The fewest tokens it can yield."""
        if self.mixture is not None:
            return min(part.smallest() for part in self.mixture)
        return super().smallest()


class Synthetic(Config):
    """Made-up traffic."""

    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS), BeforeValidator(integral)] = Field(
        description="how many requests"
    )
    arrivals: Arrivals = Field(description="how they arrive")
    output_tokens: Lengths = Field(description="tokens generated")
    prompt_tokens: Lengths = Field(
        Lengths(constant=0), description="tokens of the prompts; 0 if left out"
    )
    max_tokens: Count | None = Field(None, description="the cap every request is sent with")

    @field_validator("arrivals")
    @classmethod
    def _a_time_each(cls, arrivals: Arrivals, info: ValidationInfo) -> Arrivals:
        requests = info.data.get("requests")  # missing where it is wrong itself
        if arrivals.trace is not None and requests not in (None, len(arrivals.trace)):
            raise ValueError(f"trace holds {len(arrivals.trace)} times for {requests} requests")
        return arrivals

    @field_validator("output_tokens")
    @classmethod
    def _some_output(cls, lengths: Lengths) -> Lengths:
        if lengths.smallest() < 1:
            raise ValueError("must be at least 1 token; a request without output is not one")
        return lengths


class Traffic(OneOf):
    """The requests: a log, or made up."""

    log: Log | None = Field(None, description="read from files")
    synthetic: Synthetic | None = Field(None, description="drawn from distributions")


Milliseconds = Annotated[float, Field(ge=0, le=MOST_MS_PER_TOKEN, allow_inf_nan=False)]


class StepPiece(Config):
    """What an iteration costs once many sequences decode in it."""

    from_seqs: Annotated[int, Field(ge=2, le=MOST_SLOTS), BeforeValidator(integral)] = Field(
        description="sequences decoding in it from which this holds"
    )
    base_ms: Milliseconds = Field(description="in place of base_ms above")
    per_seq_ms: Milliseconds = Field(0.0, description="in place of per_seq_ms above")
    per_kv_token_ms: Milliseconds = Field(0.0, description="in place of per_kv_token_ms above")


class StepCost(Config):
    """Duration of one iteration, by what it decodes (B, K) and prefills (P, Q)."""

    base_ms: Milliseconds = Field(description="every iteration")
    per_seq_ms: Milliseconds = Field(0.0, description="times sequences decoding in it (B)")
    per_kv_token_ms: Milliseconds = Field(0.0, description="times tokens those sequences hold (K)")
    per_prefill_token_ms: Milliseconds = Field(0.0, description="times prompt tokens prefilled (P)")
    per_prefill_token2_ms: Milliseconds = Field(0.0, description="times attention's share (Q)")
    prefill_base_ms: Milliseconds | None = Field(
        None, description="in place of base_ms where nothing decodes; base_ms if left out"
    )
    pieces: Annotated[tuple[StepPiece, ...], Field(strict=False, max_length=MOST_PIECES)] = Field(
        (), description="other terms for larger batches, ascending"
    )

    @model_validator(mode="after")
    def _possible(self) -> StepCost:
        self.step()
        return self

    def step(self) -> Step:
        """The cost as the simulator takes it.

        Raises:
            ValueError: Together the terms are no cost.
        """
        terms = self.model_dump(exclude={"pieces"})
        return Step(**terms, pieces=tuple(Piece(**piece.model_dump()) for piece in self.pieces))


def _known_preset(name: str) -> str:
    try:
        return find_preset(name).name
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _preset_names(schema: dict[str, Any]) -> None:
    schema["enum"] = [preset.name for preset in all_presets()]


PresetName = Annotated[str, AfterValidator(_known_preset), Field(json_schema_extra=_preset_names)]


class Cost(OneOf):
    """What a token or an iteration costs."""

    ms_per_token: (
        Annotated[float, Field(gt=0, le=MOST_MS_PER_TOKEN, allow_inf_nan=False)] | None
    ) = Field(None, description="milliseconds a token, whatever else runs")
    step: StepCost | None = Field(None, description="milliseconds an iteration, by what it holds")
    preset: PresetName | None = Field(None, description="a step cost that others measured, by name")
    calibration: str | None = Field(
        None, description="file with a step cost fitted to measurements"
    )


class Memory(Config):
    """KV memory; limits continuous batching under a step cost only."""

    kv_tokens: Annotated[Count, Field(le=MOST_KV_TOKENS)] = Field(
        description="tokens the KV cache of one server holds"
    )
    block_tokens: Annotated[Count, Field(le=MOST_BLOCK_TOKENS)] = Field(
        16, description="tokens a block, under paged"
    )
    reserve: Literal["paged", "max_tokens"] = Field(
        "paged", description="grow block by block, or reserve prompt + max_tokens at once"
    )


class Server(Config):
    """The server that is, or would be, there."""

    serving: Literal["self_hosted", "managed_api", "unknown"] | None = Field(
        None, description="who runs it; inferred from the log if left out"
    )
    mode: Literal["online", "offline"] | None = Field(
        None, description="users wait, or a job is to be finished; inferred if left out"
    )
    replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS), BeforeValidator(integral)] | None = (
        Field(None, description="servers of this kind behind one balancer")
    )
    balancer: Literal["round_robin", "least_busy"] = Field(
        "round_robin", description="how requests are spread over replicas"
    )
    slots: Annotated[int, Field(ge=1, le=MOST_SLOTS), BeforeValidator(integral)] | None = Field(
        None, description="requests one server runs at once"
    )
    cost: Cost | None = Field(None, description="what a token or an iteration costs")
    memory: Memory | None = Field(None, description="KV memory; without it, memory never limits")


def _a_day_or_no_end(delay_ms: float) -> float:
    if MOST_DELAY_MS < delay_ms < math.inf:
        raise ValueError(
            f"must be at most {MOST_DELAY_MS:,.0f} (a day), or .inf, not {delay_ms:.10g}"
        )
    return delay_ms


Delay = Annotated[float, Field(ge=0), AfterValidator(_a_day_or_no_end)]
Bins = Annotated[int, Field(ge=1, le=MOST_BINS), BeforeValidator(integral)]
PredictionError = Annotated[float, Field(ge=0, le=10)]


class BatchOptions(Config):
    """Options of all policies that start and end batches at once."""

    release: Literal["batch", "own"] = Field(
        "batch", description="answers go out at the batch's end, or at their own last token"
    )
    pad: bool = Field(True, description="finished sequences keep costing until the batch ends")


class StaticOptions(BatchOptions):
    """Options of ``static``; what is None is its kin's and changes nothing here."""

    max_delay_ms: Delay | None = Field(
        None, description="of dynamic; static waits for a full batch"
    )
    bins: Bins | None = Field(None, description="of binned")
    prediction_error: PredictionError | None = Field(None, description="of binned")


class DynamicOptions(BatchOptions):
    """Options of ``dynamic``; what is None is its kin's and changes nothing here."""

    max_delay_ms: Delay = Field(
        0.0, description="longest wait of a short batch; 0 starts at once, .inf is static"
    )
    bins: Bins | None = Field(None, description="of binned")
    prediction_error: PredictionError | None = Field(None, description="of binned")


class BinnedOptions(BatchOptions):
    """Options of ``binned``."""

    bins: Bins = Field(4, description="classes of predicted length, equally many requests in each")
    prediction_error: PredictionError = Field(
        0.0, description="of the predicted lengths; 0 knows them, 0.5 is off by a factor of 1.6"
    )
    max_delay_ms: Delay = Field(0.0, description="as under dynamic, for each class")


class ContinuousOptions(Config):
    """Options of ``continuous``; both matter under a step cost only."""

    prefill: Literal["mixed", "separate"] = Field(
        "mixed", description="prompts are prefilled beside decoding, or in iterations of their own"
    )
    max_batched_tokens: Annotated[Count, Field(le=MOST_KV_TOKENS)] | None = Field(
        None, description="most tokens an iteration handles; unlimited if left out"
    )


class PolicyEntry(OneOf):
    """One policy: its name, or its name with options."""

    words = ("static", "dynamic", "binned", "continuous")

    static: StaticOptions | None = Field(None, description="full batches start and end together")
    dynamic: DynamicOptions | None = Field(None, description="batches may start short")
    binned: BinnedOptions | None = Field(
        None, description="dynamic among requests of like predicted length"
    )
    continuous: ContinuousOptions | None = Field(
        None, description="a free slot is refilled at once"
    )

    @model_validator(mode="before")
    @classmethod
    def _name(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {data: {}}
        if isinstance(data, dict):
            return {key: {} if value is None else value for key, value in data.items()}
        return data

    @property
    def name(self) -> str:
        """Which policy it is."""
        return next(name for name in self.choices() if getattr(self, name) is not None)


Objective = Annotated[float, Field(gt=0, le=MOST_OBJECTIVE_S, allow_inf_nan=False)]


class Objectives(Config):
    """What the users are promised."""

    latency_p95_s: Objective | None = Field(None, description="p95 of the whole answer, seconds")
    ttft_p95_s: Objective | None = Field(None, description="p95 of the first token, seconds")


class Sweep(Config):
    """A grid of servers and loads."""

    slots: Annotated[
        tuple[Annotated[int, Field(ge=1, le=MOST_SLOTS), BeforeValidator(integral)], ...],
        Field(strict=False, min_length=1),
    ] = Field((4, 8, 16, 32), description="slots to try")
    load: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = Field(
        (0.25, 0.5, 1.0, 2.0), description="times today's arrival rate"
    )
    replications: Annotated[int, Field(ge=1, le=100_000), BeforeValidator(integral)] = Field(
        20, description="resampled traffics a point"
    )


class Execution(Config):
    """Where a sweep runs."""

    engine: Literal["auto", "local", "ray"] = Field("auto", description="auto runs in this process")
    address: str | None = Field(None, description="of an existing Ray cluster")


class Report(Config):
    """How the report looks and for whom it is."""

    language: Literal["ja", "en"] | None = Field(None, description="the locale's if left out")
    client: str = Field("", max_length=200, description="the client's name")
    prepared_by: str = Field("", max_length=200, description="who hands it over")
    logo: str | None = Field(None, description="an image file; relative to this file")
    formats: Annotated[tuple[Literal["html", "md", "pdf"], ...], Field(strict=False)] = Field(
        ("html", "md"), description="what is written"
    )
    gpu_hour_price: (
        Annotated[float, Field(gt=0, le=MOST_HOUR_PRICE, allow_inf_nan=False)] | None
    ) = Field(None, description="price of one server hour; no money is named without it")
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        "JPY", description="ISO 4217 code of that price"
    )


class WorkloadFile(Config):
    """A workload file: traffic, server, policies, objectives, and what to make of them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, title="slotwise workload file"
    )

    version: Literal[1] = Field(description="of this file's format")
    name: Annotated[str, Field(min_length=1, max_length=80)] = Field(
        "workload", description="what reports and the output directory are called"
    )
    traffic: Traffic = Field(description="the requests")
    server: Server = Field(Server(), description="the server")
    policies: Annotated[tuple[PolicyEntry, ...], Field(strict=False, min_length=1)] = Field(
        (PolicyEntry.model_validate("static"), PolicyEntry.model_validate("continuous")),
        description="ways of filling the slots, side by side",
    )
    objectives: Objectives = Field(Objectives(), description="what users are promised")
    sweep: Sweep = Field(Sweep(), description="the grid of `slotwise sweep`")
    execution: Execution = Field(Execution(), description="where a sweep runs")
    report: Report = Field(Report(), description="the report")
    thresholds: Thresholds = Field(
        Thresholds(), description="where one verdict ends and the next begins"
    )

    _source: Any = PrivateAttr(default=None)

    @field_validator("name")
    @classmethod
    def _one_line(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("must be one line of printable characters")
        return name
