"""Closed loops and balancers that look, as queues: against formulas and against Ciw."""

from __future__ import annotations

import math

import ciw
import numpy as np
import pytest
from scipy.special import stdtrit

from slotwise_sim import (
    Balancer,
    Continuous,
    Dynamic,
    PerToken,
    Policy,
    Step,
    Users,
    Workload,
    simulate,
)
from slotwise_sim.synthetic import exponential_times, poisson_arrivals

# Lengths are geometric, as good as exponential, and the mean takes a second.
PER_TOKEN = PerToken(1.0)
STEP = Step(base_ms=10.0)


def interval(values: list[float], confidence: float = 0.999) -> tuple[float, float]:
    """Where the mean of independent runs lies."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * error
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def exponential_requests(
    n: int, arrival_s: float, rng: np.random.Generator, tokens: int = 1000
) -> Workload:
    """Requests with a mean gap between arrivals, all at once if it is 0."""
    arrivals = poisson_arrivals(n, 1 / arrival_s, rng) if arrival_s > 0 else np.zeros(n)
    return Workload(arrivals, rng.geometric(1 / tokens, n), np.zeros(n, dtype=np.int64))


# Machine repairmen: c of them, N machines that run for Z on average and are mended in S


def machine_repairmen(users: int, think_s: float, slots: int) -> tuple[float, float]:
    """Requests per second and mean latency of M/M/c//N, service of one second on average."""
    weights = [1.0]  # of k users awaiting answers: births over deaths
    for k in range(users):
        weights.append(weights[-1] * ((users - k) / think_s) / min(k + 1, slots))
    awaiting = sum(k * weight for k, weight in enumerate(weights)) / sum(weights)
    rate = (users - awaiting) / think_s
    return rate, awaiting / rate


@pytest.mark.parametrize(("users", "think_s", "slots"), [(4, 1.0, 1), (12, 5.0, 3), (30, 2.0, 8)])
@pytest.mark.parametrize("cost", [PER_TOKEN, STEP], ids=["per token", "step"])
def test_users_who_think_are_machines_that_run(
    users: int, think_s: float, slots: int, cost: PerToken | Step
) -> None:
    rng = np.random.default_rng(users)
    rates, latencies = [], []
    for _ in range(20):
        outcome = simulate(
            exponential_requests(4000, 0.0, rng, 1000 if cost is PER_TOKEN else 100),
            Continuous(),
            cost,
            slots=slots,
            users=Users(users, exponential_times(4000, think_s, rng)),
        )
        answers_s = np.sort(outcome.end_s)[400:-400]  # neither while it fills nor while it empties
        rates.append((len(answers_s) - 1) / float(answers_s[-1] - answers_s[0]))
        latencies.append(float((outcome.end_s - outcome.arrival_s)[400:-400].mean()))
    rate, latency_s = machine_repairmen(users, think_s, slots)
    for formula, simulated in [(rate, rates), (latency_s, latencies)]:
        low, high = interval(simulated)
        assert low < formula < high
        assert high - low < 0.12 * formula


def test_many_users_get_what_the_slots_can_do_and_few_what_they_ask_for() -> None:
    """The asymptotes of a closed network: c / S far beyond the knee, N / (Z + S) far before."""
    rng = np.random.default_rng(5)
    n, slots, think_s = 40_000, 8, 9.0

    def rate(users: int) -> float:
        workload = exponential_requests(n, 0.0, rng)
        outcome = simulate(
            workload,
            Continuous(),
            PER_TOKEN,
            slots=slots,
            users=Users(users, exponential_times(n, think_s, rng)),
        )
        return n / float(outcome.end_s.max())

    assert rate(400) == pytest.approx(slots / 1.0, rel=0.02)
    assert rate(8) == pytest.approx(8 / (think_s + 1.0), rel=0.02)


# A balancer that looks


def mean_wait_s(workload: Workload, policy: Policy, balancer: Balancer) -> float:
    outcome = simulate(workload, policy, PER_TOKEN, slots=2, replicas=4, balancer=balancer)
    return warm_mean(outcome.start_s - outcome.arrival_s)


def warm_mean(waits_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The first fifth fills an empty system and is left out."""
    return float(waits_s[len(waits_s) // 5 :].mean())


@pytest.mark.parametrize("policy", [Continuous(), Dynamic(0), Dynamic(0, release="own")])
def test_whoever_looks_waits_less(policy: Policy) -> None:
    rng = np.random.default_rng(6)
    saved_s = []
    for _ in range(10):
        workload = exponential_requests(5000, 1 / (8 * 0.6), rng)
        dealt_s = mean_wait_s(workload, policy, "round_robin")
        saved_s.append(dealt_s - mean_wait_s(workload, policy, "least_busy"))
    assert interval(saved_s)[0] > 0


class FewestInFlight(ciw.routing.JoinShortestQueue):  # type: ignore[misc]
    """Ciw's own looks at those who wait alone."""

    def get_queue_size(self, node_index: int) -> int:
        """Counts those in service as well."""
        return int(self.simulation.nodes[node_index].number_of_individuals)


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_the_fewest_in_flight_as_in_ciw(utilisation: float) -> None:
    """Ties go round here and by lot there: while service is exponential, servers are alike."""
    rate, n, rng = 8 * utilisation, 10_000, np.random.default_rng(7)
    servers = [2, 3, 4, 5]
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate), *[None] * 4],
        service_distributions=[ciw.dists.Deterministic(0.0), *[ciw.dists.Exponential(1.0)] * 4],
        number_of_servers=[math.inf, *[2] * 4],
        routing=ciw.routing.NetworkRouting(
            [FewestInFlight(servers), *[ciw.routing.Leave() for _ in servers]]
        ),
    )

    def ciw_wait_s(seed: int) -> float:
        ciw.seed(seed)
        run = ciw.Simulation(network)
        run.simulate_until_max_customers(n, method="Finish")
        records = [record for record in run.get_all_records() if record.node in servers]
        records.sort(key=lambda record: record.arrival_date)
        return warm_mean(np.array([record.waiting_time for record in records]))

    theirs = [ciw_wait_s(seed) for seed in range(10)]
    workloads = [exponential_requests(n, 1 / rate, rng) for _ in range(40)]
    ours, dealt = (
        [mean_wait_s(workload, Continuous(), balancer) for workload in workloads]
        for balancer in ("least_busy", "round_robin")
    )
    assert interval(theirs)[0] < interval(ours)[1]
    assert interval(ours)[0] < interval(theirs)[1]
    assert interval(theirs)[1] < interval(dealt)[0]
