"""What lies between the probe and the server: balancers, gateways, caches, proxies, other models.

Each is a server of known policy in virtual time; the verdict is right, or open for the right
reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.batching.conclude import Conclusion
from slotwise_workflows.probe.batching.look import Found
from slotwise_workflows.probe.plan import make_plan

Probe = Callable[..., tuple[Found, Conclusion]]
QUIET = [
    {"network_ms": 0.5},
    {"network_ms": 20, "network_jitter": 0.2, "seed": 1},
]
networks = pytest.mark.parametrize("network", QUIET, ids=["near", "far"])
policies = pytest.mark.parametrize("batching", ["continuous", "static"])


@networks
@pytest.mark.parametrize("balancer", ["least_busy", "round_robin", "random"])
@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_replicas_that_do_not_let_join_are_told(
    probe_of: Probe, network: dict[str, Any], balancer: str, replicas: int, slots: int
) -> None:
    policy = {"batching": "static", "slots": slots, "replicas": replicas}
    _, found = probe_of(policy, balancer=balancer, **network)
    assert found.batching == "undetermined"
    assert found.reason.code in {"replicas", "trials_differ"}


@networks
@pytest.mark.parametrize("balancer", ["least_busy", "round_robin"])
@pytest.mark.parametrize(("replicas", "slots"), [(2, 2), (2, 4), (4, 2), (4, 8)])
def test_replicas_of_a_continuous_server_are_right_or_told(
    probe_of: Probe, network: dict[str, Any], balancer: str, replicas: int, slots: int
) -> None:
    policy = {"batching": "continuous", "slots": slots, "replicas": replicas}
    _, found = probe_of(policy, balancer=balancer, **network)
    if found.batching == "undetermined":
        assert found.reason.code == "replicas"
    else:
        assert found.batching == "continuous"
        assert found.slots in (None, replicas * slots)


@policies
@networks
@pytest.mark.parametrize("limit", [6, 20])
def test_a_rate_limit_leaves_it_open_and_ends_the_probe(
    probe_of: Probe, batching: str, network: dict[str, Any], limit: int
) -> None:
    seen, found = probe_of({"batching": batching}, limit=limit, **network)
    assert (found.batching, found.reason.code) == ("undetermined", "rate_limited")
    assert seen.requests < limit + 40


@policies
@networks
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_cache_leaves_it_open(
    probe_of: Probe, batching: str, network: dict[str, Any], share: float, seed: int
) -> None:
    _, found = probe_of({"batching": batching}, cached=share, **{**network, "seed": seed})
    assert (found.batching, found.reason.code) == ("undetermined", "cached_responses")


@policies
@networks
def test_a_cache_behind_a_proxy_that_buffers_is_no_verdict(
    probe_of: Probe, batching: str, network: dict[str, Any]
) -> None:
    _, found = probe_of({"batching": batching}, cached=1.0, buffered=True, **network)
    assert found.batching == "undetermined"


@policies
@networks
@pytest.mark.parametrize("usage", [True, False])
def test_a_model_that_ends_by_itself_leaves_it_open(
    probe_of: Probe, batching: str, network: dict[str, Any], usage: bool
) -> None:
    _, found = probe_of({"batching": batching}, stop_after=20, usage=usage, **network)
    assert (found.batching, found.reason.code) == ("undetermined", "lengths_not_honoured")


@networks
@pytest.mark.parametrize("pace_ms", [30, 60])
@pytest.mark.parametrize("step_ms", [2, 5, 10, 20])
@pytest.mark.parametrize("slots", [1, 16])
def test_a_proxy_that_paces_tokens_does_not_make_a_server_continuous(
    probe_of: Probe, network: dict[str, Any], pace_ms: float, step_ms: float, slots: int
) -> None:
    policy = {"batching": "static", "step_ms": step_ms, "slots": slots}
    _, found = probe_of(policy, pace_ms=pace_ms, **network)
    if pace_ms >= 30 * step_ms and network["network_ms"] > step_ms:
        assert found.confidence == "low"  # all answers are done before anyone waits
        return
    assert found.batching == "undetermined"
    assert found.reason.code in {"paced", "joined_late", "replicas"}


def test_a_first_token_faster_than_the_others_is_paced(probe_of: Probe) -> None:
    _, found = probe_of({"step_ms": 5}, pace_ms=30)
    assert found.reason.code == "paced"
    assert found.reason.numbers["per_token_ms"] == pytest.approx(30, rel=0.01)


@policies
@networks
@pytest.mark.parametrize("proxy_ms", [50, 500])
def test_a_proxy_that_delays_requests_changes_nothing(
    probe_of: Probe, batching: str, network: dict[str, Any], proxy_ms: float
) -> None:
    _, found = probe_of({"batching": batching}, proxy_ms=proxy_ms, **network)
    assert found.batching == batching


@policies
@networks
def test_a_limit_of_one_in_flight_is_serial(
    probe_of: Probe, batching: str, network: dict[str, Any]
) -> None:
    """Nothing from outside tells them apart; the verdict's sentence says so."""
    _, found = probe_of({"batching": batching}, cap=1, **network)
    assert (found.batching, found.slots) == ("serial", 1)


@networks
@pytest.mark.parametrize("cap", [2, 3, 4, 8])
def test_a_limit_in_flight_counts_as_slots(
    probe_of: Probe, network: dict[str, Any], cap: int
) -> None:
    _, found = probe_of({"batching": "continuous", "slots": 16}, cap=cap, **network)
    assert (found.batching, found.slots) == ("continuous", cap)


@policies
@networks
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_shortest_first_changes_nothing(
    probe_of: Probe, batching: str, network: dict[str, Any], slots: int
) -> None:
    policy = {"batching": batching, "slots": slots, "order": "shortest"}
    _, found = probe_of(policy, **network)
    assert found.batching in {"serial" if slots == 1 else batching, "undetermined"}
    assert found.slots in (None, slots)


@policies
@networks
def test_speculative_decoding_changes_nothing(
    probe_of: Probe, batching: str, network: dict[str, Any]
) -> None:
    _, found = probe_of({"batching": batching, "chunk": 4}, **network)
    assert found.batching == batching


@networks
@pytest.mark.parametrize(
    ("batching", "slots", "expected"),
    [
        ("continuous", 16, "continuous"),
        ("static", 16, "static"),
        ("static", 4, "static"),
        ("static", 1, "serial"),
        ("continuous", 3, "undetermined"),
    ],
)
def test_a_proxy_that_holds_answers_back_leaves_their_ends(
    probe_of: Probe, network: dict[str, Any], batching: str, slots: int, expected: str
) -> None:
    _, found = probe_of({"batching": batching, "slots": slots}, buffered=True, **network)
    assert found.batching == expected
    assert found.confidence != "high"
    assert "streaming_off" in {found.reason.code, *(remark.code for remark in found.remarks)}


def test_more_other_people_than_slots_is_never_sure(probe_of: Probe) -> None:
    _, found = probe_of({"batching": "continuous", "slots": 2}, load=0.9, seed=3)
    assert found.confidence == "low"


def test_what_time_runs_out_on_is_judged(probe_of: Probe) -> None:
    plan = make_plan(seconds=9, long_s=4)
    seen, found = probe_of({"batching": "static", "slots": 8}, plan=plan)
    assert [trial.stage for trial in seen.trials][:1] == ["group"]
    assert len([trial for trial in seen.trials if trial.stage == "group"]) == 1
    assert found.batching == "static"
    assert found.confidence != "high"


@settings(max_examples=15, deadline=None)
@given(
    batching=st.sampled_from(["continuous", "static", "dynamic"]),
    slots=st.integers(1, 12),
    requests=st.integers(10, 80),
    tokens=st.integers(600, 9000),
    trials=st.integers(1, 3),
)
def test_no_plan_is_exceeded(
    probe_of: Probe, batching: str, slots: int, requests: int, tokens: int, trials: int
) -> None:
    plan = make_plan(trials=trials, max_requests=requests, max_tokens=tokens)
    seen, _ = probe_of({"batching": batching, "slots": slots, "delay_ms": 30}, plan=plan)
    sent = [sample for samples in seen.samples.values() for sample in samples]
    sent += [seen.first, *seen.alone]
    assert len(sent) <= seen.requests <= requests
    assert sum(sample.asked_tokens for sample in sent) <= seen.tokens <= tokens
