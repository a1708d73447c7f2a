"""One model's traffic, measured and compared: everything a verdict and its report rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from slotwise_sim import Workload
from slotwise_sim.workload import all_at_once, rows_of
from slotwise_workflows.compare.capacity import Capacity, batch_tokens, capacity
from slotwise_workflows.compare.load import Load, busiest_hour, shared_batches
from slotwise_workflows.compare.server import BATCH_AT_ONCE, Server, stated_server
from slotwise_workflows.compare.sorting import sorted_by_length
from slotwise_workflows.facts import MOSTLY_TIMED, Facts, gather
from slotwise_workflows.given import Given
from slotwise_workflows.measure.arrivals import arrival_figures, busiest_window, inside
from slotwise_workflows.measure.lengths import length_figures
from slotwise_workflows.measure.prefixes import repeated_prefix_share
from slotwise_workflows.measure.segments import segmentations
from slotwise_workflows.outcome import measure
from slotwise_workflows.recommend.evidence import Evidence
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.record import Estimate
from slotwise_workflows.requests import beyond_caps, check_memory
from slotwise_workflows.small_sweep import Swept, small_sweep
from slotwise_workflows.traffic.model import Traffic

# A replay that is so many times slower than the log is not of the same server; nor is one that is
# so much slower where the log is about as fast as continuous batching.
CONTRADICTS = 2.0
APART = 1.2
SAME = 1.05


@dataclass(frozen=True, slots=True)
class Study:
    """What was measured and simulated.

    Attributes:
        traffic: The requests of one model.
        ordered: All of them, in order of arrival where it is known.
        server: The setting that figures are stated at.
        replayed: The busiest hour at its own times, or all requests at once where times cannot be
            replayed.
        idle: Idle share of the slots under full load, by policy; empty where no batch is filled.
        evidence: What the verdict rests on.
        swept: A small sweep around the server; None where no batch is filled.
    """

    traffic: Traffic
    ordered: Workload
    server: Server
    replayed: Workload
    idle: Mapping[str, Estimate]
    evidence: Evidence
    swept: Swept | None


def study(traffic: Traffic, given: Given, thresholds: Thresholds, seed: int) -> Study:
    """Measures one model's traffic and runs it under both policies.

    Args:
        traffic: The requests of one model, at least one.
        given: What the user told about the server.
        thresholds: Where one verdict ends and the next begins.
        seed: Of the bootstrap and of the resampled traffic.

    Raises:
        InputError: A request can never run in the memory told.
        ConfigError: At the step cost told, no request takes any time.
    """
    rng = np.random.default_rng(seed)
    facts = gather(traffic, given)
    server = stated_server(facts, given)
    workload = traffic.workload()
    if server.memory is not None:
        check_memory(workload, server.memory, traffic, place=given.memory_at)
    ordered = all_at_once(workload)
    measure(server.run(ordered, "continuous"))  # raises where no request takes any time
    found = capacity(ordered, server, facts, in_order=traffic.clock is not None, rng=rng)
    objectives = _objectives(given)
    worth_it = thresholds.waiting_adopt
    load = (
        busiest_hour(workload, server, facts, found.by_slots, objectives, worth_it, rng)
        if found is not None and _replayable(traffic, facts)
        else None
    )
    contradicted = None if load is None else _contradiction(traffic, workload, load)
    if contradicted is not None:
        load = None  # it is not this server whose users wait
    replayed = _backlog(traffic, ordered, rng) if load is None else load.requests
    evidence = _evidence(
        traffic, ordered, facts, found, load, contradicted, objectives, thresholds, rng
    )
    if found is not None and facts.mode.value == "offline":
        by_length = sorted_by_length(replayed, server, *rng.spawn(1))
        evidence = replace(evidence, if_sorted=by_length)
    return Study(
        traffic=traffic,
        ordered=ordered,
        server=server,
        replayed=replayed,
        idle={} if found is None else found.idle,
        evidence=evidence,
        swept=None
        if found is None
        else small_sweep(
            replayed,
            server,
            timed=load is not None,
            objectives=objectives,
            thresholds=thresholds,
            seed=seed,
        ),
    )


def _backlog(traffic: Traffic, ordered: Workload, rng: np.random.Generator) -> Workload:
    """All requests at once: in order of arrival, or drawn at random where no order is known."""
    if traffic.clock is not None:
        return ordered
    return rows_of(ordered, rng.permutation(len(ordered)))


def _replayable(traffic: Traffic, facts: Facts) -> bool:
    """Whether the log's own times say anything about waiting on the server described."""
    start = traffic.table["start_time"]
    return (
        traffic.clock is not None
        and start.n_unique() > 1
        and facts.replicas.value is not None
        and facts.loop.value != "closed"
        and facts.mode.value == "online"
    )


def _contradiction(traffic: Traffic, workload: Workload, load: Load) -> tuple[float, float] | None:
    """The busiest hour's mean latency by the log and by the replay, where users wait far less.

    Or where they wait no longer than with continuous batching, and that is well below. A server of
    more replicas, a faster pace, or one that batches continuously already: nothing that is
    simulated for the server described is true of it.
    """
    hour = pl.Series(inside(workload, busiest_window(workload)))
    measured = traffic.table["e2e_latency"].filter(hour).drop_nulls()
    if len(measured) < len(load.requests) * MOSTLY_TIMED:
        return None
    told, replayed = float(measured.to_numpy().mean()), load.latency_mean_s
    batched = replayed[BATCH_AT_ONCE]
    refilled = told <= replayed["continuous"] * SAME and told * APART < batched
    return (told, batched) if told * CONTRADICTS < batched or refilled else None


def _objectives(given: Given) -> dict[str, float]:
    limits = {"latency": given.latency_p95_s, "ttft": given.ttft_p95_s}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _evidence(
    traffic: Traffic,
    ordered: Workload,
    facts: Facts,
    found: Capacity | None,
    load: Load | None,
    contradicted: tuple[float, float] | None,
    objectives: dict[str, float],
    thresholds: Thresholds,
    rng: np.random.Generator,
) -> Evidence:
    prompts = traffic.table["gen_ai.usage.input_tokens"].drop_nulls()
    users_wait = traffic.clock is not None and facts.mode.value == "online"
    return Evidence(
        requests=len(traffic),
        facts=facts,
        lengths=length_figures(ordered.output_tokens),
        gain=None if found is None else found.gain,
        gain_by_slots={} if found is None else found.by_slots,
        by_lengths=None if found is None else found.by_lengths,
        by_padding={} if found is None else found.by_padding,
        even=1.0 if found is None else found.even,
        bound=None if found is None else found.bound,
        overlapped=None if facts.in_flight is None else facts.in_flight > 1,
        shared=(
            shared_batches(traffic.workload(), facts, thresholds.shared_at_load)
            if users_wait
            else None
        ),
        load=load,
        contradicted=contradicted,
        arrivals=arrival_figures(traffic),
        segments=segmentations(traffic, rng),
        prefix_share=repeated_prefix_share(traffic),
        prompt_mean=float(prompts.to_numpy().mean()) if len(prompts) else None,
        batch_tokens=batch_tokens(ordered, int(facts.slots.value)),
        prompts_unknown=1 - len(prompts) / len(traffic),
        beyond_caps=beyond_caps(ordered, facts.memory),
        flags=traffic.flags,
        truncated_share=float(traffic.table["truncated"].sum()) / len(traffic),
        bench=traffic.bench,
        verified=traffic.verified,
        objectives=objectives,
        if_sorted=None,
    )
