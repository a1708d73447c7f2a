"""The main job: a log's traffic in, the answer with its evidence out.

Each model is studied by itself, since a model is a server; a log of several gets a verdict each
and a summary weighted by the tokens they generate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from slotwise_sim.lengths import gain_bound
from slotwise_sim.lengths import histogram as length_histogram
from slotwise_sim.metrics import figures
from slotwise_workflows.compare.attribution import split_of_gain
from slotwise_workflows.compare.capacity import capacity_per_s
from slotwise_workflows.compare.pictures import timeline
from slotwise_workflows.compare.server import BATCH_AT_ONCE
from slotwise_workflows.compare.what_if import what_if
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.given import Given
from slotwise_workflows.measure.inspection import inspect, prompt_figures
from slotwise_workflows.measure.lengths import gain_bounds, histogram, length_figures, stated_slots
from slotwise_workflows.measure.segments import model_column
from slotwise_workflows.recommend.recommendation import recommend
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import Diagnosis, PolicyFigures, Provenance, Reason, Result
from slotwise_workflows.study import Study, study
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.table import figures_of
from slotwise_workflows.traffic.model import Traffic

MOST_MODELS = 20
POLICIES = ("serial", "static", BATCH_AT_ONCE, "continuous")


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """An answer, and the sweep behind it.

    Attributes:
        result: The answer with its evidence.
        swept: The points of the small sweep whose figures `result` shows; empty without one.
    """

    result: Result
    swept: tuple[Done, ...]


def diagnose(
    traffic: Traffic,
    given: Given,
    *,
    name: str,
    seed: int,
    thresholds: Thresholds,
    provenance: Provenance,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Diagnosed:
    """Answers for every model of a log, and for the log as a whole.

    Args:
        traffic: At least one request.
        given: What the user told about the server.
        name: What the report calls this traffic.
        seed: Of every random draw.
        thresholds: Where one verdict ends and the next begins.
        provenance: Kept in the result as it is.
        on_progress: Told how many of how many models are done.
    """
    parts = _by_model(traffic)
    studied = parts[:MOST_MODELS]
    diagnoses, sweeps = [], []
    for done, (model, part) in enumerate(studied):
        on_progress(done, len(studied))
        diagnosis, swept = _diagnose_model(
            part,
            given,
            model=model,
            token_share=_tokens(part) / _tokens(traffic),
            thresholds=thresholds,
            seed=seed,
        )
        diagnoses.append(diagnosis)
        sweeps.append(swept)
    on_progress(len(studied), len(studied))
    leading = 0 if len(parts) == 1 else _leading(diagnoses)
    whole = diagnoses[0] if len(parts) == 1 else _summary(diagnoses, leading, traffic)
    result = Result(
        **{field: getattr(whole, field) for field in Diagnosis.model_fields},
        name=name,
        traffic=inspect(traffic, seed),
        models=diagnoses if len(parts) > 1 else [],
        other_models=len(parts) - len(studied),
        thresholds=thresholds.model_dump(),
        probe=given.probe,
        provenance=provenance,
    )
    return Diagnosed(result, sweeps[leading])


def _diagnose_model(
    traffic: Traffic,
    given: Given,
    *,
    model: str | None,
    token_share: float,
    thresholds: Thresholds,
    seed: int,
) -> tuple[Diagnosis, tuple[Done, ...]]:
    """Answers for the traffic of one model, with the points of its small sweep.

    Args:
        traffic: Its requests, at least one.
        given: What the user told about the server.
        model: Its name, if it has one.
        token_share: Its share of all output tokens of the log.
        thresholds: Where one verdict ends and the next begins.
        seed: Of every random draw.
    """
    studied = study(traffic, given, thresholds, seed)
    advice = recommend(studied.evidence, thresholds)
    diagnosis = Diagnosis(
        model=model,
        requests=len(traffic),
        token_share=token_share,
        verdict=advice.verdict,
        confidence=advice.confidence,
        reasons=list(advice.reasons),
        limits=list(advice.limits),
        actions=list(advice.actions),
        alternatives=list(advice.alternatives),
        flip=list(advice.flip),
        facts=list(advice.facts),
        batching=studied.evidence.facts.observed,
        money=_money(studied, given),
        **_figures(studied, np.random.default_rng(seed)),
    )
    return diagnosis, () if studied.swept is None else studied.swept.done


def _by_model(traffic: Traffic) -> list[tuple[str | None, Traffic]]:
    """One part a model, the one with most output tokens first."""
    model = model_column(traffic.table)
    names = model.unique(maintain_order=True).to_list()
    if len(names) == 1:
        return [(names[0], traffic)]
    parts = [
        (name, replace(traffic, table=traffic.table.filter(model.eq_missing(pl.lit(name)))))
        for name in names
    ]
    return sorted(parts, key=lambda part: (-_tokens(part[1]), part[0] or ""))


def _tokens(traffic: Traffic) -> int:
    return int(traffic.table["gen_ai.usage.output_tokens"].sum())


def _figures(studied: Study, rng: np.random.Generator) -> dict[str, Any]:
    """Everything of a `Diagnosis` that is a figure or a picture."""
    server, evidence, replayed = studied.server, studied.evidence, studied.replayed
    load, facts = evidence.load, evidence.facts
    tokens = studied.ordered.output_tokens
    policies = {
        policy: PolicyFigures.model_validate(figures(server.run(replayed, policy)))
        for policy in POLICIES
    }
    gain = 1.0 if evidence.gain is None else evidence.gain.estimate
    sustained = capacity_per_s(replayed, server, gain) if load is None else load.capacity_per_s
    job = replayed if load is None else studied.ordered
    ordered = evidence.arrivals is not None and evidence.gain is not None
    return {
        "gain": evidence.gain,
        "drift": _less(evidence.bound, evidence.by_lengths) if ordered else None,
        "attribution": None if evidence.gain is None else split_of_gain(job, server),
        "waiting": None if load is None else load.waiting,
        "gain_bound": gain_bounds(tokens, stated_slots(len(tokens), server.slots), rng),
        "idle_share": {policy: own.idle_share for policy, own in policies.items()},
        "idle_at_full": studied.idle,
        "replay": "backlog" if load is None else "arrivals",
        "policies": policies,
        "capacity_per_s": sustained,
        "utilisation": {}
        if load is None
        else {policy: load.rate_per_s / per_s for policy, per_s in sustained.items()},
        "servers_needed": {} if load is None else load.servers_needed,
        "intervals": {}
        if load is None
        else {"latency_ratio": load.latency_ratio, **load.replications},
        "what_if": what_if(job, replayed, server, None if load is None else load.rate_per_s),
        "sweep": None
        if studied.swept is None
        else figures_of(studied.swept.scenario, studied.swept.done, slots=studied.server.slots),
        "output_tokens": evidence.lengths,
        "prompt_tokens": prompt_figures(studied.traffic),
        "histogram": histogram(tokens),
        "arrivals": evidence.arrivals,
        "timeline": timeline(
            replayed,
            server,
            assumed_pace=facts.cost is None and facts.ms_per_token.source == "assumed",
        ),
        "slots": server.slots,
        "slots_is_range": not facts.slots.exact,
        "ms_per_token": facts.ms_per_token.value if facts.cost is None else None,
        "cost": None if facts.cost is None else CostRecord.of(facts.cost),
        "memory": facts.memory,
    }


def _less(a: Estimate | None, b: Estimate | None) -> float | None:
    return None if a is None or b is None else a.estimate - b.estimate


def _money(studied: Study, given: Given) -> dict[str, float | str]:
    """Servers the busiest hour needs, times the price given: only where both are known."""
    load, price = studied.evidence.load, given.gpu_hour_price
    if price is None or load is None:
        return {}
    now, after = load.servers_needed[BATCH_AT_ONCE], load.servers_needed["continuous"]
    if now is None or after is None:
        return {}
    return {
        "currency": given.currency,
        "server_hour": price,
        "servers_now": now,
        "servers_after": after,
        "hour_now": now * price,
        "hour_after": after * price,
        "hour_saved": (now - after) * price,
    }


def _leading(diagnoses: Sequence[Diagnosis]) -> int:
    """The place of the largest model with the verdict that most of the tokens get."""
    weight: dict[str, float] = {}
    for own in diagnoses:
        weight[own.verdict] = weight.get(own.verdict, 0.0) + own.token_share
    verdict = max(weight, key=lambda name: weight[name])
    return next(place for place, own in enumerate(diagnoses) if own.verdict == verdict)


def _summary(diagnoses: Sequence[Diagnosis], place: int, traffic: Traffic) -> Diagnosis:
    """The verdict that most of the tokens get, told by the leading model.

    Figures and pictures are that model's; the gain is the token-weighted mean of the models', since
    pooling lengths of different models can make variation out of none.
    """
    leading = diagnoses[place]
    gain = _weighted_gain(diagnoses)
    tokens = traffic.table["gen_ai.usage.output_tokens"].to_numpy().astype(np.int64)
    apart = Reason(
        code="models_apart",
        numbers={
            "models": len(diagnoses),
            "pooled_gain": gain_bound(*length_histogram(tokens), leading.slots)
            if leading.slots <= len(tokens)
            else None,
            "gain": None if gain is None else gain.estimate,
        },
    )
    return leading.model_copy(
        update={
            "model": None,
            "requests": len(traffic),
            "token_share": 1.0,
            "gain": gain,
            "output_tokens": length_figures(tokens),
            "reasons": [*leading.reasons, apart],
            # what the leading model alone predicts is not the prediction for all of them
            "actions": [own for own in leading.actions if own.code != "measure_after"],
        }
    )


def _weighted_gain(diagnoses: Sequence[Diagnosis]) -> Estimate | None:
    """The mean of the models' gains, by the tokens they generate."""
    known = [(own.gain, own.token_share) for own in diagnoses if own.gain is not None]
    if not known:
        return None
    total = sum(share for _, share in known)
    return Estimate(
        estimate=sum(gain.estimate * share for gain, share in known) / total,
        low=sum(gain.low * share for gain, share in known) / total,
        high=sum(gain.high * share for gain, share in known) / total,
    )
