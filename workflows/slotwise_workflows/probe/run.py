"""A probe from its URL to its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.batching.baseline import measure
from slotwise_workflows.probe.batching.classify import classify_trial, conclude
from slotwise_workflows.probe.batching.group import group_trial
from slotwise_workflows.probe.model import Baseline, Plan, ProbeResult, Sample, Sizes
from slotwise_workflows.probe.plan import BASELINE_TOKENS, size_trial
from slotwise_workflows.probe.prompts import prompt
from slotwise_workflows.probe.wire.client import Clock, Connection, ask, new_client
from slotwise_workflows.probe.wire.preflight import preflight
from slotwise_workflows.probe.wire.target import Target, targets

OnTrial = Callable[[int, int], None]
"""Told how many trials are done, of how many."""


def probe(
    url: str,
    plan: Plan,
    *,
    api: Literal["auto", "chat", "completions"] = "auto",
    model: str | None = None,
    api_key: str | None = None,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
    on_trial: OnTrial | None = None,
) -> ProbeResult:
    """Finds out from outside how an OpenAI-compatible endpoint batches.

    Sends a request alone to measure, then the trials of the group test of the plan. All prompts are
    generated; no answer is kept.

    Args:
        url: The endpoint.
        plan: What may be sent at most.
        api: Which API; ``auto`` tries chat completions, then completions.
        model: The model to ask for; the endpoint's only one if left out.
        api_key: Sent as a bearer token, and never anywhere else.
        seed: Of the prompts.
        clock: Nanoseconds of a clock that never steps back.
        on_trial: Told how many trials are done.

    Returns:
        The verdict, its evidence and the times of every request.

    Raises:
        UsageError: The URL or the key cannot be used.
        EndpointError: The endpoint cannot be reached or does not answer the first request.
    """
    candidates = targets(url, api)
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
        raise UsageError("the API key holds characters that no key has")
    return asyncio.run(
        _probe(candidates, plan, model, api_key, np.random.default_rng(seed), clock, on_trial)
    )


async def _probe(
    candidates: tuple[Target, ...],
    plan: Plan,
    model: str | None,
    api_key: str | None,
    rng: np.random.Generator,
    clock: Clock,
    on_trial: OnTrial | None,
) -> ProbeResult:
    deadline = asyncio.get_running_loop().time() + plan.seconds
    async with new_client(api_key, candidates[0]) as client:
        found_out = await preflight(
            client,
            candidates,
            model=model,
            tokens=BASELINE_TOKENS,
            rng=rng,
            clock=clock,
            deadline=deadline,
        )
        connection, first = found_out.connection, found_out.sample
        baseline = measure(first)
        sizes = size_trial(plan, baseline)
        samples = [first]
        trials = []
        for trial in range(1, plan.trials + 1):
            found = await _trial(connection, plan, sizes, baseline, rng, trial)
            samples += found
            trials.append(classify_trial(found, baseline, sizes, trial=trial))
            if on_trial is not None:
                on_trial(trial, plan.trials)
    end = conclude(trials, streams=baseline.streams)
    return ProbeResult(
        url=connection.target.shown,
        api=connection.target.api,
        model=connection.model,
        endpoint=found_out.endpoint,
        batching=end.batching,
        confidence=end.confidence,
        reason=end.reason,
        slots_at_least=end.slots_at_least,
        release=end.release,
        plan=plan,
        sizes=sizes,
        baseline=baseline,
        trials=trials,
        requests_sent=len(samples) - 1 + found_out.requests,
        output_tokens=sum(sample.output_tokens or 0 for sample in samples),
        samples=samples,
    )


async def _trial(
    connection: Connection,
    plan: Plan,
    sizes: Sizes,
    baseline: Baseline,
    rng: np.random.Generator,
    trial: int,
) -> list[Sample]:
    async def one(*, name: str, tokens: int, on_first_token: Callable[[], None]) -> Sample:
        return await ask(
            connection,
            stage="group",
            name=name,
            trial=trial,
            tokens=tokens,
            prompt=prompt(rng),
            on_first_token=on_first_token,
        )

    return await group_trial(one, sizes, baseline, long_s=plan.long_s)
