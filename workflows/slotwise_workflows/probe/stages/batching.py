"""The first stage: sends the tests of how an endpoint batches, and judges them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slotwise_workflows.probe.batching.conclude import conclude, telling
from slotwise_workflows.probe.batching.doubts import paced, speculative
from slotwise_workflows.probe.batching.look import Found, look
from slotwise_workflows.probe.batching.send import Ask
from slotwise_workflows.probe.batching.spans import timeline
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample, Stage, Stopped
from slotwise_workflows.probe.plan import size_trial
from slotwise_workflows.probe.prompts import ANY_WORDS, prompt_of
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wire.client import Connection, ask
from slotwise_workflows.probe.wire.preflight import Preflight
from slotwise_workflows.result import Reason


async def find_out(
    ready: Preflight, plan: Plan, tally: Tally, rng: np.random.Generator, deadline: float
) -> ProbeResult:
    """Sends the tests of a plan and judges them; interrupted after its first test, what was done.

    Args:
        ready: The endpoint.
        plan: What may be sent.
        tally: Of what is sent; with the first request alone in it.
        rng: Of the prompts.
        deadline: When the tests end, on the event loop's clock.

    Raises:
        asyncio.CancelledError: It was interrupted before there was anything to judge.
    """
    found = Found(ready.sample)
    looking = replace(ready.connection, deadline=deadline)  # earlier than that of the whole probe
    stopped = await _look(_asking(looking, tally, rng), plan, found, deadline)
    return _judged(ready, plan, found, tally, stopped)


def _asking(connection: Connection, tally: Tally, rng: np.random.Generator) -> Ask:
    async def tallied(
        *,
        stage: Stage,
        name: str,
        trial: int,
        tokens: int,
        on_first_token: Callable[[], None] = lambda: None,
    ) -> Sample:
        tally.sending()
        sample = await ask(
            connection,
            stage=stage,
            name=name,
            trial=trial,
            tokens=tokens,
            prompt=prompt_of(ANY_WORDS, rng),
            on_first_token=on_first_token,
        )
        tally.answered(sample)
        return sample

    return tallied


async def _look(send: Ask, plan: Plan, found: Found, deadline: float) -> Stopped | None:
    """Runs the tests; Ctrl-C ends them, and what was done until then counts."""
    try:
        in_time = await look(send, plan, found, deadline=deadline)
    except asyncio.CancelledError:
        if not found.trials:
            raise  # nothing to be judged
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return "user"
    return None if in_time else "max_seconds"


def _judged(
    ready: Preflight, plan: Plan, found: Found, tally: Tally, stopped: Stopped | None
) -> ProbeResult:
    baseline, alone = found.baseline, found.summary
    trials = found.judged
    end = conclude(trials, baseline, alone, paced=paced(alone, baseline))
    remarks = list(end.remarks)
    if speculative(tally.samples, baseline):
        remarks.append(Reason(code="several_tokens_a_chunk"))
    samples = sorted(tally.samples, key=lambda sample: (sample.sent_ns, sample.name))
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
        requests_sent=tally.requests,
        output_tokens=sum(sample.output_tokens or 0 for sample in samples),
        samples=samples,
    )
