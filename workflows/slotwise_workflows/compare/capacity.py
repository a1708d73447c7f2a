"""Capacity: what is gained by refilling slots at once, whatever the load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim import PerToken, Workload
from slotwise_sim.backlog import backlog_gain_interval, idle_share_interval
from slotwise_sim.lengths import gain_bound_intervals, in_order_gain, in_order_gain_interval
from slotwise_sim.synthetic import predicted_tokens
from slotwise_sim.workload import Floats, Ints, all_at_once, rows_of
from slotwise_workflows.compare.server import BATCH_AT_ONCE, COMPARED, Server
from slotwise_workflows.facts import Facts
from slotwise_workflows.result import Estimate

# Of more requests, as many are simulated, in runs of consecutive ones from all over the log.
MOST_SIMULATED = 1_000_000
RUNS = 1000
# Standard error of a guessed length's logarithm: two of three guesses within a factor of 1.6.
GUESS_ERROR = 0.5


@dataclass(frozen=True, slots=True)
class Capacity:
    """Sustainable requests per second, continuous over batch-at-once.

    Attributes:
        by_slots: The gain at the fewest, the stated and the most slots assumed.
        gain: At the stated slots; its range runs over the assumed slots too.
        by_lengths: The gain in order of arrival by lengths alone: at a fixed time per token the
            same as `gain`.
        bound: `gain_bound` at the stated slots: batches of requests regrouped at random.
        by_padding: The gain over batches that are padded, and over those that are not.
        even: What these requests would gain if all answers had the mean length.
        idle: Idle share of the slots under full load, by policy.
    """

    by_slots: Mapping[int, Estimate]
    gain: Estimate
    by_lengths: Estimate
    bound: Estimate
    by_padding: Mapping[bool, float]
    even: float
    idle: Mapping[str, Estimate]


def capacity(
    workload: Workload, server: Server, facts: Facts, *, in_order: bool, rng: np.random.Generator
) -> Capacity | None:
    """The capacity gain over the assumed slots; None where the sample fills no batch.

    Args:
        workload: All requests, in order of arrival where `in_order`.
        server: The stated setting.
        facts: The slots assumed.
        in_order: Whether batches are formed in the order given; else at random.
        rng: For the bootstrap.
    """
    low, value, high = (int(s) for s in (facts.slots.low, facts.slots.value, facts.slots.high))
    if high > len(workload) or len(workload) < 2:
        return None
    tokens = workload.output_tokens
    sizes = sorted({low, value, high})
    bounds = {b: _estimate(*v) for b, v in gain_bound_intervals(tokens, sizes, rng).items()}
    served = in_order_of_service(tokens, server.replicas)
    by_lengths = (
        {b: _estimate(*in_order_gain_interval(served, b, rng)) for b in sizes}
        if in_order
        else bounds
    )
    if isinstance(server.cost, PerToken):
        gain = _over_all(by_lengths, value)
        return Capacity(
            by_slots=by_lengths,
            gain=gain,
            by_lengths=gain,
            bound=bounds[value],
            by_padding=dict.fromkeys((True, False), gain.estimate),
            even=1.0,
            idle={BATCH_AT_ONCE: _idle_behind_the_longest(gain), "continuous": _estimate(0, 0, 0)},
        )
    order = np.arange(len(workload)) if in_order else rng.permutation(len(workload))
    requests = as_served(rows_of(workload, order), server.replicas)
    gains: dict[int, Estimate] = {}
    idle: dict[str, dict[int, Estimate]] = {policy: {} for policy in COMPARED}
    for slots in sizes:
        at = replace(server, slots=slots)
        batch, continuous = (at.backlog(requests, policy) for policy in COMPARED)
        gains[slots] = _estimate(*backlog_gain_interval(batch, continuous, rng))
        for policy, own in zip(COMPARED, (batch, continuous), strict=True):
            idle[policy][slots] = _estimate(*idle_share_interval(own, rng))
    return Capacity(
        by_slots=gains,
        gain=_over_all(gains, value),
        by_lengths=_over_all(by_lengths, value),
        bound=bounds[value],
        by_padding={
            pad: gain_in_order(requests, replace(server, pad=pad)) for pad in (True, False)
        },
        even=gain_in_order(_with_even_lengths(requests), server),
        idle={policy: _over_all(shares, value) for policy, shares in idle.items()},
    )


@dataclass(frozen=True, slots=True)
class Sorted:
    """What batches of a job gain if its requests are sorted by length first.

    Attributes:
        perfect: By the lengths themselves, which nobody knows beforehand: an upper bound.
        guessed: By guesses that are typically off by the factor `off`.
        off: That factor.
    """

    perfect: float
    guessed: float
    off: float


def sorted_by_length(job: Workload, server: Server, rng: np.random.Generator) -> Sorted:
    """The cure for those who cannot change their engine: like lengths share a batch.

    Args:
        job: All requests at once, in the order in which they are batched today.
        server: The stated setting.
        rng: For the guesses.
    """

    def batch_s(lengths: Floats | Ints | None) -> float:
        order = slice(None) if lengths is None else np.argsort(lengths, kind="stable")
        requests = as_served(rows_of(job, order), server.replicas)
        return float(server.backlog(requests, BATCH_AT_ONCE).server_s.sum())

    today_s = batch_s(None)
    return Sorted(
        perfect=today_s / batch_s(job.output_tokens),
        guessed=today_s / batch_s(predicted_tokens(job.output_tokens, GUESS_ERROR, rng)),
        off=math.exp(GUESS_ERROR),
    )


def gain_in_order(requests: Workload, server: Server) -> float:
    """The capacity gain of one setting.

    Args:
        requests: `as_served`.
        server: The setting; its replicas are not looked at.
    """
    if isinstance(server.cost, PerToken):
        return in_order_gain(requests.output_tokens, server.slots)
    batch, continuous = (server.backlog(requests, policy) for policy in COMPARED)
    return float(batch.server_s.sum() / continuous.server_s.sum())


def as_served(workload: Workload, replicas: int) -> Workload:
    """Requests in the order in which servers meet them, one server after another.

    Args:
        workload: In order of arrival. Of more than `MOST_SIMULATED` requests, runs of consecutive
            ones from all over the log are taken.
        replicas: Servers behind the balancer.
    """
    rows = in_order_of_service(np.arange(len(workload)), replicas)
    if len(rows) > MOST_SIMULATED:
        rows = np.concatenate([run[: MOST_SIMULATED // RUNS] for run in np.array_split(rows, RUNS)])
    return replace(rows_of(workload, rows), arrival_s=np.zeros(len(rows)))


def in_order_of_service(tokens: Ints, replicas: int) -> Ints:
    """Lengths in the order in which batches of replicas meet them, one replica after another.

    Round robin gives each replica every n-th request. The few batches that would reach from one
    replica's requests into the next one's do not matter.

    Args:
        tokens: In order of arrival, shape (n,).
        replicas: Servers behind the balancer.
    """
    return np.concatenate([tokens[replica::replicas] for replica in range(replicas)])


def batch_tokens(workload: Workload, slots: int) -> float:
    """KV tokens that a batch of these requests holds at its end, on average."""
    return slots * float((workload.prompt_tokens + workload.output_tokens).mean())


def sustainable_per_s(workload: Workload, server: Server, gain: float) -> dict[str, float]:
    """Requests per second each policy can sustain, all replicas together.

    At a fixed time per token, continuous keeps every slot busy: slots / E[service], and serial
    serves one at a time. Under a step cost both are simulated. Batch-at-once holds every slot for
    the longest of its batch, `gain` times as long on average.

    Args:
        workload: The requests, in any order.
        server: The setting.
        gain: Its capacity gain.
    """
    if isinstance(server.cost, PerToken):
        service_s = float(workload.output_tokens.mean()) * server.cost.ms_per_token / 1000
        serial = server.replicas / service_s
        continuous = server.replicas * server.slots / service_s
    else:
        requests = as_served(all_at_once(workload), server.replicas)
        serial, continuous = (
            server.replicas * server.backlog(requests, policy).per_s
            for policy in ("serial", "continuous")
        )
    return {"serial": serial, BATCH_AT_ONCE: continuous / gain, "continuous": continuous}


def _over_all(by_slots: Mapping[int, Estimate], slots: int) -> Estimate:
    """The figure at these slots, its range over all."""
    return Estimate(
        estimate=by_slots[slots].estimate,
        low=min(own.low for own in by_slots.values()),
        high=max(own.high for own in by_slots.values()),
    )


def _idle_behind_the_longest(gain: Estimate) -> Estimate:
    """At a fixed time per token: batches hold slots `gain` times as long as requests use them."""
    return _estimate(*(max(0.0, 1 - 1 / g) for g in (gain.estimate, gain.low, gain.high)))


def _with_even_lengths(workload: Workload) -> Workload:
    mean = max(1, round(float(workload.output_tokens.mean())))
    return replace(workload, output_tokens=np.full(len(workload), mean))


def _estimate(estimate: float, low: float, high: float) -> Estimate:
    return Estimate(estimate=estimate, low=low, high=high)
