"""A whole probe in virtual time: its tests against the test server's engine, no waiting.

The event loop's clock jumps from one timer to the next, so that a probe of minutes takes a fraction
of a second and comes out the same on any machine.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from probe_server import Engine, Job
from probe_server import Policy as EnginePolicy
from slotwise_workflows.probe.batching.conclude import Conclusion, conclude
from slotwise_workflows.probe.batching.doubts import paced
from slotwise_workflows.probe.batching.look import Found, look
from slotwise_workflows.probe.model import Plan, Sample, Stage
from slotwise_workflows.probe.plan import make_plan
from virtual_time import in_virtual_time


@dataclass(frozen=True)
class Endpoint:
    """What lies between the probe and the engines, and who else is there.

    Attributes:
        policy: Options of the engines' `Policy`.
        network_ms: Each way.
        network_jitter: Standard deviation over the mean, evenly distributed.
        buffered: A proxy holds a stream back to its end.
        pace_ms: A proxy releases a token every so often, if it has one.
        proxy_ms: A proxy waits before it passes a request on.
        cap: A gateway passes on no more than so many at once; the others wait there.
        balancer: least_busy or round_robin.
        load: Share of the slots that other people's requests take, on average.
        cached: Share of the requests after the first that a cache answers.
        limit: Requests after which all others are refused.
        stop_after: Answers end by themselves after so many tokens.
        usage: Whether the server counts tokens.
        seed: Of all that is random.
    """

    policy: dict[str, Any] = field(default_factory=dict)
    network_ms: float = 0.5
    network_jitter: float = 0.0
    buffered: bool = False
    pace_ms: float = 0.0
    proxy_ms: float = 0.0
    cap: int = 0
    balancer: str = "least_busy"
    load: float = 0.0
    cached: float = 0.0
    limit: int = 0
    stop_after: int = 0
    usage: bool = True
    seed: int = 0


OTHERS = (20, 120)
"""Tokens of other people's requests."""


class Front:
    """The endpoint: gateway, balancer, engines, proxy."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.random = random.Random(endpoint.seed)
        options = {"step_ms": 20.0, **endpoint.policy}
        self.engines = [
            Engine(EnginePolicy(**options, seed=endpoint.seed + replica))
            for replica in range(options.get("replicas", 1))
        ]
        self.tasks = [asyncio.create_task(engine.run()) for engine in self.engines]
        self.gate = asyncio.Semaphore(endpoint.cap or 1_000_000)
        self.turn = 0
        self.answered = 0
        self.sent = 0
        self.deadline = float("inf")
        if endpoint.load:
            self.tasks.append(asyncio.create_task(self.others()))

    async def others(self) -> None:
        policy = self.engines[0].policy
        step_s = (policy.step_ms + policy.per_seq_ms * policy.slots * self.endpoint.load) / 1000
        mean_s = sum(OTHERS) / 2 * step_s + policy.prefill_ms / 1000
        rate = self.endpoint.load * policy.slots * len(self.engines) / mean_s
        while True:
            await asyncio.sleep(self.random.expovariate(rate))
            self.route(Unseen(self.random.randint(*OTHERS)))

    def route(self, job: Any) -> None:
        if self.endpoint.balancer == "least_busy":
            min(self.engines, key=lambda engine: engine.load).submit(job)
        elif self.endpoint.balancer == "random":
            self.random.choice(self.engines).submit(job)
        else:
            self.turn += 1
            self.engines[self.turn % len(self.engines)].submit(job)

    async def network(self) -> None:
        await asyncio.sleep(self.delay_s())

    def delay_s(self) -> float:
        half = self.endpoint.network_jitter * 3**0.5
        share = max(0.05, 1 + self.random.uniform(-half, half))
        return self.endpoint.network_ms / 1000 * share

    async def ask(
        self,
        *,
        stage: Stage,
        name: str,
        trial: int,
        tokens: int,
        on_first_token: Callable[[], None] = lambda: None,
    ) -> Sample:
        """Gives a request up at the deadline, as the client does."""
        loop = asyncio.get_running_loop()
        self.sent += 1
        sent = loop.time()
        try:
            async with asyncio.timeout_at(self.deadline):
                return await self.answer(stage, name, trial, tokens, on_first_token)
        except TimeoutError:
            return sample(stage, name, trial, tokens, sent, [], loop.time(), fault="timeout")

    async def answer(
        self,
        stage: Stage,
        name: str,
        trial: int,
        tokens: int,
        on_first_token: Callable[[], None],
    ) -> Sample:
        endpoint = self.endpoint
        loop = asyncio.get_running_loop()
        sent = loop.time()
        await self.network()
        self.answered += 1
        if endpoint.limit and self.answered > endpoint.limit:
            await self.network()
            return sample(stage, name, trial, tokens, sent, [], loop.time(), fault="rate_limited")
        made = min(tokens, endpoint.stop_after or tokens)
        seen: list[float] = []
        if self.answered > 1 and self.random.random() < endpoint.cached:
            await self.network()
            seen = [loop.time()] * made
            on_first_token()
        else:
            await asyncio.sleep(endpoint.proxy_ms / 1000)
            async with self.gate:
                stamps = await self.run(made, on_first_token)
            seen = await self.passed_on(stamps)
        return sample(stage, name, trial, tokens, sent, seen, max(loop.time(), seen[-1]), made=made,
                      usage=endpoint.usage)  # fmt: skip

    async def run(self, tokens: int, on_first_token: Callable[[], None]) -> list[float]:
        job = Timed(tokens)
        self.route(job)
        await job.begun.wait()
        if not self.endpoint.buffered:
            loop = asyncio.get_running_loop()
            loop.call_later(self.delay_s(), on_first_token)
        await job.done.wait()
        return list(job.stamps)

    async def passed_on(self, stamps: list[float]) -> list[float]:
        """When each token reaches the client; waits for the last."""
        endpoint = self.endpoint
        if endpoint.buffered:
            stamps = [stamps[-1]] * len(stamps)
        if endpoint.pace_ms:
            at = stamps[0]
            paced = []
            for stamp in stamps:
                at = max(at, stamp)
                paced.append(at)
                at += endpoint.pace_ms / 1000
            stamps = paced
        delay = self.delay_s()
        seen = [stamp + delay for stamp in stamps]
        seen[0] = stamps[0] + self.delay_s()
        seen[-1] = max(seen[-1], seen[0])
        await asyncio.sleep(max(0.0, seen[-1] - asyncio.get_running_loop().time()))
        return seen

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


class Timed(Job):
    """Keeps no queue of tokens: their instants are all that is needed."""

    def __init__(self, tokens: int) -> None:
        super().__init__(tokens)
        self.stamps: list[float] = []
        self.begun = asyncio.Event()
        self.done = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def put(self, tokens: int) -> None:
        if not self.stamps:
            self.begun.set()
        self.stamps += [self.loop.time()] * tokens

    def end(self) -> None:
        self.done.set()


class Unseen(Job):
    """Somebody else's: nobody looks."""

    def put(self, tokens: int) -> None:
        pass

    def end(self) -> None:
        pass


def sample(
    stage: Stage,
    name: str,
    trial: int,
    tokens: int,
    sent: float,
    seen: list[float],
    end: float,
    *,
    made: int = 0,
    usage: bool = True,
    fault: str | None = None,
) -> Sample:
    def ns(instant: float) -> int:
        return round(instant * 1e9)

    return Sample(
        stage=stage,
        name=name,
        trial=trial,
        asked_tokens=tokens,
        sent_ns=ns(sent),
        first_token_ns=ns(seen[0]) if seen else None,
        last_token_ns=ns(seen[-1]) if seen else None,
        end_ns=ns(end),
        chunks=len(set(seen)),
        streamed=True,
        status=200 if seen else 429 if fault == "rate_limited" else None,
        prompt_tokens=40,
        output_tokens=made if usage and seen else None,
        finish_reason=("length" if made == tokens else "stop") if seen else None,
        fault=fault,
    )


PLAN = make_plan(long_s=2.0, max_requests=128, max_tokens=20_000, seconds=200)


async def whole_probe(endpoint: Endpoint, plan: Plan) -> tuple[Found, Conclusion]:
    front = Front(endpoint)
    await asyncio.sleep(1.0)  # others are there before
    first = await front.ask(stage="baseline", name="baseline", trial=0, tokens=32)
    found = Found(first)
    front.deadline = asyncio.get_running_loop().time() + plan.seconds
    await look(front.ask, plan, found, deadline=front.deadline)
    front.stop()
    baseline, alone = found.baseline, found.summary
    found.trials = found.judged
    return found, conclude(found.trials, baseline, alone, paced=paced(alone, baseline))


def probe_in_virtual_time(endpoint: Endpoint, plan: Plan = PLAN) -> tuple[Found, Conclusion]:
    return in_virtual_time(lambda: whole_probe(endpoint, plan))
