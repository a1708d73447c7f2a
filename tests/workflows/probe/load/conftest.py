"""Load in virtual time: the real generator against engines of known cost, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import probe_server
from slotwise_workflows.probe.load.generator import Client
from slotwise_workflows.probe.load.model import Planned
from slotwise_workflows.probe.model import Sample, Stage
from virtual_time import clock_ns, in_virtual_time


@dataclass
class Costly:
    """An engine that admits at every step, and prefills beside what decodes.

    A step takes ``base_ms + per_seq_ms * decoding + per_prefill_ms * prompt tokens admitted in
    it``, times a random factor; every request in it makes a token. Written apart from the
    simulator, step by step.
    """

    base_ms: float = 20.0
    per_seq_ms: float = 0.0
    per_prefill_ms: float = 0.0
    slots: int = 8
    jitter: float = 0.0
    seed: int = 0
    waiting: list[Any] = field(default_factory=list)
    running: list[Any] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def submit(self, job: Any) -> None:
        self.waiting.append(job)
        self.wake.set()

    async def run(self) -> None:
        rng = np.random.default_rng(self.seed)
        while True:
            if not self.running and not self.waiting:
                self.wake.clear()
                await self.wake.wait()
            decoding = len(self.running)
            fresh = self.waiting[: self.slots - decoding]
            del self.waiting[: len(fresh)]
            self.running += fresh
            prompts = sum(job.prompt for job in fresh)
            step_ms = self.base_ms + self.per_seq_ms * decoding + self.per_prefill_ms * prompts
            await asyncio.sleep(step_ms * (1 + self.jitter * rng.uniform(-1, 1)) / 1000)
            for job in list(self.running):
                job.made += 1
                job.out.put_nowait("token")
                if job.made == job.tokens:
                    job.out.put_nowait("end")
                    self.running.remove(job)


@dataclass
class Endpoint:
    """An engine behind a network, as the generator's `Send`.

    Attributes:
        engine: With ``submit`` and ``run``, such as the test server's own.
        make_job: The engine's job of so many tokens.
        network_ms: There, and as long back.
        stage: Of the samples.
        words: Whether a prompt's tokens are counted; else none are told.
        fault: The fault of the n-th request, from 1.
    """

    engine: Any
    make_job: Callable[[int], Any]
    network_ms: float = 2.0
    stage: Stage = "cost"
    words: bool = True
    fault: Callable[[int], str | None] = lambda _number: None
    sent: int = 0

    async def send(self, planned: Planned) -> Sample:
        self.sent += 1
        fault, sent_ns = self.fault(self.sent), clock_ns()
        prompt = 10 + len(planned.prompt.split())
        stamps = []
        await asyncio.sleep(self.network_ms / 1000)
        if fault is None:
            job = self.make_job(planned.tokens)
            job.prompt = prompt
            self.engine.submit(job)
            while await job.out.get() == "token":
                stamps.append(clock_ns() + round(self.network_ms * 1e6))
        await asyncio.sleep(self.network_ms / 1000)
        return Sample(
            stage=self.stage,
            name=planned.name,
            trial=planned.trial,
            asked_tokens=planned.tokens,
            sent_ns=sent_ns,
            first_token_ns=stamps[0] if stamps else None,
            last_token_ns=stamps[-1] if stamps else None,
            end_ns=clock_ns(),
            chunks=len(stamps),
            streamed=True,
            status=200 if fault is None else 429,
            prompt_tokens=prompt if self.words else None,
            output_tokens=len(stamps) if stamps else None,
            finish_reason="length" if stamps else None,
            fault=fault,
        )


@dataclass(frozen=True)
class Bench:
    """What the tests work at."""

    costly: Callable[..., Costly]
    endpoint: Callable[..., Endpoint]
    server: Any

    def run(self, endpoint: Endpoint, work: Callable[[Client], Awaitable[Any]], **how: Any) -> Any:
        """Runs work with a client of the endpoint; its engine is there as long."""

        async def all_of_it() -> Any:
            engine = asyncio.create_task(endpoint.engine.run())
            client = Client(endpoint.send, clock=clock_ns, cpu_clock=clock_ns, spin_s=0.0, **how)
            try:
                return await work(client)
            finally:
                engine.cancel()

        return in_virtual_time(all_of_it)

    def in_virtual_time(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Runs anything on a loop whose clock jumps."""
        return in_virtual_time(work)


@pytest.fixture(scope="session")
def bench() -> Bench:
    """Engines, an endpoint and virtual time."""
    return Bench(Costly, Endpoint, probe_server)
