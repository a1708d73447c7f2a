"""Continuous batching as a queue, against formulas and Ciw: the tables of ``queueing.md``.

uv run docs/validation/queueing.py

Ciw is a simulator of queueing networks by other authors, written in plain Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import ciw
import numpy as np
from scipy.special import stdtrit

from markdown_table import markdown_table
from slotwise_sim import Continuous, Cost, PerToken, Step, Workload, simulate
from slotwise_sim.synthetic import Lengths, lognormal, poisson_arrivals
from slotwise_sim.workload import Floats, Ints

TOKENS_PER_S = 1_000_000  # so many that lengths are as good as continuous; the mean takes a second
PER_TOKEN = PerToken(1000 / TOKENS_PER_S)
STEP = Step(base_ms=1000 / TOKENS_PER_S)
SHARED = Step(base_ms=0, per_seq_ms=1000 / TOKENS_PER_S)
ENOUGH_SLOTS = 512  # of a shared processor: never all in use at these loads


@dataclass(frozen=True)
class Interval:
    """A mean of independent runs and half the width of its 95 % interval."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half_width:.3f}"

    def holds(self, value: float, widths: float = 1.0) -> bool:
        """Returns whether a value is within so many half widths."""
        return abs(value - self.mean) <= widths * self.half_width


@dataclass(frozen=True)
class AgainstFormula:
    """Seconds as a formula has them and as simulated."""

    queue: str
    slots: int
    utilisation: float
    formula: float
    simulated: Interval


@dataclass(frozen=True)
class AgainstCiw:
    """Mean wait for a slot in seconds, service log-normal of mean one."""

    slots: int
    utilisation: float
    cv: float
    simulated: Interval
    ciw: Interval


def measure() -> tuple[list[AgainstFormula], list[AgainstCiw]]:
    """Returns both tables' rows."""
    rng = np.random.default_rng(20260818)
    formulas = [
        *(
            AgainstFormula(
                f"M/M/c, {name}", c, u, erlang_c_wait(u, c), _waits(_exponential, c, u, cost, rng)
            )
            for name, cost in (("per token", PER_TOKEN), ("step", STEP))
            for c, u in ((1, 0.5), (4, 0.7), (8, 0.8), (32, 0.9))
        ),
        *(
            AgainstFormula(
                f"M/G/1, CV {cv}",
                1,
                u,
                pollaczek_khinchine_wait(u, cv),
                _waits(_lognormal(cv), 1, u, PER_TOKEN, rng),
            )
            for cv, u in ((0.5, 0.7), (1.5, 0.6))
        ),
        *(
            AgainstFormula(
                f"M/G/1 shared, CV {cv}",
                ENOUGH_SLOTS,
                u,
                1 / (1 - u),
                _latencies(_lognormal(cv), u, rng),
            )
            for cv, u in ((0.5, 0.7), (1.5, 0.6))
        ),
    ]
    peers = [
        AgainstCiw(c, u, cv, _waits(_lognormal(cv), c, u, PER_TOKEN, rng), _ciw_waits(c, u, cv))
        for c, u, cv in ((2, 0.7, 0.5), (4, 0.8, 1.0), (8, 0.8, 1.5))
    ]
    return formulas, peers


def tables(measured: tuple[list[AgainstFormula], list[AgainstCiw]]) -> list[str]:
    """Returns the tables of the page."""
    formulas, peers = measured
    return [
        markdown_table(
            ["queue", "slots", "utilisation", "formula s", "simulated s"],
            ([f.queue, f.slots, f.utilisation, f"{f.formula:.3f}", f.simulated] for f in formulas),
        ),
        markdown_table(
            ["slots", "utilisation", "CV", "simulated s", "Ciw s"],
            ([p.slots, p.utilisation, p.cv, p.simulated, p.ciw] for p in peers),
        ),
    ]


def erlang_c_wait(utilisation: float, slots: int) -> float:
    """Mean queue delay of M/M/c, service of one second: Erlang's C / (c - offered load)."""
    offered = utilisation * slots
    below = sum(offered**k / math.factorial(k) for k in range(slots))
    all_busy = offered**slots / math.factorial(slots) / (1 - utilisation)
    return all_busy / (below + all_busy) / (slots - offered)


def pollaczek_khinchine_wait(utilisation: float, cv: float) -> float:
    """Mean queue delay of M/G/1, service of one second on average."""
    return utilisation * (1 + cv**2) / 2 / (1 - utilisation)


def _exponential(n: int, rng: np.random.Generator) -> Ints:
    return np.ceil(rng.exponential(TOKENS_PER_S, n)).astype(np.int64)


def _lognormal(cv: float) -> Lengths:
    return lambda n, rng: lognormal(n, TOKENS_PER_S, cv, rng)


def _workload(lengths: Lengths, rate: float, rng: np.random.Generator) -> Workload:
    n = 40_000
    return Workload(poisson_arrivals(n, rate, rng), lengths(n, rng), np.zeros(n, dtype=np.int64))


def _waits(
    lengths: Lengths, slots: int, utilisation: float, cost: Cost, rng: np.random.Generator
) -> Interval:
    def wait_s() -> Floats:
        workload = _workload(lengths, utilisation * slots, rng)
        outcome = simulate(workload, Continuous(), cost, slots=slots)
        return outcome.start_s - outcome.arrival_s

    return _interval([_warm_mean(wait_s()) for _ in range(30)])


def _latencies(lengths: Lengths, utilisation: float, rng: np.random.Generator) -> Interval:
    """Of a server whose iterations take as long as sequences are many: they share one processor."""

    def latency_s() -> Floats:
        workload = _workload(lengths, utilisation, rng)
        outcome = simulate(workload, Continuous(), SHARED, slots=ENOUGH_SLOTS)
        return outcome.end_s - outcome.arrival_s

    return _interval([_warm_mean(latency_s()) for _ in range(30)])


def _ciw_waits(slots: int, utilisation: float, cv: float) -> Interval:
    variance = math.log1p(cv**2)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=utilisation * slots)],
        service_distributions=[ciw.dists.Lognormal(-variance / 2, math.sqrt(variance))],
        number_of_servers=[slots],
    )

    def mean_wait_s(seed: int) -> float:
        ciw.seed(seed)
        run = ciw.Simulation(network)
        run.simulate_until_max_customers(8_000, method="Finish")
        records = sorted(run.get_all_records(), key=lambda record: record.arrival_date)
        return _warm_mean(np.array([record.waiting_time for record in records]))

    return _interval([mean_wait_s(seed) for seed in range(10)])


def _warm_mean(values: Floats) -> float:
    """The first fifth fills an empty system and is left out."""
    return float(values[len(values) // 5 :].mean())


def _interval(means: list[float]) -> Interval:
    error = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    return Interval(float(np.mean(means)), float(stdtrit(len(means) - 1, 0.975)) * error)


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
