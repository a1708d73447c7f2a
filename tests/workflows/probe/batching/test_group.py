"""The group test in virtual time: the real trial against the test server's engine, no waiting.

The event loop's clock jumps from one timer to the next, so that a trial of minutes takes
milliseconds and comes out the same on any machine.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.batching.baseline import measure
from slotwise_workflows.probe.batching.classify import classify_trial, conclude, most_together
from slotwise_workflows.probe.batching.group import group_trial
from slotwise_workflows.probe.model import Baseline, Evidence, Sample, Sizes
from slotwise_workflows.probe.plan import SHORTS, make_plan, size_trial

T = TypeVar("T")
PLAN = make_plan(trials=1, max_tokens=1_000_000)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Never waits: its clock jumps to the next timer."""

    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Jump(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> Any:
                ready = super().select(0)
                if not ready:
                    assert timeout is not None, "everybody waits for nothing"
                    loop.now += timeout
                return ready

        super().__init__(Jump())

    def time(self) -> float:
        return self.now


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work())


@dataclass(frozen=True)
class Endpoint:
    """The test server's engines behind a network and, if wanted, a proxy that holds answers."""

    batching: str = "continuous"
    slots: int = 16
    release: str = "own"
    step_ms: float = 20.0
    per_seq_ms: float = 0.0
    replicas: int = 1
    network_ms: float = 5.0
    buffered: bool = False
    balancer: str = "least_busy"


@pytest.fixture(scope="session")
def trial_of(probe_server_module: Any) -> Callable[[Endpoint], tuple[list[Sample], Evidence]]:
    """Runs a trial on an endpoint; gives its samples and what they are judged to be."""
    server = probe_server_module

    def run(endpoint: Endpoint) -> tuple[list[Sample], Evidence]:
        return in_virtual_time(lambda: trial(server, endpoint))

    return run


async def trial(server: Any, endpoint: Endpoint) -> tuple[list[Sample], Evidence]:
    policy = server.Policy(
        endpoint.batching,
        endpoint.slots,
        endpoint.release,
        endpoint.step_ms,
        endpoint.per_seq_ms,
    )
    engines = [server.Engine(policy) for _ in range(endpoint.replicas)]
    running = [asyncio.create_task(engine.run()) for engine in engines]
    turn = iter(range(10_000))
    loop = asyncio.get_running_loop()

    def clock() -> int:
        return round(loop.time() * 1e9)

    async def ask(
        *, name: str, tokens: int, on_first_token: Callable[[], None] = lambda: None
    ) -> Sample:
        sent_ns = clock()
        await asyncio.sleep(endpoint.network_ms / 1000)
        job = server.Job(tokens)
        if endpoint.balancer == "least_busy":
            min(engines, key=lambda engine: engine.load).submit(job)
        else:
            engines[next(turn) % len(engines)].submit(job)
        stamps = []
        while await job.out.get() == "token":
            stamps.append(clock())
            if not endpoint.buffered:
                on_first_token()
        end_ns = clock()
        stamps = [end_ns] * len(stamps) if endpoint.buffered else stamps
        return Sample(
            stage="group",
            name=name,
            trial=1,
            asked_tokens=tokens,
            sent_ns=sent_ns,
            first_token_ns=stamps[0],
            last_token_ns=stamps[-1],
            end_ns=end_ns,
            chunks=len(stamps),
            streamed=True,
            status=200,
            prompt_tokens=40,
            output_tokens=tokens,
            finish_reason="length",
            fault=None,
        )

    baseline = measure(await ask(name="baseline", tokens=32))
    sizes = size_trial(PLAN, baseline)
    samples = await group_trial(ask, sizes, baseline, long_s=PLAN.long_s)
    for task in running:
        task.cancel()
    return samples, classify_trial(samples, baseline, sizes, trial=1)


Trial = Callable[[Endpoint], tuple[list[Sample], Evidence]]
steps = st.floats(2, 200)
networks = st.floats(0.1, 300)
costs = st.floats(0, 1)


@settings(max_examples=12, deadline=None)
@given(slots=st.integers(7, 64), step_ms=steps, network_ms=networks, cost=costs)
def test_continuous(
    trial_of: Trial, slots: int, step_ms: float, network_ms: float, cost: float
) -> None:
    samples, found = trial_of(
        Endpoint(slots=slots, step_ms=step_ms, network_ms=network_ms, per_seq_ms=cost * step_ms / 4)
    )
    assert (found.batching, found.joined) == ("continuous", SHORTS)
    assert len(samples) == SHORTS + 1
    assert found.together >= SHORTS - 1  # the first may end before the last begins


@settings(max_examples=12, deadline=None)
@given(slots=st.integers(8, 64), step_ms=steps, network_ms=networks, cost=costs)
def test_static(
    trial_of: Trial, slots: int, step_ms: float, network_ms: float, cost: float
) -> None:
    _, found = trial_of(
        Endpoint("static", slots, "own", step_ms, cost * step_ms / 4, network_ms=network_ms)
    )
    assert (found.batching, found.waited, found.release) == ("static", SHORTS, "own")


@settings(max_examples=12, deadline=None)
@given(step_ms=steps, network_ms=networks, batching=st.sampled_from(["static", "continuous"]))
def test_serial(trial_of: Trial, step_ms: float, network_ms: float, batching: str) -> None:
    """With one slot all policies are the same, and so are their traces."""
    _, found = trial_of(Endpoint(batching, 1, step_ms=step_ms, network_ms=network_ms))
    assert (found.batching, found.waited) == ("serial", SHORTS)
    assert found.overlap is not None
    assert found.overlap < 1


@settings(max_examples=15, deadline=None)
@given(slots=st.integers(8, 64), step_ms=steps, network_ms=st.floats(0.1, 20))
def test_static_that_releases_the_batch_at_once(
    trial_of: Trial, slots: int, step_ms: float, network_ms: float
) -> None:
    _, found = trial_of(Endpoint("static", slots, "batch", step_ms, network_ms=network_ms))
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
    trial_of: Trial, batching: str, slots: int, step_ms: float, network_ms: float, release: str
) -> None:
    _, found = trial_of(Endpoint(batching, slots, release, step_ms, network_ms=network_ms))
    assert found.batching in {batching, "undetermined"}


@settings(max_examples=25, deadline=None)
@given(
    slots=st.sampled_from([1, 2, 8, 32]),
    replicas=st.integers(2, 6),
    step_ms=steps,
    network_ms=networks,
    balancer=st.sampled_from(["least_busy", "round_robin"]),
    buffered=st.booleans(),
)
def test_a_fleet_that_does_not_join_is_never_taken_for_one_that_does(
    trial_of: Trial,
    slots: int,
    replicas: int,
    step_ms: float,
    network_ms: float,
    balancer: str,
    buffered: bool,
) -> None:
    _, found = trial_of(
        Endpoint(
            "static",
            slots,
            "own",
            step_ms,
            replicas=replicas,
            network_ms=network_ms,
            balancer=balancer,
            buffered=buffered,
        )
    )
    assert found.batching != "continuous"


@pytest.mark.parametrize(
    ("batching", "slots", "expected"),
    [("continuous", 16, "continuous"), ("static", 16, "static"), ("static", 1, "serial")],
)
def test_a_proxy_that_holds_answers_back_leaves_their_ends(
    trial_of: Trial, batching: str, slots: int, expected: str
) -> None:
    _, found = trial_of(Endpoint(batching, slots, buffered=True))
    assert found.batching == expected
    assert conclude([found], streams=False).confidence == "low"


def faulty(samples: Sequence[Sample], **changes: object) -> Evidence:
    baseline = Baseline(
        ttft_s=0.02, latency_s=0.7, output_tokens=32, seconds_per_token=0.02, streams=True
    )
    shorts = tuple(sample.asked_tokens for sample in samples[1:])
    sizes = Sizes(long=samples[0].asked_tokens, shorts=shorts)
    changed = [*samples[:-1], samples[-1].model_copy(update=changes)]
    return classify_trial(changed, baseline, sizes, trial=1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"fault": "rate_limited"}, "rate_limited"),
        ({"fault": "server_error"}, "requests_failed"),
        ({"first_token_ns": None}, "requests_failed"),
        ({"output_tokens": 3}, "lengths_not_honoured"),
        ({"sent_ns": 10**15}, "long_too_short"),
    ],
)
def test_a_doubt_is_no_verdict(trial_of: Trial, changes: dict[str, object], code: str) -> None:
    samples, found = trial_of(Endpoint())
    assert found.batching == "continuous"
    doubted = faulty(samples, **changes)
    assert (doubted.batching, doubted.reason.code) == ("undetermined", code)


def test_a_long_request_that_ends_first_is_no_evidence(trial_of: Trial) -> None:
    samples, _ = trial_of(Endpoint())
    baseline = Baseline(
        ttft_s=0.02, latency_s=0.7, output_tokens=32, seconds_per_token=0.02, streams=True
    )
    sizes = Sizes(long=samples[0].asked_tokens, shorts=(25, 30))
    found = classify_trial(samples[:1], baseline, sizes, trial=1)
    assert found.reason.code == "long_too_short"


def test_trials_must_agree(trial_of: Trial) -> None:
    yes = trial_of(Endpoint())[1]
    no = trial_of(Endpoint("static"))[1]
    assert conclude([yes], streams=True).confidence == "medium"
    assert conclude([yes, yes], streams=True).confidence == "high"
    both = conclude([yes, no], streams=True)
    assert (both.batching, both.confidence) == ("undetermined", "low")
    assert both.reason.code == "trials_differ"


def test_most_together_by_hand(trial_of: Trial) -> None:
    pattern = trial_of(Endpoint())[0][0]
    spans = [(0, 10), (5, 7), (7, 9), (6, 8)]
    samples = [
        pattern.model_copy(update={"first_token_ns": first, "last_token_ns": last})
        for first, last in spans
    ]
    assert most_together(samples) == 3
    assert most_together([]) == 0
