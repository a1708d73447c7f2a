"""Known servers, hundreds of them, in virtual time: right or undetermined, never surely wrong."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.batching.conclude import Conclusion
from slotwise_workflows.probe.batching.look import Found
from slotwise_workflows.probe.plan import make_plan

Probe = Callable[..., tuple[Found, Conclusion]]
Setting = tuple[dict[str, Any], dict[str, Any]]

POLICIES: list[dict[str, Any]] = [
    {"batching": "continuous"},
    {"batching": "static"},
    {"batching": "static", "release": "batch"},
    {"batching": "dynamic", "delay_ms": 10},
    {"batching": "dynamic", "delay_ms": 50},
    {"batching": "dynamic", "delay_ms": 200},
]
SLOTS = [1, 2, 4, 8, 32]
COSTS: list[dict[str, Any]] = [
    {"step_ms": 2},
    {"step_ms": 20},
    {"step_ms": 100},
    {"step_ms": 20, "per_seq_ms": 3},
    {"step_ms": 20, "prefill_ms": 40},
]
JITTERS = [0.0, 0.2, 0.5]
NETWORKS: list[dict[str, Any]] = [
    {"network_ms": 0.5},
    {"network_ms": 20, "network_jitter": 0.2},
    {"network_ms": 100},
    {"network_ms": 100, "network_jitter": 0.2},
]
LOADS = [0.0, 0.3, 0.6]
PER_POLICY = 60


def settings_of(policy: dict[str, Any]) -> list[Setting]:
    """An even choice of all settings of a policy, the same on every machine."""
    grid = list(itertools.product(SLOTS, COSTS, JITTERS, NETWORKS, LOADS))
    chosen = random.Random(str(policy)).sample(grid, PER_POLICY)
    return [
        (
            {**policy, **cost, "slots": slots, "jitter": jitter},
            {**network, "load": load, "seed": seed},
        )
        for seed, (slots, cost, jitter, network, load) in enumerate(chosen)
    ]


def truth(policy: dict[str, Any]) -> str:
    """With one slot all policies are the same."""
    return "serial" if policy["slots"] == 1 else str(policy["batching"])


def surely_wrong(found: Conclusion, policy: dict[str, Any]) -> list[str]:
    """What is claimed, and is not so."""
    if found.batching == "undetermined" or found.confidence == "low":
        return []
    wrong: list[str] = []
    if found.batching != truth(policy):
        wrong.append(found.batching)
    if found.slots not in (None, policy["slots"]) or found.slots_at_least > policy["slots"]:
        wrong.append(f"{found.slots} or {found.slots_at_least} slots")
    batches = truth(policy) in {"static", "dynamic"}
    if batches and found.release not in (None, policy.get("release", "own")):
        wrong.append(f"release {found.release}")
    if found.batching == truth(policy) == "dynamic" and found.gather_s is not None:
        low, high = found.gather_s
        delay_s = policy["delay_ms"] / 1000
        if low > 2 * delay_s + 0.1 or (high is not None and high < delay_s / 2 - 0.1):
            wrong.append(f"gathers {low} to {high}")
    return wrong


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_right_or_undetermined_but_never_surely_wrong(
    probe_of: Probe, policy: dict[str, Any]
) -> None:
    table: Counter[tuple[str, str]] = Counter()
    wrong, doubtful = [], 0
    for options, endpoint in settings_of(policy):
        _, found = probe_of(options, **endpoint)
        wrong += [(claim, options, endpoint) for claim in surely_wrong(found, options)]
        quiet = "busy" if endpoint["load"] else "quiet"
        doubtful += found.batching not in {"undetermined", truth(options)}
        right = "right" if found.batching == truth(options) else found.reason.code
        table[(quiet, right)] += 1
    print(policy, dict(sorted(table.items())))  # noqa: T201 - what was seen, with -s
    assert wrong == []
    assert doubtful <= 3  # of 60: wrong, and said with low confidence
    quiet_ones = sum(count for (quiet, _), count in table.items() if quiet == "quiet")
    assert table[("quiet", "right")] >= 0.6 * quiet_ones


FLEETS: dict[str, list[Any]] = {
    "replicas": [7, 8, 12, 16, 24, 31],
    "slots": [1, 2, 8],
    "balancer": ["least_busy", "round_robin", "random"],
    "buffered": [False, True],
    "network_ms": [0.5, 20],
    "jitter": [0.0, 0.2],
    "max_requests": [20, 40, 60, 128],
}


def fleets() -> list[dict[str, Any]]:
    """An even choice of servers that let nobody join, more of them than a group test's requests."""
    grid = list(itertools.product(*FLEETS.values()))
    return [dict(zip(FLEETS, one, strict=True)) for one in random.Random("fleets").sample(grid, 72)]


def test_a_fleet_that_does_not_join_is_never_surely_taken_for_one_that_does(
    probe_of: Probe,
) -> None:
    table: Counter[tuple[str, str]] = Counter()
    for seed, fleet in enumerate(fleets()):
        engines = {name: fleet[name] for name in ("replicas", "slots", "jitter")}
        between = {name: fleet[name] for name in ("balancer", "buffered", "network_ms")}
        plan = make_plan(max_requests=fleet["max_requests"], max_tokens=32_768)
        policy = {"batching": "static", **engines}
        _, found = probe_of(policy, plan=plan, seed=seed, **between)
        assert found.batching == "undetermined" or found.confidence == "low", fleet
        table[(found.batching, found.confidence)] += 1
    print(dict(table))  # noqa: T201 - what was seen, with -s
    assert table[("continuous", "low")] > 0  # else nothing was put to the test


@pytest.mark.parametrize(
    ("policy", "slots", "cost", "network_ms"),
    list(itertools.product(POLICIES[:3], [1, 4, 8, 32], COSTS, [0.5, 20])),
)
def test_a_quiet_server_is_found(
    probe_of: Probe, policy: dict[str, Any], slots: int, cost: dict[str, Any], network_ms: float
) -> None:
    options = {**policy, **cost, "slots": slots}
    _, found = probe_of(options, network_ms=network_ms)
    assert found.batching == truth(options)
    assert surely_wrong(found, options) == []
    streams = options.get("release") != "batch"
    assert found.confidence == ("high" if streams else "medium")
    if slots < 32 and (streams or slots > 1):
        assert found.slots == slots


@pytest.mark.parametrize("slots", [2, 3, 4, 5, 6, 7, 12, 20])
@pytest.mark.parametrize("batching", ["continuous", "static"])
def test_slots_are_counted_where_one_had_to_wait(
    probe_of: Probe, batching: str, slots: int
) -> None:
    _, found = probe_of({"batching": batching, "slots": slots})
    assert (found.batching, found.confidence) == (batching, "high")
    assert found.slots == found.slots_at_least == slots


@pytest.mark.parametrize("delay_ms", [10, 50, 200])
@pytest.mark.parametrize("slots", [4, 8, 32])
def test_a_quiet_server_that_waits_for_company_is_found(
    probe_of: Probe, delay_ms: float, slots: int
) -> None:
    _, found = probe_of({"batching": "dynamic", "delay_ms": delay_ms, "slots": slots})
    assert (found.batching, found.confidence) == ("dynamic", "high")
    assert found.gather_s is not None
    low, high = found.gather_s
    assert low * 1000 <= delay_ms
    assert high is None or high * 1000 >= delay_ms


# Each run takes too long to be made smaller hundreds of times.
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    policy=st.sampled_from(POLICIES),
    slots=st.integers(1, 40),
    step_ms=st.floats(2, 150),
    per_seq=st.floats(0, 0.2),
    prefill=st.floats(0, 3),
    jitter=st.floats(0, 0.5),
    network_ms=st.floats(0.1, 150),
    network_jitter=st.floats(0, 0.3),
    load=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    seed=st.integers(0, 10**6),
)
def test_any_server(
    probe_of: Probe,
    policy: dict[str, Any],
    slots: int,
    step_ms: float,
    per_seq: float,
    prefill: float,
    jitter: float,
    network_ms: float,
    network_jitter: float,
    load: float,
    seed: int,
) -> None:
    options = {
        **policy,
        "slots": slots,
        "step_ms": step_ms,
        "per_seq_ms": per_seq * step_ms,
        "prefill_ms": prefill * step_ms,
        "jitter": jitter,
    }
    _, found = probe_of(
        options, network_ms=network_ms, network_jitter=network_jitter, load=load, seed=seed
    )
    assert surely_wrong(found, options) == []
