"""A whole probe of an endpoint: how it batches, what an iteration costs, how well that predicts.

The stages share one connection, one budget and one deadline; what an interrupt leaves is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from slotwise_workflows.probe.budget import Budget, for_looking
from slotwise_workflows.probe.complete import Seen, completed
from slotwise_workflows.probe.load.cost import CostRun
from slotwise_workflows.probe.load.generator import tallied
from slotwise_workflows.probe.model import Plan, ProbeResult
from slotwise_workflows.probe.plan import BASELINE_TOKENS
from slotwise_workflows.probe.stages.batching import find_out
from slotwise_workflows.probe.stages.cost import measure_cost
from slotwise_workflows.probe.stages.replay import (
    ReplayRun,
    ToSpread,
    check_replay,
    send_replay,
    send_spread,
)
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wanted import Replayed, Wanted
from slotwise_workflows.probe.wire.client import new_client
from slotwise_workflows.probe.wire.preflight import Preflight, preflight
from slotwise_workflows.probe.wire.target import check_model, targets
from slotwise_workflows.result import Reason

OnProgress = Callable[[int, int], None]
"""Told how many requests are answered, of how many at most."""


def look_and_measure(
    url: str,
    plan: Plan,
    wanted: Wanted,
    *,
    api: Literal["auto", "chat", "completions"] = "auto",
    model: str | None = None,
    api_key: str | None = None,
    seed: int = 0,
    on_progress: OnProgress = lambda _done, _most: None,
) -> ProbeResult:
    """Finds out how an endpoint batches, what an iteration costs there, and how well that predicts.

    All prompts are generated; no answer is kept.

    Args:
        url: The endpoint.
        plan: What may be sent at most, all stages together.
        wanted: What is to be found out.
        api: Which API; ``auto`` tries chat completions, then completions.
        model: The model to ask for; the endpoint's only one if left out.
        api_key: Sent as a bearer token, and never anywhere else.
        seed: Of prompts, lengths and the order of the stages' parts.
        on_progress: Told how many requests are answered, of how many at most.

    Returns:
        Everything found; ``interrupted`` where Ctrl-C or the plan's time ended it early.

    Raises:
        UsageError: The URL, the key, the model's name or the window of the replay cannot be used.
        EndpointError: The endpoint cannot be reached or does not answer the first request.
        InputError: The log to be replayed has no arrival times.
        MissingExtraError: The replay is to be sent by several processes, and Ray is not installed.
        KeyboardInterrupt: Ctrl-C came before there was anything to judge.
    """
    check_model(model)
    if wanted.replay is not None:
        check_replay(wanted.replay, plan)  # before anything is spent
    rng = np.random.default_rng(seed)

    async def run() -> Seen:
        begin = asyncio.get_running_loop().time()
        candidates = targets(url, api)
        async with new_client(api_key, candidates[0]) as client:
            ready = await preflight(
                client,
                candidates,
                model=model,
                tokens=BASELINE_TOKENS,
                rng=rng,
                clock=time.perf_counter_ns,
                deadline=begin + plan.seconds,
            )
            return await _stages(ready, plan, wanted, rng, begin, on_progress)

    seen = asyncio.run(run())
    if wanted.replay is not None and isinstance(seen.replay, ToSpread):
        seen = _spread(seen, seen.replay, wanted.replay)
    return completed(seen, plan)


async def _stages(
    ready: Preflight,
    plan: Plan,
    wanted: Wanted,
    rng: np.random.Generator,
    begin: float,
    on_progress: OnProgress,
) -> Seen:
    """One stage after the other, each with what those before have left."""
    loop = asyncio.get_running_loop()
    tally = Tally(
        ready.requests, [ready.sample], lambda answered: on_progress(answered, plan.requests)
    )

    def left() -> Budget:
        return Budget.of(plan).less(tally.requests, tally.samples, loop.time() - begin)

    looking = for_looking(plan, alone=not wanted.cost and wanted.replay is None)
    found = await find_out(ready, looking, tally, rng, begin + looking.seconds)
    cost: CostRun | Reason | None = None
    replay: ReplayRun | ToSpread | Reason | None = None
    interrupted = found.stopped_by == "user"
    try:
        if wanted.cost and not interrupted:
            client = tallied(tally, ready.connection, "cost")
            cost = await measure_cost(client, found, left(), rng, like=wanted.like)
        if wanted.replay is not None and not interrupted:
            client = tallied(tally, ready.connection, "replay")
            scale = cost.scale if isinstance(cost, CostRun) else None
            replay = await send_replay(client, ready, wanted.replay, left, rng, scale=scale)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        interrupted = True
    return Seen(found, cost, replay, tally, not left().seconds, interrupted)


def _spread(seen: Seen, replay: ToSpread, asked: Replayed) -> Seen:
    try:
        return replace(seen, replay=send_spread(replay, asked, seen.tally))
    except KeyboardInterrupt:
        return replace(seen, replay=None, interrupted=True)
