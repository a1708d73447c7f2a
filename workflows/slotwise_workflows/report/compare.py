"""Two runs side by side as data: what moved between them, and whether by more than chance.

Before and after a change, or two routes of one service. Nothing is simulated again: the figures are
those of the two results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict, Field

from slotwise_workflows.record import Estimate, Record
from slotwise_workflows.report import reading
from slotwise_workflows.result import (
    ArrivalSpan,
    Confidence,
    Diagnosis,
    Fact,
    LengthFigures,
    Result,
    Source,
    Verdict,
)
from slotwise_workflows.sample_size import P95_REQUESTS

SCHEMA: Literal["slotwise/comparison/v1"] = "slotwise/comparison/v1"

Kind = Literal["times", "percent", "seconds", "rate", "tokens"]
Moved = Literal["up", "down", "not_shown", "unknown"]

_Z = 1.959964  # a two-sided 95 % interval of a normal mean, in standard errors


class Run(Record):
    """One of the two runs."""

    name: str
    model: str | None
    created: str | None
    requests: int
    window: ArrivalSpan | None
    verdict: Verdict
    confidence: Confidence
    slots: int


class Side(Record):
    """A figure in one run, with its 95 % interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


class Shift(Record):
    """One figure in both runs."""

    name: str = Field(description="a code that the catalogues know")
    policy: str = Field(description="of one policy alone; else empty")
    unit: Kind
    source: Source
    before: Side
    after: Side
    change: Estimate | None = Field(
        description="after less before; null where either has no interval"
    )
    moved: Moved = Field(
        description="up or down where the interval of the change does not hold 0; not_shown where "
        "it does; unknown without an interval"
    )


class FactShift(Record):
    """Something that the runs know differently of the server; null where a run does not name it."""

    name: str
    before: Fact | None
    after: Fact | None


class Kept(Record):
    """Whether the gain that the first run predicted was found in the second."""

    predicted: Estimate
    found: Estimate
    change: Estimate
    outcome: Literal["held", "above", "below"] = Field(
        description="held where the interval of the change holds 0"
    )


class Comparison(Record):
    """The content of ``comparison.json`` and of ``report --compare --json``."""

    schema_: Literal["slotwise/comparison/v1"] = Field(SCHEMA, alias="schema")
    before: Run
    after: Run
    same_log: bool = Field(description="both runs read the same bytes")
    figures: list[Shift] = Field(description="those that both runs have")
    facts: list[FactShift] = Field(description="those that differ")
    prediction: Kept | None = Field(
        description="null where the first run advised no change, or the two are of other slots or "
        "another cost of an iteration"
    )

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


def compare_runs(before: Result, after: Result) -> Comparison:
    """Puts two results side by side.

    Of a log of several models, the leading one of the first run is compared with the same model in
    the second, or else with the leading one there.

    Args:
        before: The first run.
        after: The second.
    """
    old = reading.leading(before)
    new = next(
        (own for own in after.models if old.model and own.model == old.model),
        reading.leading(after),
    )
    read = [{file.sha256 for file in run.provenance.inputs} for run in (before, after)]
    return Comparison(
        before=_run(before, old),
        after=_run(after, new),
        same_log=read[0] == read[1] != set(),
        figures=[*_measured(before, after, old, new), *_simulated(old, new)],
        facts=list(_facts(old, new)),
        prediction=_prediction(old, new),
    )


def difference(before: Estimate, after: Estimate) -> Estimate:
    """The change of a figure between two independent samples, with its 95 % interval.

    From the two intervals alone, which need not be symmetric, by the method of variance estimates
    recovery: Zou and Donner, Statistics in Medicine 27 (2008) 1693.
    """
    change = after.estimate - before.estimate
    return Estimate(
        estimate=change,
        low=change - math.hypot(after.estimate - after.low, before.high - before.estimate),
        high=change + math.hypot(after.high - after.estimate, before.estimate - before.low),
    )


def _run(result: Result, own: Diagnosis) -> Run:
    return Run(
        name=result.name,
        model=own.model,
        created=result.provenance.created,
        requests=own.requests,
        window=result.traffic.arrival,
        verdict=own.verdict,
        confidence=own.confidence,
        slots=own.slots,
    )


def _measured(before: Result, after: Result, old: Diagnosis, new: Diagnosis) -> Iterator[Shift]:
    """Of the logs alone. The same latency stands for all models of a log."""
    means = [_mean(own.output_tokens, own.requests) for own in (old, new)]
    yield from _both("mean_length", "tokens", "measured", means[0], means[1])
    slots = str(old.slots)
    yield from _both(
        "longest", "times", "measured", old.gain_bound.get(slots), new.gain_bound.get(slots)
    )
    loads = [own.arrivals.busiest_rate_per_s if own.arrivals else None for own in (old, new)]
    yield from _both("busiest_rate", "rate", "measured", loads[0], loads[1])
    if len(before.models) < 2 and len(after.models) < 2:
        for name in ("latency_s", "ttft_s"):
            told = [getattr(run.traffic, name) for run in (before, after)]
            means_s = [own and own.mean for own in told]
            yield from _both(f"measured_{name}", "seconds", "measured", means_s[0], means_s[1])


def _simulated(old: Diagnosis, new: Diagnosis) -> Iterator[Shift]:
    """Of the replays; the two sides of a figure may stand for differently named policies."""
    then, now = reading.baseline(old), reading.baseline(new)
    continuous = reading.CONTINUOUS
    assumed = "assumed" in map(reading.seconds_label, (old, new))
    timed: Source = "assumed" if assumed else "simulated"
    yield from _both("gain", "times", "simulated", old.gain, new.gain)
    yield from _both("waiting", "percent", "simulated", _waiting(old, then), _waiting(new, now))
    idle = old.idle_at_full.get(then), new.idle_at_full.get(now)
    yield from _both("idle_at_full", "percent", "simulated", *idle)
    offered = old.utilisation.get(then), new.utilisation.get(now)
    yield from _both("utilisation", "percent", timed, *offered)
    for name, first, second in (("batch", then, now), (continuous, continuous, continuous)):
        able = old.capacity_per_s.get(first), new.capacity_per_s.get(second)
        yield from _both("capacity", "rate", timed, *able, name)
        late = _p95(old, first), _p95(new, second)
        yield from _both("latency_p95", "seconds", timed, *late, name)


def _both(
    name: str,
    unit: Kind,
    source: Source,
    before: Estimate | float | None,
    after: Estimate | float | None,
    policy: str = "",
) -> Iterator[Shift]:
    """The figure, where both runs have it."""
    if before is None or after is None:
        return
    change = None
    if isinstance(before, Estimate) and isinstance(after, Estimate):
        change = difference(before, after)
    yield Shift(
        name=name,
        policy=policy,
        unit=unit,
        source=source,
        before=_side(before),
        after=_side(after),
        change=change,
        moved=_moved(change),
    )


def _side(figure: Estimate | float) -> Side:
    if isinstance(figure, Estimate):
        return Side(value=figure.estimate, low=figure.low, high=figure.high)
    return Side(value=figure)


def _moved(change: Estimate | None) -> Moved:
    if change is None:
        return "unknown"
    if change.low > 0:
        return "up"
    return "down" if change.high < 0 else "not_shown"


def _mean(lengths: LengthFigures, requests: int) -> Estimate | float:
    """The mean length; its interval takes requests as independent, and needs enough of them."""
    if lengths.std is None or requests < P95_REQUESTS:
        return lengths.mean
    half = _Z * lengths.std / math.sqrt(requests)
    return Estimate(estimate=lengths.mean, low=lengths.mean - half, high=lengths.mean + half)


def _p95(own: Diagnosis, policy: str) -> Estimate | None:
    """Only where the sample holds one, and no overload makes it grow with the log."""
    if own.requests < P95_REQUESTS or reading.overloaded(own, policy):
        return None
    return own.intervals.get(f"latency_p95_s.{policy}")


def _waiting(own: Diagnosis, policy: str) -> Estimate | None:
    """Under overload waits, and what is saved of them, grow with the log."""
    return None if reading.overloaded(own, policy) else own.waiting


def _facts(old: Diagnosis, new: Diagnosis) -> Iterator[FactShift]:
    """What was told or found of the server; loads are figures, not facts about it."""
    names = dict.fromkeys(fact.name for own in (old, new) for fact in own.facts)
    for name in names:
        if name in {"busiest_rate_per_s", "offered_load"}:
            continue
        before, after = reading.fact(old, name), reading.fact(new, name)
        if before is None or after is None or before.value != after.value:
            yield FactShift(name=name, before=before, after=after)


def _prediction(old: Diagnosis, new: Diagnosis) -> Kept | None:
    """The gain in capacity is what the report of a change writes down for later."""
    if old.verdict not in reading.CHANGES or old.gain is None or new.gain is None:
        return None
    if old.slots != new.slots or old.cost != new.cost:
        return None
    change = difference(old.gain, new.gain)
    outcome: dict[Moved, Literal["held", "above", "below"]] = {"up": "above", "down": "below"}
    return Kept(
        predicted=old.gain,
        found=new.gain,
        change=change,
        outcome=outcome.get(_moved(change), "held"),
    )
