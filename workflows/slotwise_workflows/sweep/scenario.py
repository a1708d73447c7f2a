"""What all points of a sweep share, and the traffic that a point makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from slotwise_sim import (
    Binned,
    Continuous,
    Cost,
    Dynamic,
    Memory,
    Outcome,
    PerToken,
    Policy,
    Static,
    Users,
    Workload,
    simulate,
)
from slotwise_sim.replicate import resample
from slotwise_sim.variation import with_cv
from slotwise_sim.workload import all_at_once, at_load
from slotwise_workflows.compare.sustained import sustained_per_s
from slotwise_workflows.outcome import with_predictions
from slotwise_workflows.sweep.points import Point, Setting
from slotwise_workflows.thinking import Thinking

IN_BATCHES = "*"
"""No policy of a file is called that."""

_KEPT = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """What all points of a sweep share; it goes to every worker once.

    Attributes:
        workload: The traffic at load 1.
        policies: What is compared, by name, in the order of the workload file.
        costs: What tokens or iterations cost, by the name that settings have it by.
        run: Requests drawn together when the traffic is resampled, see
            `slotwise_sim.replicate.run_length`; found once, since it is the workload's.
        memory: KV memory of each server; None never limits. It matters under a step cost alone.
        prediction_errors: How far the lengths that a binned policy goes by are off, by its name.
        thinking: How long users of a closed loop think before each request.
        objectives: What users are promised: p95 in seconds of `latency` and `ttft`, by name.
        gain_adopt: The gain in capacity from which a change is worth it.
        waiting_adopt: The fall of the mean latency, as a share, from which it is.
    """

    workload: Workload
    policies: Mapping[str, Policy]
    costs: Mapping[str, Cost]
    run: int
    memory: Memory | None = None
    prediction_errors: Mapping[str, float] = field(default_factory=dict)
    thinking: Thinking = field(default_factory=Thinking)
    objectives: Mapping[str, float] = field(default_factory=dict)
    gain_adopt: float = 1.2
    waiting_adopt: float = 0.2

    def policy(self, name: str) -> Policy:
        """A policy by its name, `IN_BATCHES` included."""
        if name != IN_BATCHES:
            return self.policies[name]
        batches = [own for own in self.policies.values() if isinstance(own, Static | Dynamic)]
        return batches[0] if batches else Static()

    def cost(self, setting: Setting) -> Cost:
        """What tokens or iterations cost in a setting."""
        return self.costs[setting.cost]

    def serve(
        self,
        policy: str,
        traffic: Workload,
        setting: Setting,
        *,
        load: float | None,
        users: Users | None = None,
    ) -> Outcome:
        """Replays traffic on the servers of a setting; at a load of None all of it is there."""
        return simulate(
            all_at_once(traffic) if load is None else at_load(traffic, load),
            self.policies[policy],
            self.cost(setting),
            slots=setting.slots,
            replicas=setting.replicas,
            balancer=setting.balancer,
            users=users,
            memory=self.memory_of(setting),
        )

    def memory_of(self, setting: Setting) -> Memory | None:
        """The memory that limits a server in a setting."""
        return None if isinstance(self.cost(setting), PerToken) else self.memory

    def baseline(self) -> str:
        """What the others are compared with: the first batch-at-once policy, else the first."""
        batching = [name for name, own in self.policies.items() if not isinstance(own, Continuous)]
        return (batching or list(self.policies))[0]


@dataclass(frozen=True, slots=True)
class Bench:
    """A scenario with what a worker has worked out of it: points next to each other share much.

    Attributes:
        scenario: What all points share.
        traffic: A point's traffic at load 1, its lengths respread, resampled. Raises ValueError
            where the lengths cannot be respread.
        sustained_per_s: Requests per second that a policy, by name, serves of that traffic while
            work always waits, all replicas together. None where there are fewer requests than
            slots, unless slots / service time needs none. The name `IN_BATCHES` is of batches in
            order of arrival: the first static or dynamic policy, or static where there is none.
    """

    scenario: Scenario
    traffic: Callable[[Point], Workload]
    sustained_per_s: Callable[[str, Point], float | None]

    def gain(self, policy: str, point: Point) -> float | None:
        """What a policy can sustain over what batches in order of arrival can."""
        return ratio(self.sustained_per_s(policy, point), self.sustained_per_s(IN_BATCHES, point))

    def seen_by(self, policy: str, point: Point) -> Workload:
        """The traffic as a policy meets it: one that goes by predicted lengths is given them."""
        return seen_by(self.scenario, policy, self.traffic(point), point.seed)


def bench(scenario: Scenario) -> Bench:
    """A bench to work at; it keeps what the last few points needed."""

    @lru_cache(maxsize=_KEPT)
    def respread(cv: float | None) -> Workload:
        if cv is None:
            return scenario.workload
        tokens = with_cv(scenario.workload.output_tokens, cv)
        return replace(scenario.workload, output_tokens=tokens)

    @lru_cache(maxsize=_KEPT)
    def resampled(cv: float | None, seed: int) -> Workload:
        return resample(respread(cv), np.random.default_rng(seed), run=scenario.run)

    @lru_cache(maxsize=_KEPT * 64)
    def kept_per_s(policy: str, server: Setting, seed: int) -> float | None:
        traffic = seen_by(scenario, policy, resampled(server.length_cv, seed), seed)
        return sustained(scenario, policy, traffic, server)

    return Bench(
        scenario,
        lambda point: resampled(point.setting.length_cv, point.seed),
        lambda policy, point: kept_per_s(policy, point.setting.server(), point.seed),
    )


def seen_by(scenario: Scenario, policy: str, workload: Workload, seed: int) -> Workload:
    """Traffic as a policy meets it: one that goes by predicted lengths is given them."""
    if not isinstance(scenario.policies.get(policy), Binned):
        return workload
    return with_predictions(workload, scenario.prediction_errors.get(policy, 0.0), seed)


def sustained(
    scenario: Scenario, policy: str, workload: Workload, setting: Setting
) -> float | None:
    """Requests per second that a policy serves while work always waits; see `Bench`."""
    chosen, cost = scenario.policy(policy), scenario.cost(setting)
    needs_none = isinstance(chosen, Continuous) and isinstance(cost, PerToken)
    if len(workload) < setting.slots * setting.replicas and not needs_none:
        return None
    return sustained_per_s(
        all_at_once(workload),
        chosen,
        cost,
        slots=setting.slots,
        replicas=setting.replicas,
        memory=scenario.memory_of(setting),
    )


def offered_per_s(workload: Workload) -> float | None:
    """Requests that arrive per second; None without a span of arrivals.

    n requests span n - 1 gaps, so the rate is (n - 1) over the span.
    """
    span_s = float(np.ptp(workload.arrival_s))
    return None if span_s == 0 else (len(workload) - 1) / span_s


def ratio(part: float | None, whole: float | None) -> float | None:
    """One over the other; None where either is."""
    return None if part is None or whole is None else part / whole
