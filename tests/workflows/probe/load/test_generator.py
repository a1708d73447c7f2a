from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.load.client_report import LATE_S, client_report, delays_of
from slotwise_workflows.probe.load.generator import Client, closed_loop, open_loop, until
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.model import Sample


def planned(tokens: list[int]) -> list[Planned]:
    return [Planned(f"r{n}", count, "a prompt") for n, count in enumerate(tokens)]


def endpoint(bench: Any, batching: str = "continuous", **other: Any) -> Any:
    """The project's test server, its first engine, in virtual time."""
    server = bench.server
    return bench.endpoint(server.Engine(server.Policy(batching, slots=4)), server.Job, **other)


policies = st.sampled_from(["continuous", "static"])


@settings(max_examples=25, deadline=None)
@given(
    batching=policies,
    at=st.lists(st.floats(0, 3), min_size=1, max_size=30),
    seed=st.integers(0, 2**32),
)
def test_an_open_loop_sends_by_its_schedule_whatever_comes_back(
    bench: Any, batching: str, at: list[float], seed: int
) -> None:
    """Its instants are those asked for, on any server: it can group nothing."""
    tokens = np.random.default_rng(seed).integers(1, 200, len(at)).tolist()
    sent: Sent = bench.run(
        endpoint(bench, batching),
        lambda client: open_loop(client, planned(tokens), np.array(at)),
    )
    for sample, due_s in zip(sent.samples, at, strict=True):
        assert sample.scheduled_ns == round(due_s * 1e9)
        assert 0 <= sample.sent_ns - sample.scheduled_ns <= 2  # the loop's clock has floats
    assert [sample.name for sample in sent.samples] == [f"r{n}" for n in range(len(at))]
    assert sent.client.dispatch_delay_s is not None
    assert sent.client.dispatch_delay_s.max <= 2e-9
    assert sent.client.bottleneck == []


@settings(max_examples=25, deadline=None)
@given(batching=policies, users=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_a_user_of_a_closed_loop_awaits_the_own_answer_and_thinks(
    bench: Any, batching: str, users: int, seed: int
) -> None:
    """The next send of each user is the own end, whatever the others' answers do."""
    rng = np.random.default_rng(seed)
    requests = [planned(rng.integers(1, 200, 5).tolist()) for _ in range(users)]
    think_s = [rng.exponential(0.2, 5).tolist() for _ in range(users)]
    sent: Sent = bench.run(
        endpoint(bench, batching), lambda client: closed_loop(client, requests, think_s=think_s)
    )
    assert len(sent.samples) == 5 * users
    for user in range(users):
        own = sent.samples[5 * user : 5 * user + 5]
        assert [sample.asked_tokens for sample in own] == [r.tokens for r in requests[user]]
        free_ns = 0
        for sample, thought in zip(own, think_s[user], strict=True):
            assert 0 <= sample.sent_ns - free_ns - round(thought * 1e9) <= 2
            assert sample.scheduled_ns is None
            free_ns = sample.end_ns


def test_users_of_a_batching_server_fall_in_step_by_its_doing_alone(bench: Any) -> None:
    """On a continuous server users of different lengths drift apart; a client that waited for
    groups would have them all begin at once, again and again."""
    requests = [planned([steps - 1] * 6) for steps in (23, 29, 31, 37)]  # coprime
    sent: Sent = bench.run(endpoint(bench), lambda client: closed_loop(client, requests))
    together = Counter(sample.sent_ns for sample in sent.samples)
    assert together.pop(0) == 4
    assert max(together.values()) == 1


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_in_flight_than_allowed_and_told(bench: Any, limit: int) -> None:
    sent: Sent = bench.run(
        endpoint(bench),
        lambda client: open_loop(client, planned([50] * 8), np.zeros(8)),
        max_in_flight=limit,
    )
    edges = [(s.sent_ns, 1) for s in sent.samples] + [(s.end_ns, -1) for s in sent.samples]
    at_once = np.cumsum([change for _, change in sorted(edges)])
    assert at_once.max() == limit == sent.client.most_in_flight
    assert sent.client.held_back == -(-8 // limit) - 1  # once for each further handful
    assert sent.client.client_bottleneck
    assert "max_in_flight" in sent.client.bottleneck
    assert [s.scheduled_ns for s in sent.samples] == [0] * 8  # late, and not moved


@pytest.mark.parametrize("loop", ["open", "closed"])
def test_it_gives_up_after_failures_and_keeps_what_it_has(bench: Any, loop: str) -> None:
    heard: list[Sample] = []
    requests = planned([10] * 20)

    def work(client: Client) -> Any:
        if loop == "open":
            return open_loop(client, requests, np.arange(20, dtype=np.float64))
        return closed_loop(client, [requests[:10], requests[10:]])

    refusing = endpoint(bench, fault=lambda number: "rate_limited" if number > 4 else None)
    sent: Sent = bench.run(refusing, work, give_up_after=3, on_sample=heard.append)
    assert len(sent.samples) == len(heard)
    assert 7 <= len(sent.samples) <= 8
    assert sent.unsent == 20 - len(sent.samples)
    assert sum(not sample.answered for sample in sent.samples) >= 3


@pytest.mark.parametrize("how", [{"give_up_after": 1}, {"stop_ns": round(5e9)}])
def test_it_waits_for_no_instant_after_its_end(bench: Any, how: dict[str, int]) -> None:
    """The second request is due after an hour; by then nothing more would be sent."""

    async def work(client: Client) -> tuple[Sent, int]:
        sent = await open_loop(client, planned([10] * 2), np.array([0.0, 3600.0]))
        return sent, client.clock()

    refusing = endpoint(bench, fault=lambda _number: "rate_limited")
    sent, end_ns = bench.run(refusing, work, **how)
    assert (len(sent.samples), sent.unsent) == (1, 1)
    assert end_ns <= how.get("stop_ns", sent.samples[0].end_ns)


def test_nothing_is_sent_after_its_time(bench: Any) -> None:
    requests = planned([10] * 20)
    sent: Sent = bench.run(
        endpoint(bench),
        lambda client: open_loop(client, requests, np.arange(20, dtype=np.float64)),
        stop_ns=round(4.5e9),
    )
    assert (len(sent.samples), sent.unsent) == (5, 15)


def test_what_was_sent_before_an_interruption_is_heard_of(bench: Any) -> None:
    heard: list[Sample] = []

    async def interrupted(client: Client) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await open_loop(client, planned([10] * 9), np.arange(9, dtype=np.float64))

    bench.run(endpoint(bench), interrupted, on_sample=heard.append)
    assert [sample.name for sample in heard] == ["r0", "r1", "r2"]


@pytest.mark.parametrize("at", [[0.0], [0.0, -1.0], [0.0, float("nan")], [0.0, float("inf")]])
def test_a_schedule_that_is_none(bench: Any, at: list[float]) -> None:
    with pytest.raises(ValueError, match="at_s"):
        bench.run(endpoint(bench), lambda client: open_loop(client, planned([5, 5]), np.array(at)))


def test_waiting_never_ends_early_and_spins_only_at_the_end() -> None:
    """By a clock that a fake sleep moves, coarsely, as a loop with ticks of 16 ms does."""
    now, slept = 0, list[float]()

    async def tick(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += max(10_000, -(-round(seconds * 1e9) // 16_000_000) * 16_000_000)

    async def asleep(waiting: Any, seconds: float) -> None:
        waiting.close()
        await tick(seconds)

    async def wait() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "sleep", tick)
            patch.setattr(asyncio, "wait_for", asleep)
            await until(100_000_000, lambda: now, 0.02, asyncio.Event())

    asyncio.run(wait())
    assert 100_000_000 <= now < 100_020_000
    assert slept[0] == pytest.approx(0.08)
    assert set(slept[1:]) == {0.0}


def report_of(delays_s: list[float], lags_s: list[float], held_back: int = 0) -> Any:
    return client_report(
        delays_ns=[round(s * 1e9) for s in delays_s],
        lags_ns=[round(s * 1e9) for s in lags_s],
        wall_ns=10,
        busy_ns=4,
        most_in_flight=1,
        held_back=held_back,
    )


@pytest.mark.parametrize(
    ("delays", "lags", "held", "why"),
    [
        ([0.001] * 100, [0.0] * 9, 0, []),
        ([2 * LATE_S] * 4 + [0.0] * 96, [0.0] * 9, 0, []),
        ([2 * LATE_S] * 6 + [0.0] * 94, [0.0] * 9, 0, ["dispatch_delay"]),
        ([0.0], [2 * LATE_S], 0, ["loop_lag"]),
        ([2 * LATE_S], [2 * LATE_S], 1, ["dispatch_delay", "loop_lag", "max_in_flight"]),
        ([], [], 0, []),
    ],
)
def test_the_client_says_when_it_was_the_bottleneck(
    delays: list[float], lags: list[float], held: int, why: list[str]
) -> None:
    report = report_of(delays, lags, held)
    assert report.bottleneck == why
    assert report.client_bottleneck == bool(why)
    assert report.busy_share == 0.4


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_percentiles_are_order_statistics(times_ns: list[int]) -> None:
    found = delays_of(times_ns)
    ranked = sorted(times_ns)
    assert found is not None
    for percent, value in ((50, found.p50), (95, found.p95), (99, found.p99), (100, found.max)):
        assert value == ranked[-(-percent * (len(ranked) - 1) // 100)] / 1e9
