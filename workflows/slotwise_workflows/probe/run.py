"""A probe from its URL to its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.batching.conclude import conclude, telling
from slotwise_workflows.probe.batching.doubts import paced, speculative
from slotwise_workflows.probe.batching.look import Found, look
from slotwise_workflows.probe.batching.spans import timeline
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample, Stage, Stopped
from slotwise_workflows.probe.plan import BASELINE_TOKENS, size_trial
from slotwise_workflows.probe.prompts import prompt
from slotwise_workflows.probe.wire.client import Clock, Connection, ask, new_client
from slotwise_workflows.probe.wire.preflight import Preflight, preflight
from slotwise_workflows.probe.wire.target import targets
from slotwise_workflows.result import Reason

OnProgress = Callable[[int, int], None]
"""Told how many requests are answered, of how many at most."""


def probe(
    url: str,
    plan: Plan,
    *,
    api: Literal["auto", "chat", "completions"] = "auto",
    model: str | None = None,
    api_key: str | None = None,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
    on_progress: OnProgress = lambda _done, _most: None,
) -> ProbeResult:
    """Finds out from outside how an OpenAI-compatible endpoint batches.

    Sends a request alone to measure, then the tests of the plan. All prompts are generated; no
    answer is kept. Interrupted by Ctrl-C after its first test, it judges what was done.

    Args:
        url: The endpoint.
        plan: What may be sent at most.
        api: Which API; ``auto`` tries chat completions, then completions.
        model: The model to ask for; the endpoint's only one if left out.
        api_key: Sent as a bearer token, and never anywhere else.
        seed: Of the prompts.
        clock: Nanoseconds of a clock that never steps back.
        on_progress: Told how many requests are answered, of how many at most.

    Returns:
        The verdict, its evidence and the times of every request.

    Raises:
        UsageError: The URL or the key cannot be used.
        EndpointError: The endpoint cannot be reached or does not answer the first request.
    """

    async def run() -> ProbeResult:
        rng = np.random.default_rng(seed)
        deadline = asyncio.get_running_loop().time() + plan.seconds
        async with opened(url, api, model, api_key, rng, clock, deadline) as ready:
            return await find_out(ready, plan, rng, deadline, on_progress)

    return asyncio.run(run())


@asynccontextmanager
async def opened(
    url: str,
    api: Literal["auto", "chat", "completions"],
    model: str | None,
    api_key: str | None,
    rng: np.random.Generator,
    clock: Clock,
    deadline: float,
) -> AsyncIterator[Preflight]:
    """An endpoint that has answered one request; its connections are closed behind the block.

    Args:
        url: As in `probe`, like all but the last.
        api: Likewise.
        model: Likewise.
        api_key: Likewise.
        rng: Of the prompts.
        clock: Likewise.
        deadline: When every request is given up, on the event loop's clock.

    Raises:
        UsageError: The URL or the key cannot be used.
        EndpointError: The endpoint cannot be reached or does not answer.
    """
    candidates = targets(url, api)
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
        raise UsageError("the API key holds characters that no key has")
    async with new_client(api_key, candidates[0]) as client:
        yield await preflight(
            client,
            candidates,
            model=model,
            tokens=BASELINE_TOKENS,
            rng=rng,
            clock=clock,
            deadline=deadline,
        )


async def find_out(
    ready: Preflight,
    plan: Plan,
    rng: np.random.Generator,
    deadline: float,
    on_progress: OnProgress,
) -> ProbeResult:
    """Sends the tests of the plan and judges them; the arguments as in `probe` and `opened`."""
    found = Found(ready.sample)
    sent = _Sent(ready.connection, rng, [ready.sample], ready.requests, plan.requests, on_progress)
    stopped = await _look(sent, plan, found, deadline)
    return _result(ready, plan, found, sent, stopped)


async def _look(sent: _Sent, plan: Plan, found: Found, deadline: float) -> Stopped | None:
    """Runs the tests; Ctrl-C ends them, and what was done until then counts."""
    try:
        in_time = await look(sent.ask, plan, found, deadline=deadline)
    except asyncio.CancelledError:
        if not found.trials:
            raise  # nothing to be judged
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return "user"
    return None if in_time else "max_seconds"


@dataclass
class _Sent:
    """Sends the requests of the tests, and keeps the samples of those that came to an end."""

    connection: Connection
    rng: np.random.Generator
    samples: list[Sample]
    requests: int
    most: int
    on_progress: OnProgress

    async def ask(
        self,
        *,
        stage: Stage,
        name: str,
        trial: int,
        tokens: int,
        on_first_token: Callable[[], None] = lambda: None,
    ) -> Sample:
        self.requests += 1
        sample = await ask(
            self.connection,
            stage=stage,
            name=name,
            trial=trial,
            tokens=tokens,
            prompt=prompt(self.rng),
            on_first_token=on_first_token,
        )
        self.samples.append(sample)
        self.on_progress(len(self.samples), self.most)
        return sample


def _result(
    ready: Preflight, plan: Plan, found: Found, sent: _Sent, stopped: Stopped | None
) -> ProbeResult:
    baseline, alone = found.baseline, found.summary
    trials = found.judged
    end = conclude(trials, baseline, alone, paced=paced(alone, baseline))
    remarks = list(end.remarks)
    if speculative(sent.samples, baseline):
        remarks.append(Reason(code="several_tokens_a_chunk"))
    samples = sorted(sent.samples, key=lambda sample: (sample.sent_ns, sample.name))
    return ProbeResult(
        url=ready.connection.target.shown,
        api=ready.connection.target.api,
        model=ready.connection.model,
        endpoint=ready.endpoint,
        batching=end.batching,
        confidence=end.confidence,
        reason=end.reason,
        remarks=remarks,
        slots=end.slots,
        slots_at_least=end.slots_at_least,
        release=end.release,
        gather_s=end.gather_s,
        interrupted=stopped is not None,
        stopped_by=stopped,
        plan=plan,
        sizes=size_trial(plan, baseline) if found.sizes is None else found.sizes,
        baseline=baseline,
        alone=alone,
        trials=trials,
        timeline=timeline(found.samples.get(telling(trials, end), [])),
        requests_sent=sent.requests,
        output_tokens=sum(sample.output_tokens or 0 for sample in samples),
        samples=samples,
    )
