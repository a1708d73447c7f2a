"""One group test: what it shows, by hand and in virtual time, and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.batching.baseline import summarise
from slotwise_workflows.probe.batching.classify import judge_group
from slotwise_workflows.probe.batching.conclude import Conclusion
from slotwise_workflows.probe.batching.look import Found
from slotwise_workflows.probe.batching.measures import Measures
from slotwise_workflows.probe.model import Alone, Baseline, Evidence, Sample, Sizes
from slotwise_workflows.probe.plan import SHORTS, make_plan

Probe = Callable[..., tuple[Found, Conclusion]]
PLAN = make_plan(trials=1, max_requests=12, max_tokens=200_000)

steps = st.floats(2, 200)
networks = st.floats(0.1, 300)
costs = st.floats(0, 1)


def group_of(probe_of: Probe, policy: dict[str, Any], **endpoint: Any) -> Evidence:
    seen, _ = probe_of(policy, plan=PLAN, **endpoint)
    assert seen.trials[0].stage == "group"
    return seen.trials[0]


@settings(max_examples=12, deadline=None)
@given(slots=st.integers(7, 64), step_ms=steps, network_ms=networks, cost=costs)
def test_continuous(
    probe_of: Probe, slots: int, step_ms: float, network_ms: float, cost: float
) -> None:
    policy = {"slots": slots, "step_ms": step_ms, "per_seq_ms": cost * step_ms / 4}
    found = group_of(probe_of, policy, network_ms=network_ms)
    assert (found.batching, found.joined) == ("continuous", SHORTS)
    assert max(found.waits) < 0.5


@settings(max_examples=12, deadline=None)
@given(slots=st.integers(8, 64), step_ms=steps, network_ms=networks)
def test_static(probe_of: Probe, slots: int, step_ms: float, network_ms: float) -> None:
    policy = {"batching": "static", "slots": slots, "step_ms": step_ms}
    found = group_of(probe_of, policy, network_ms=network_ms)
    assert (found.batching, found.waited) == ("static", SHORTS)
    assert found.release in ("own", None)
    assert found.clusters == [1, SHORTS]


@settings(max_examples=12, deadline=None)
@given(step_ms=steps, network_ms=networks, batching=st.sampled_from(["static", "continuous"]))
def test_serial(probe_of: Probe, step_ms: float, network_ms: float, batching: str) -> None:
    """With one slot all policies are the same, and so are their traces."""
    policy = {"batching": batching, "slots": 1, "step_ms": step_ms}
    found = group_of(probe_of, policy, network_ms=network_ms)
    assert (found.batching, found.waited) == ("serial", SHORTS)
    assert found.overlap is not None
    assert found.overlap < 1


@settings(max_examples=15, deadline=None)
@given(slots=st.integers(8, 64), step_ms=steps, network_ms=st.floats(0.1, 20))
def test_static_that_releases_the_batch_at_once(
    probe_of: Probe, slots: int, step_ms: float, network_ms: float
) -> None:
    policy = {"batching": "static", "slots": slots, "release": "batch", "step_ms": step_ms}
    found = group_of(probe_of, policy, network_ms=network_ms)
    assert (found.batching, found.release) == ("static", "batch")


@settings(max_examples=25, deadline=None)
@given(
    batching=st.sampled_from(["static", "continuous"]),
    slots=st.integers(2, 6),
    step_ms=steps,
    network_ms=networks,
    release=st.sampled_from(["own", "batch"]),
)
def test_few_slots_are_never_taken_for_another_policy(
    probe_of: Probe, batching: str, slots: int, step_ms: float, network_ms: float, release: str
) -> None:
    policy = {"batching": batching, "slots": slots, "release": release, "step_ms": step_ms}
    found = group_of(probe_of, policy, network_ms=network_ms)
    assert found.batching in {batching, "undetermined"}
    assert found.slots in (None, slots)


@settings(max_examples=25, deadline=None)
@example(
    slots=1, replicas=7, step_ms=20.0, network_ms=0.5, balancer="least_busy", buffered=True
)  # how many ran at once is not seen
@example(
    slots=1, replicas=5, step_ms=2.0, network_ms=83.0, balancer="least_busy", buffered=False
)  # the shorts end before the last is sent: never more than five at once
@given(
    slots=st.sampled_from([1, 2, 8, 32]),
    replicas=st.integers(2, 31),
    step_ms=steps,
    network_ms=networks,
    balancer=st.sampled_from(["least_busy", "round_robin"]),
    buffered=st.booleans(),
)
def test_a_fleet_that_does_not_join_is_never_taken_for_one_that_does(
    probe_of: Probe,
    slots: int,
    replicas: int,
    step_ms: float,
    network_ms: float,
    balancer: str,
    buffered: bool,
) -> None:
    policy = {"batching": "static", "slots": slots, "replicas": replicas, "step_ms": step_ms}
    _, found = probe_of(policy, network_ms=network_ms, balancer=balancer, buffered=buffered)
    assert found.batching == "undetermined" or found.confidence == "low"


# --- by hand -------------------------------------------------------------------------------------

BASELINE = Baseline(
    ttft_s=0.02, latency_s=0.64, output_tokens=32, seconds_per_token=0.02, streams=True
)
SIZES = Sizes(long=200, shorts=(25, 40))


def answered(name: str, sent_s: float, first_s: float, tokens: int, **changes: Any) -> Sample:
    last_s = first_s + (tokens - 1) * 0.02
    values: dict[str, Any] = {
        "stage": "group",
        "name": name,
        "trial": 1,
        "asked_tokens": tokens,
        "sent_ns": round(sent_s * 1e9),
        "first_token_ns": round(first_s * 1e9),
        "last_token_ns": round(last_s * 1e9),
        "end_ns": round(last_s * 1e9),
        "chunks": tokens,
        "streamed": True,
        "status": 200,
        "prompt_tokens": 40,
        "output_tokens": tokens,
        "finish_reason": "length",
        "fault": None,
    }
    return Sample(**{**values, **changes})


def alone() -> Alone:
    lone = [answered("alone", 10 * i, 10 * i + 0.02, 32, stage="baseline") for i in range(3)]
    return summarise(lone, BASELINE)


def judged(*samples: Sample, sizes: Sizes = SIZES) -> Evidence:
    return judge_group(samples, Measures(BASELINE, alone()), sizes, trial=1)


LONG = answered("long", 0, 0.02, 200)  # ends at 4.0
JOINED = [answered("short-1", 0.1, 0.12, 25), answered("short-2", 0.2, 0.22, 40)]


def test_by_hand() -> None:
    found = judged(LONG, *JOINED)
    assert (found.batching, found.joined, found.together) == ("continuous", 2, 3)
    assert found.waits == pytest.approx([0.02 / 3.9, 0.02 / 3.8])

    batch = [answered("short-1", 0.1, 4.04, 25), answered("short-2", 0.2, 4.04, 40)]
    found = judged(LONG, *batch)
    assert (found.batching, found.waited, found.clusters) == ("static", 2, [1, 2])
    assert found.overlap == pytest.approx((24 + 39) / 39)
    assert found.release == "own"

    turns = [answered("short-1", 0.1, 4.04, 25), answered("short-2", 0.2, 4.56, 40)]
    found = judged(LONG, *turns)
    assert (found.batching, found.clusters) == ("serial", [1, 1, 1])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"fault": "rate_limited"}, "rate_limited"),
        ({"fault": "server_error"}, "requests_failed"),
        ({"first_token_ns": None}, "requests_failed"),
        ({"output_tokens": 3}, "lengths_not_honoured"),
        ({"output_tokens": None, "finish_reason": "stop"}, "lengths_not_honoured"),
        ({"last_token_ns": 230_000_000}, "cached_responses"),
        ({"sent_ns": 3_900_000_000, "first_token_ns": 3_920_000_000}, "long_too_short"),
    ],
)
def test_a_doubt_is_no_verdict(changes: dict[str, Any], code: str) -> None:
    late = {"last_token_ns": 4_700_000_000} if code == "long_too_short" else {}
    doubted = JOINED[1].model_copy(update={**late, **changes})
    found = judged(LONG, JOINED[0], doubted)
    assert (found.batching, found.reason.code) == ("undetermined", code)


def test_a_long_request_that_ends_first_is_no_evidence() -> None:
    assert judged(LONG).reason.code == "long_too_short"


@pytest.mark.parametrize("sent_s", [4.0, 4.1])
def test_nor_is_one_that_ended_before_a_slow_connection_was_up(sent_s: float) -> None:
    """The short after that one was sent in time."""
    slow = answered("short-1", sent_s, sent_s + 0.02, 25)
    assert judged(LONG, slow, JOINED[1]).reason.code == "long_too_short"


def test_a_short_that_joins_late_is_no_evidence() -> None:
    """Long before the long one's end, but not as one that joins at the next step."""
    late: Sequence[Sample] = [answered("short-1", 0.1, 0.25, 25), JOINED[1]]
    assert judged(LONG, *late).reason.code == "joined_late"
