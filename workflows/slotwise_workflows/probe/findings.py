"""What load finds: how well the client did, what an iteration costs, how far a replay is off."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slotwise_workflows.calibrate.file import CalibrationFile
from slotwise_workflows.record import Record


class Delays(Record):
    """Percentiles of a time, in seconds; observed values, never interpolated."""

    p50: float
    p95: float
    p99: float
    max: float


class ClientReport(Record):
    """How well the client itself did; what it measures is worth no more than that."""

    requests: int = Field(description="sent")
    dispatch_delay_s: Delays | None = Field(
        description="handed to the HTTP client less due: by the schedule, or after a user's own "
        "last answer and thought; opening a connection is no part of it"
    )
    loop_lag_s: Delays | None = Field(description="how late the client's own timer went off")
    busy_share: float = Field(
        description="processor time of the client's process over the time that passed; it may pass "
        "1 where threads run, and holds what is spent on waiting exactly"
    )
    most_in_flight: int = Field(description="requests unanswered at once")
    held_back: int = Field(description="how often the next request had to wait for max_in_flight")
    bottleneck: list[str] = Field(
        description="why the client was the bottleneck: dispatch_delay, loop_lag, max_in_flight, "
        "worker_lost; empty where it was not"
    )
    client_bottleneck: bool = Field(description="whether what was measured is in part its doing")


Unknown = Literal[
    "requests_failed", "rate_limited", "tokens_not_counted", "tokens_not_seen", "not_identified"
]


class PrefixCache(Record):
    """Equal prompts against unlike ones of the same length, alone on the server."""

    ttft_ratio: float = Field(
        description="median time to first token of equal prompts, their first left out, over that "
        "of unlike ones; near 1 where no cache is seen"
    )
    equal_ttft_s: float
    unlike_ttft_s: float
    prompt_tokens: int | None = Field(description="of each, as the server counts; null if untold")
    requests: int = Field(description="of both kinds that were answered")


class CostUnknown(Record):
    """Why there is no cost."""

    code: Unknown
    detail: str


class CostFinding(Record):
    """What the cost stage found."""

    calibration: CalibrationFile | None = Field(description="null where cost_unknown says why")
    cost_unknown: CostUnknown | None
    prefix_cache: PrefixCache | None = Field(description="null where too few were answered")
    prompt_scale_measured: bool = Field(
        description="prompt lengths were met by the server's own count, else by assumption"
    )
    prompt_factor: float = Field(
        description="prompts were shortened by, so that prefill takes a third of the time at most"
    )
    client: ClientReport
    requests: int = Field(description="sent")
    unsent: int = Field(description="of the plan, since too many failed or time was up")
    failed: int


class ReplayTimes(Record):
    """Of the answered requests, in seconds from the instant at which each was due."""

    latency_mean: float
    latency_p50: float
    latency_p95: float | None = Field(description="null below 72 requests, as are all of its kind")
    ttft_mean: float
    ttft_p95: float | None
    makespan: float = Field(description="from the first due instant to the last end")


class ReplayErrors(Record):
    """Simulated over measured, less one."""

    latency_mean: float
    latency_p50: float
    latency_p95: float | None
    ttft_mean: float
    ttft_p95: float | None
    makespan: float
    each_p50: float = Field(
        description="median over the requests of the error of each one's latency, without sign"
    )


class ReplayFigures(Record):
    """A log's arrivals and lengths sent to an endpoint, against a simulation of what was sent."""

    window: str = Field(description="which requests of the log were sent")
    of_requests: int = Field(description="requests of the log")
    rate_scale: float = Field(description="arrivals came so many times as fast as in the log")
    length_scale: float = Field(description="lengths are those of the log times this")
    requests: int = Field(description="sent")
    unsent: int = Field(description="of the window, since too many failed or time was up")
    answered: int = Field(description="what all times are of")
    failed: int
    cut_short: int = Field(description="answers of fewer tokens than asked for")
    requests_per_s: float | None = Field(
        description="as they were due; null where all were due at once"
    )
    prompts_known: bool = Field(description="whether the log tells prompt lengths")
    prompt_tokens_off: float | None = Field(
        description="prompt tokens sent over those of the window, less one; null where untold"
    )
    measured: ReplayTimes
    simulated: ReplayTimes | None = Field(description="null where no cost is known")
    errors: ReplayErrors | None
    client: ClientReport
    start_uncertainty_s: float = Field(
        0.0, description="by how much the clocks of several senders may differ"
    )
