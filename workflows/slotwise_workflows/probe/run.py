"""A probe from its URL to its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import httpx
import numpy as np

from slotwise_workflows.errors import EndpointError, UsageError
from slotwise_workflows.probe.batching.baseline import measure
from slotwise_workflows.probe.batching.classify import classify_trial, conclude
from slotwise_workflows.probe.batching.group import group_trial
from slotwise_workflows.probe.model import Baseline, Plan, ProbeResult, Sample, Sizes
from slotwise_workflows.probe.plan import BASELINE_TOKENS, size_trial
from slotwise_workflows.probe.prompts import prompt
from slotwise_workflows.probe.wire.chunks import model_names
from slotwise_workflows.probe.wire.client import Clock, Connection, ask, new_client
from slotwise_workflows.probe.wire.faults import endpoint_error, fault_of_exception, fault_of_status
from slotwise_workflows.probe.wire.target import Target, targets

OnTrial = Callable[[int, int], None]
"""Told how many trials are done, of how many."""

_LARGEST_LIST = 1 << 20
_MODELS_S = 15.0


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
    async with new_client(api_key) as client:
        if model is None:
            model = await _only_model(client, candidates[0])
        connection = Connection(client, candidates[0], model, True, clock, deadline)
        connection, first, tries = await _baseline(connection, candidates, rng)
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
        model=model,
        batching=end.batching,
        confidence=end.confidence,
        reason=end.reason,
        slots_at_least=end.slots_at_least,
        release=end.release,
        plan=plan,
        sizes=sizes,
        baseline=baseline,
        trials=trials,
        requests_sent=len(samples) - 1 + tries,
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


async def _baseline(
    connection: Connection, candidates: tuple[Target, ...], rng: np.random.Generator
) -> tuple[Connection, Sample, int]:
    """One request alone, on the first API that is there.

    Servers that do not know ``stream_options`` refuse it with 400 or 422; they are asked again
    without. Everything else that fails ends the probe.

    Returns:
        The connection that worked, its sample, and how many requests it took.
    """
    remaining = list(candidates[1:])
    tries = 0
    while True:
        tries += 1
        sample = await ask(
            connection,
            stage="baseline",
            name="baseline",
            trial=0,
            tokens=BASELINE_TOKENS,
            prompt=prompt(rng),
        )
        if sample.fault is None:
            return connection, sample, tries
        if sample.fault == "not_found" and remaining:
            connection = replace(connection, target=remaining.pop(0))
        elif sample.status in {400, 422} and connection.usage:
            connection = replace(connection, usage=False)
        else:
            raise endpoint_error(sample.fault, where=connection.target.shown, status=sample.status)


async def _only_model(client: httpx.AsyncClient, target: Target) -> str | None:
    """The endpoint's model, if it lists exactly one; None if it lists nothing.

    Raises:
        EndpointError: It cannot be reached, or lists several.
    """
    try:
        async with (
            asyncio.timeout(_MODELS_S),
            client.stream("GET", target.models_url) as response,
        ):
            fault = fault_of_status(response.status_code)
            if fault == "unauthorized":
                raise endpoint_error(fault, where=target.shown, status=response.status_code)
            if fault is not None:
                return None
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LARGEST_LIST:
                    return None
    except (httpx.HTTPError, TimeoutError) as error:
        raise endpoint_error(fault_of_exception(error), where=target.shown, status=None) from None
    names = model_names(body.decode("utf-8", "replace"))
    if len(names) > 1:
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise EndpointError(
            f"the endpoint serves {len(names)} models",
            where=target.shown,
            why=some,
            hint="Choose one with --model",
        )
    return names[0] if names else None
