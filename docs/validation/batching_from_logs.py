"""How often a log's own times tell how its server batches, on simulated logs of every policy.

uv run docs/validation/batching_from_logs.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from markdown_table import markdown_table
from slotwise_sim import Continuous, Dynamic, PerToken, Policy, Static, Step, Workload, simulate
from slotwise_sim.policies import answers_together
from slotwise_sim.workload import Floats, Ints
from slotwise_workflows.observe.batching import observe_batching
from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.traffic.model import Traffic, made_traffic

POLICIES: Mapping[str, Policy] = {
    "static, released together": Static(),
    "static, padded": Static("own"),
    "static": Static("own", pad=False),
    "greedy, released together": Dynamic(0.0),
    "greedy": Dynamic(0.0, "own", pad=False),
    "within 0.5 s": Dynamic(500.0, "own"),
    "continuous": Continuous(),
}
SLOTS, LOADS, SERVERS = (1, 2, 4, 8, 32), (0.1, 0.3, 0.6, 0.9, 1.5), (1, 1, 1, 2, 4, 16)
LATE = ("no", "by 0.5 s", "by 0.3 s on average")
LENGTHS = ("lognormal", "mixed", "uniform", "equal")
LOGS = 1000
MS_PER_TOKEN, STEP = 20.0, Step(10.0, 2.0, per_prefill_token_ms=0.02)


@dataclass(frozen=True)
class Setting:
    """A server, its requests, and how they were logged.

    Attributes:
        load: Offered load over capacity with all slots busy.
        lengths: One of `LENGTHS`.
        step: Whether an iteration takes longer the more decode in it.
        scatter_s: Each stamp is late by up to this.
        clock_s: Stamps are rounded down to this; 0 is not at all.
        missing: Share of rows that are missing.
        gateway_s: First tokens and ends are later by this.
        late: One of `LATE`: ends alone are later still, by as much each or exponentially.
        cut: Whether the log begins a third into the run.
    """

    policy: str
    slots: int
    servers: int
    load: float
    requests: int
    lengths: str = "lognormal"
    step: bool = True
    first_tokens: bool = True
    scatter_s: float = 0.02
    clock_s: float = 0.0
    missing: float = 0.0
    gateway_s: float = 0.0
    late: str = "no"
    cut: bool = False

    @property
    def kind(self) -> str:
        """What is to be told; a single slot is serial, whatever fills it."""
        if self.slots == 1:
            return "serial"
        return self.policy if self.policy == "continuous" else "batch at once"


def any_setting(rng: np.random.Generator) -> Setting:
    """Returns a setting drawn at random; a third of them continuous."""
    names = [*POLICIES, "continuous", "continuous", "continuous"]
    return Setting(
        policy=names[rng.integers(len(names))],
        slots=int(rng.choice(SLOTS)),
        servers=int(rng.choice(SERVERS)),
        load=float(rng.choice(LOADS)),
        requests=int(rng.choice([150, 500, 2000])),
        lengths=LENGTHS[rng.integers(len(LENGTHS))],
        step=bool(rng.random() < 0.5),
        first_tokens=bool(rng.random() < 0.6),
        scatter_s=float(rng.choice([0, 0.02, 0.05])),
        clock_s=float(rng.choice([0, 0.001, 1])),
        missing=float(rng.choice([0, 0.05])),
        gateway_s=float(rng.choice([0, 0.2])),
        late=LATE[rng.integers(len(LATE))],
        cut=bool(rng.random() < 0.3),
    )


def logged(own: Setting, rng: np.random.Generator) -> Traffic:
    """Returns the log of a setting; answers released together have no first token of their own."""
    tokens, n = _lengths(own.lengths, own.requests, rng), own.requests
    per_request_s = tokens.mean() * (0.010 + 0.002 * own.slots if own.step else MS_PER_TOKEN / 1e3)
    rate = own.load * own.slots * own.servers / per_request_s
    workload = Workload(
        np.cumsum(rng.exponential(1 / rate, n)), tokens, np.full(n, 200, dtype=np.int64)
    )
    policy = POLICIES[own.policy]
    cost = STEP if own.step else PerToken(MS_PER_TOKEN)
    outcome = simulate(workload, policy, cost, slots=own.slots, replicas=own.servers)
    first = outcome.end_s if answers_together(policy) else outcome.first_token_s
    return _seen(own, workload, first, outcome.end_s, rng)


def _seen(
    own: Setting, workload: Workload, first: Floats, end: Floats, rng: np.random.Generator
) -> Traffic:
    n = len(workload)
    arrival = workload.arrival_s
    end = end + own.gateway_s + rng.uniform(0, own.scatter_s, n)
    first = np.minimum(first + own.gateway_s + rng.uniform(0, own.scatter_s, n), end)
    if own.late != "no":
        end = end + (0.5 if own.late == LATE[1] else rng.exponential(0.3, n))
    if own.clock_s:
        arrival, first, end = (
            np.floor(t / own.clock_s) * own.clock_s for t in (arrival, first, end)
        )
    columns = {
        "start_time": pl.Series(np.rint(arrival * 1e9).astype(np.int64)),
        "e2e_latency": pl.Series(end - arrival),
    }
    if own.first_tokens:
        columns["gen_ai.response.time_to_first_chunk"] = pl.Series(np.maximum(first - arrival, 0))
    traffic = made_traffic(workload, format_id="made")
    table = traffic.table.with_columns(**columns)[n // 3 if own.cut else 0 :]
    return replace(traffic, table=table.filter(pl.Series(rng.random(len(table)) >= own.missing)))


def _lengths(name: str, n: int, rng: np.random.Generator) -> Ints:
    if name == "lognormal":
        return np.clip(rng.lognormal(np.log(120), 0.9, n), 1, 2000).astype(np.int64)
    if name == "mixed":
        long = rng.random(n) < 0.15
        return np.where(long, rng.integers(400, 1001, n), rng.integers(40, 201, n))
    return rng.integers(50, 250, n) if name == "uniform" else np.full(n, 150, dtype=np.int64)


def judged(own: Setting, told: ObservedBatching) -> str:
    """Returns whether `continuous`, or that it is not, was told right, left open, or told wrong."""
    if told.kind == "undetermined":
        return "open"
    return "right" if (told.kind == "continuous") == (own.kind == "continuous") else "wrong"


Tally = dict[tuple[str, bool, bool], Counter[str]]


def measure(logs: int = LOGS, seed: int = 0) -> Tally:
    """Returns how logs were told, by what they are, first tokens, and number of servers known."""
    rng = np.random.default_rng(seed)
    tally: Tally = {}
    for _ in range(logs):
        own = any_setting(rng)
        log = logged(own, rng)
        for known in (True, False):
            told = observe_batching(log, own.servers if known else None)
            key = own.kind, told.first_tokens, known
            tally.setdefault(key, Counter())[judged(own, told)] += 1
    return tally


def tables(tally: Tally) -> list[str]:
    """Returns the table of the page."""
    rows = [
        (
            kind,
            "yes" if first else "no",
            "yes" if known else "no",
            *(counted[answer] for answer in ("right", "open", "wrong")),
        )
        for (kind, first, known), counted in sorted(tally.items(), reverse=True)
    ]
    head = ("server", "first tokens", "servers known", "right", "open", "wrong")
    return [markdown_table(head, rows)]


if __name__ == "__main__":
    print("\n\n".join(tables(measure())))
