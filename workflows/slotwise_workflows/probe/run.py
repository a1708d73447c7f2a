"""A probe from its URL to its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import httpx
import numpy as np

from slotwise_workflows.errors import EndpointError, UsageError
from slotwise_workflows.probe.batching.conclude import conclude, telling
from slotwise_workflows.probe.batching.doubts import paced, speculative
from slotwise_workflows.probe.batching.look import Found, OnTrial, look
from slotwise_workflows.probe.batching.spans import timeline
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample, Stage, Stopped
from slotwise_workflows.probe.plan import BASELINE_TOKENS, size_trial
from slotwise_workflows.probe.prompts import prompt
from slotwise_workflows.probe.wire.chunks import model_names
from slotwise_workflows.probe.wire.client import Clock, Connection, ask, new_client
from slotwise_workflows.probe.wire.faults import endpoint_error, fault_of_exception, fault_of_status
from slotwise_workflows.probe.wire.target import Target, targets
from slotwise_workflows.result import Reason

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
        on_trial: Told how many group tests are done.

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
        found = Found(first)
        sent = _Sent(connection, rng, samples=[first], requests=tries)
        stopped = await _look(sent, plan, found, deadline, on_trial)
    return _result(connection, model, plan, found, sent, stopped)


async def _look(
    sent: _Sent, plan: Plan, found: Found, deadline: float, on_trial: OnTrial | None
) -> Stopped | None:
    """Runs the tests; Ctrl-C ends them, and what was done until then counts."""
    try:
        in_time = await look(sent.ask, plan, found, deadline=deadline, on_trial=on_trial)
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
        return sample


def _result(
    connection: Connection,
    model: str | None,
    plan: Plan,
    found: Found,
    sent: _Sent,
    stopped: Stopped | None,
) -> ProbeResult:
    baseline, alone = found.baseline, found.summary
    trials = found.judged
    end = conclude(trials, baseline, alone, paced=paced(alone, baseline))
    remarks = list(end.remarks)
    if speculative(sent.samples, baseline):
        remarks.append(Reason(code="several_tokens_a_chunk"))
    samples = sorted(sent.samples, key=lambda sample: (sample.sent_ns, sample.name))
    return ProbeResult(
        url=connection.target.shown,
        api=connection.target.api,
        model=model,
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
