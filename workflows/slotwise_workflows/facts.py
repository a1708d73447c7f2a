"""Facts before the verdict: given, read off the log, or carried as a range; never guessed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
import polars as pl

from slotwise_sim.memory import Memory
from slotwise_sim.workload import Floats
from slotwise_workflows.costs import StatedCost
from slotwise_workflows.given import Given
from slotwise_workflows.measure.segments import model_column
from slotwise_workflows.observe.batching import observe_batching
from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.result import ProbeFigures, Source
from slotwise_workflows.traffic.model import Traffic

# Where neither the user nor the log tells: single-stream decoding on common GPUs and models runs
# at 20 to 100 tokens a second, and servers are set up with 4 to 64 slots.
ASSUMED_MS_PER_TOKEN = (10.0, 20.0, 50.0)
ASSUMED_SLOTS = (4, 8, 64)
# A log whose requests all arrive within this time is a job, not users.
JOB_SPAN_S = 10.0
# What all requests of a log do at once is told only where so many of them have their times.
MOSTLY_TIMED = 0.9
# In flight at one level for this share of all time: callers wait for answers, so that no more than
# so many requests ever come at once. One stray overlap in a hundred does not count against it.
CAPPED_SHARE = 0.5
CAP_HELD = 0.99
# A log shows a queue where so many of its answers take so many times their own tokens' time.
QUEUED_TIMES = 2.0
QUEUED_SHARE = 0.1
# Slots of which the sample fills fewer batches than this are not carried through a verdict.
FEWEST_BATCHES = 9
# An estimate of the pace needs so many timed answers. No server decodes a token faster than this: a
# quicker answer came from a cache, or a gateway held the stream back and sent it at once.
FEWEST_TIMED = 10
FASTEST_MS_PER_TOKEN = 0.2

_MANAGED_PROVIDERS = frozenset(
    {"anthropic", "azure", "azure_ai", "azure_openai", "bedrock", "aws.bedrock", "az.ai.openai"}
    | {"az.ai.inference", "cohere", "deepseek", "fireworks_ai", "gcp.gemini", "gcp.vertex_ai"}
    | {"gemini", "groq", "mistral", "mistral_ai", "openrouter", "perplexity", "together_ai"}
    | {"vertex_ai", "vertex_ai_beta", "xai", "x_ai", "watsonx"}
)
_MANAGED_ENDPOINTS = frozenset({"openai", "azure"})
_BATCHING_PROVIDERS = frozenset(
    {"hosted_vllm", "vllm", "sglang", "tgi", "text-generation-inference", "tensorrt_llm"}
)
# Models that only their makers and the big clouds run; names of open models that play on them
# (gpt-oss, gpt4all, claude2-alpaca) do not match.
_CLOSED_MODEL = re.compile(
    r"(^|[/.:])("
    r"gpt-[345]o?(?![a-z])|gpt-?35-turbo|chatgpt|o[134](-mini|-preview|-pro)?(-\d|$)"
    r"|claude-|gemini-|gemini$|text-davinci|amazon\.(titan|nova)|nova-(micro|lite|pro)"
    r")",
    re.IGNORECASE,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A value, where it came from and what it was read off."""

    value: T
    source: Source
    basis: str


@dataclass(frozen=True, slots=True)
class Range:
    """A number with the range it may lie in, where it came from and what it was read off."""

    low: float
    value: float
    high: float
    source: Source
    basis: str

    @property
    def exact(self) -> bool:
        """Whether there is no range to carry."""
        return self.low == self.high


# The strongest batch-at-once server the client could have computes no padding.
NOT_PADDED = Known(False, "assumed", "default")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the server and its users, for one model's traffic.

    `padding`, `cost` and `memory` are never read off a log; they matter under a step cost only.
    Where one was told, `ms_per_token` is what the log shows of the pace, and nothing rests on it.
    `probed_in_vain`: the live endpoint was looked at, and what it showed is too doubtful to count.
    `slots_probed`: the slots that were counted there, whether or not others were told.
    `observed` is what the log's times say of `batches_already`, whether or not that rests on it.
    """

    serving: Known[Literal["self_hosted", "managed_api", "unknown"]]
    batches_already: Known[bool]
    mode: Known[Literal["online", "offline", "unknown"]]
    loop: Known[Literal["open", "closed", "unknown"]]
    in_flight: int | None
    replicas: Known[int | None]
    slots: Range
    ms_per_token: Range
    max_delay_ms: Range
    padding: Known[bool] = NOT_PADDED
    cost: StatedCost | None = None
    memory: Memory | None = None
    observed: ObservedBatching | None = None
    probed_in_vain: bool = False
    slots_probed: int | None = None


def gather(traffic: Traffic, given: Given) -> Facts:
    """Reads every fact off the log that the user did not give.

    Args:
        traffic: The requests of one model.
        given: What the user told; it wins wherever it speaks.
    """
    in_flight = _in_flight(traffic)
    observed = observe_batching(traffic, given.replicas or _engines(traffic))
    return Facts(
        serving=_serving(traffic, given),
        batches_already=_batches_already(traffic, observed, given.probe),
        mode=_mode(traffic, given),
        loop=_loop(in_flight),
        in_flight=None if in_flight is None else in_flight.highest,
        replicas=_replicas(given),
        slots=_slots(traffic, given, in_flight),
        ms_per_token=_ms_per_token(traffic, given),
        max_delay_ms=_max_delay_ms(traffic, given),
        padding=NOT_PADDED if given.pad is None else Known(given.pad, "given", "given"),
        cost=given.cost,
        memory=None if given.cost is None else given.memory,
        observed=observed,
        probed_in_vain=given.probe is not None and not given.probe.trusted,
        slots_probed=_slots_probed(given),
    )


def _serving(
    traffic: Traffic, given: Given
) -> Known[Literal["self_hosted", "managed_api", "unknown"]]:
    if given.serving is not None and given.serving != "unknown":
        return Known(given.serving, "given", "given")
    if traffic.managed:
        return Known("managed_api", "measured", "log_format")
    if given.probe is not None and given.probe.kind in _MANAGED_ENDPOINTS:
        return Known("managed_api", "measured", "probe")
    engine = _batching_engine(traffic)
    if engine is not None:
        return Known("self_hosted", "estimated", engine)
    providers = _share_of(traffic.table["gen_ai.provider.name"], _MANAGED_PROVIDERS.__contains__)
    if providers > 0.5:
        return Known("managed_api", "estimated", "provider")
    if _share_of(model_column(traffic.table), _is_closed) > 0.5:
        return Known("managed_api", "estimated", "model_name")
    return Known("unknown", "assumed", "unknown")


def _batches_already(
    traffic: Traffic, observed: ObservedBatching, probe: ProbeFigures | None
) -> Known[bool]:
    """As a probe saw it, else by the engine that wrote the log, else by the log's own times."""
    if probe is not None and probe.trusted:
        source: Source = "measured" if probe.confidence == "high" else "estimated"
        return Known(probe.batching == "continuous", source, "probe")
    engine = _batching_engine(traffic)
    if engine is not None:
        return Known(True, "estimated", engine)
    if observed.kind != "undetermined":
        return Known(observed.kind == "continuous", "estimated", "log_timings")
    return Known(False, "assumed", "unknown")


def _engines(traffic: Traffic) -> int | None:
    """One, where an engine itself wrote the one file that was read; None where nobody tells."""
    return 1 if traffic.engine == "batches" and len(traffic.files) == 1 else None


def _batching_engine(traffic: Traffic) -> str | None:
    """What tells an engine that batches continuously by default; None where nothing does."""
    if traffic.engine == "batches":
        return "engine_signature"
    if _share_of(traffic.table["gen_ai.provider.name"], _BATCHING_PROVIDERS.__contains__) > 0.5:
        return "provider"
    return None


def _is_closed(model: str) -> bool:
    return _CLOSED_MODEL.search(model) is not None


def _share_of(column: pl.Series, test: Callable[[str], bool]) -> float:
    """Share of rows whose value passes a test; missing values do not."""
    counts = column.drop_nulls().value_counts()
    passing = sum(count for value, count in counts.iter_rows() if test(str(value).lower()))
    return float(passing) / len(column)


def _mode(traffic: Traffic, given: Given) -> Known[Literal["online", "offline", "unknown"]]:
    if given.mode is not None:
        return Known(given.mode, "given", "given")
    if traffic.offline:
        return Known("offline", "measured", "log_format")
    if traffic.clock is None:
        return Known("unknown", "assumed", "unknown")
    start = traffic.table["start_time"].to_numpy()
    if (start.max() - start.min()) / 1e9 <= JOB_SPAN_S:
        return Known("offline", "estimated", "arrival_pattern")
    return Known("online", "estimated", "arrival_pattern")


@dataclass(frozen=True, slots=True)
class _InFlight:
    """How many requests are at once in some stage of their service, over time.

    Attributes:
        highest: The most, but for `CAP_HELD` of the busy time.
        capped_share: Share of all time spent at that level, or within a tenth below it.
    """

    highest: int
    capped_share: float


def _in_flight(traffic: Traffic) -> _InFlight | None:
    """Requests between arrival and answer; None without latencies."""
    return _at_once(traffic, pl.lit(0.0))


def _decoding(traffic: Traffic) -> _InFlight | None:
    """Requests between their first and their last token; None without first tokens."""
    return _at_once(traffic, pl.col("gen_ai.response.time_to_first_chunk"))


def _at_once(traffic: Traffic, after_s: pl.Expr) -> _InFlight | None:
    """How many requests are at once in what begins so long after their arrival.

    None where arrivals are unknown or too few requests have their times.
    """
    if traffic.clock is None:
        return None
    timed = (
        traffic.table.select("start_time", "e2e_latency", after=after_s)
        .drop_nulls()
        .filter(pl.col("after") <= pl.col("e2e_latency"))
    )
    if timed.height < MOSTLY_TIMED * traffic.table.height:
        return None
    arrival = timed["start_time"].to_numpy().astype(np.int64)
    start = arrival + np.rint(timed["after"].to_numpy() * 1e9).astype(np.int64)
    end = arrival + np.rint(timed["e2e_latency"].to_numpy() * 1e9).astype(np.int64)
    times = np.concatenate((end, start))
    change = np.concatenate((np.full(len(end), -1), np.full(len(start), 1)))
    order = np.lexsort((change, times))  # ends before starts at one instant
    level = np.maximum(np.cumsum(change[order]), 0)  # one that takes no time ends first
    held = np.diff(times[order], append=times[order][-1:])
    time_at = np.bincount(level, weights=held)
    busy = time_at[1:].sum()
    if busy <= 0:
        return None
    highest = 1 + int(np.searchsorted(np.cumsum(time_at[1:]), CAP_HELD * busy))
    # A client of a closed loop takes a moment to send its next request.
    capped = time_at[highest - highest // 10 :].sum()
    return _InFlight(highest, float(capped / held.sum()))


def _loop(in_flight: _InFlight | None) -> Known[Literal["open", "closed", "unknown"]]:
    if in_flight is None:
        return Known("unknown", "assumed", "unknown")
    if in_flight.capped_share >= CAPPED_SHARE:
        return Known("closed", "estimated", "in_flight")
    return Known("open", "estimated", "in_flight")


def _replicas(given: Given) -> Known[int | None]:
    if given.replicas is not None:
        return Known(given.replicas, "given", "given")
    if given.slots is not None:
        return Known(1, "assumed", "single_server_described")
    return Known(None, "assumed", "unknown")


def _slots_probed(given: Given) -> int | None:
    return given.probe.slots if given.probe is not None and given.probe.trusted else None


def _slots(traffic: Traffic, given: Given, in_flight: _InFlight | None) -> Range:
    if given.slots is not None:
        return Range(given.slots, given.slots, given.slots, "given", "given")
    seen = _slots_probed(given)
    if seen is not None:
        return Range(seen, seen, seen, "measured", "probe")
    low, value, high = ASSUMED_SLOTS
    basis = "assumed_range"
    closed = in_flight is not None and in_flight.capped_share >= CAPPED_SHARE
    if in_flight is not None and in_flight.highest < high and (closed or _queues(traffic)):
        # Queued requests are in flight too, so this bounds the slots from above. Without a queue it
        # says nothing of the slots that stood empty; but callers of a closed loop never ask for
        # more than that.
        high = in_flight.highest if closed else max(low, in_flight.highest)
        basis = "in_flight"
    # Many slots need many batches of them, or the sample says nothing about them.
    supported = max(value, len(traffic) // FEWEST_BATCHES)
    decoding = _decoding(traffic)
    if decoding is not None and decoding.highest > low:
        # Each request that generates holds a slot: so many there are at least.
        low = min(decoding.highest, supported)
        value, high, basis = max(value, low), max(high, low), "decoding_at_once"
    low, value, high = (min(slots, high, supported, len(traffic)) for slots in (low, value, high))
    return Range(low, value, high, "assumed" if basis == "assumed_range" else "estimated", basis)


def _queues(traffic: Traffic) -> bool:
    """Whether answers often take far longer than their own tokens: requests wait for a slot."""
    pace_ms = _ms_per_token(traffic, Given()).low
    timed = traffic.table.select("e2e_latency", "gen_ai.usage.output_tokens").drop_nulls()
    own_s = timed["gen_ai.usage.output_tokens"].to_numpy() * (pace_ms / 1e3)
    queued = timed["e2e_latency"].to_numpy() > QUEUED_TIMES * own_s
    return bool(queued.mean() >= QUEUED_SHARE)


def _ms_per_token(traffic: Traffic, given: Given) -> Range:
    if given.ms_per_token is not None:
        ms = given.ms_per_token
        return Range(ms, ms, ms, "given", "given")
    tokens = pl.col("gen_ai.usage.output_tokens")
    timed = traffic.table.select(
        tokens=tokens,
        latency=pl.col("e2e_latency"),
        ttft=pl.col("gen_ai.response.time_to_first_chunk"),
    ).filter((pl.col("latency") > 0) & (pl.col("tokens") > 1))
    decoding = timed.filter(pl.col("ttft") < pl.col("latency")).select(
        ((pl.col("latency") - pl.col("ttft")) / (pl.col("tokens") - 1)).alias("s")
    )["s"]
    decoding = decoding.filter(decoding >= FASTEST_MS_PER_TOKEN / 1e3)
    if len(decoding) >= FEWEST_TIMED:
        # Members of a batch that is released together also wait for its longest, so the faster
        # requests show the pace, not the mean or the median.
        low, value, high = (float(q) * 1e3 for q in np.percentile(decoding, (2, 10, 50)))
        return Range(low, value, high, "estimated", "decode_time")
    # Without a first token, the fastest long answer shows the pace: all others also queued.
    long = timed.filter(pl.col("tokens") >= pl.col("tokens").median())
    pace_ms = (long["latency"] / long["tokens"]).to_numpy() * 1e3
    pace_ms = pace_ms[pace_ms >= FASTEST_MS_PER_TOKEN]
    if len(pace_ms) >= FEWEST_TIMED:
        fastest, later = (float(q) for q in np.percentile(pace_ms, (0, 2)))
        return Range(fastest, fastest, later, "estimated", "latency_envelope")
    low, value, high = ASSUMED_MS_PER_TOKEN
    return Range(low, value, high, "assumed", "assumed_range")


def _max_delay_ms(traffic: Traffic, given: Given) -> Range:
    """Greedy where unknown: the strongest batch-at-once server the client could have.

    What a request waits that comes while no other is in flight, for its first token, is an upper
    bound on the delay.
    """
    if given.max_delay_ms is not None:
        delay = given.max_delay_ms
        return Range(delay, delay, delay, "given", "given")
    waits = _waits_when_idle(traffic)
    if len(waits) < FEWEST_TIMED:
        return Range(0.0, 0.0, 0.0, "assumed", "default")
    return Range(0.0, 0.0, float(np.percentile(waits, 10)) * 1e3, "estimated", "waiting_gap")


def _waits_when_idle(traffic: Traffic) -> Floats:
    """Seconds to the first token of requests that arrive with no other in flight; shape (<= n,)."""
    if traffic.clock is None:
        return np.empty(0)
    timed = (
        traffic.table.select(
            start="start_time", latency="e2e_latency", ttft="gen_ai.response.time_to_first_chunk"
        )
        .drop_nulls(["start", "latency"])
        .sort("start")
    )
    start = timed["start"].to_numpy()
    end = start + timed["latency"].to_numpy() * 1e9
    idle = np.ones(len(start), dtype=np.bool_)
    idle[1:] = start[1:] >= np.maximum.accumulate(end)[:-1]
    waits: Floats = timed["ttft"].filter(pl.Series(idle)).drop_nulls().to_numpy()
    return waits
