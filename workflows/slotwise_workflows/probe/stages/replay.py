"""The last stage: a log sent again, by this process or by several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from slotwise_workflows.errors import SlotwiseError, UsageError
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.load.cost import measure_scale
from slotwise_workflows.probe.load.generator import Client
from slotwise_workflows.probe.load.model import Schedule, Sent
from slotwise_workflows.probe.load.replay import MOST_FAILED, requests_of, run_replay
from slotwise_workflows.probe.load.replay_plan import ReplayPlan, plan_replay
from slotwise_workflows.probe.model import Plan
from slotwise_workflows.probe.prompts import Scale
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wanted import Replayed
from slotwise_workflows.probe.wire.client import Connection
from slotwise_workflows.probe.wire.preflight import Preflight
from slotwise_workflows.ray_session import ray_is_missing
from slotwise_workflows.result import Reason


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A replay that was sent: the plan, and what became of it."""

    plan: ReplayPlan
    sent: Sent


@dataclass(frozen=True, slots=True)
class ToSpread:
    """A replay that several processes are to send: what, and where to."""

    plan: ReplayPlan
    schedule: Schedule
    connection: Connection


def check_replay(replay: Replayed, plan: Plan) -> ReplayPlan:
    """What a replay would send if all of a plan were left for it.

    Raises:
        UsageError: Its window is larger than the plan, or an option is out of range.
        InputError: The log has no arrival times.
        MissingExtraError: Several processes are to send it, and Ray is not installed.
    """
    if replay.spread and find_spec("ray") is None:
        raise ray_is_missing("use --workers 1, without --ray-address")
    return _plan(None, replay, Budget.of(plan), np.random.default_rng(0))


async def send_replay(
    client: Client,
    ready: Preflight,
    asked: Replayed,
    left: Callable[[], Budget],
    rng: np.random.Generator,
    *,
    scale: Scale | None,
) -> ReplayRun | ToSpread | Reason:
    """Sends a log again, as far as it fits into what is left.

    Args:
        client: How to send.
        ready: The endpoint.
        asked: The log, and what of it.
        left: What is left of the plan by now.
        rng: Of lengths and prompts.
        scale: How many tokens a word is, if known; else two requests find out.

    Returns:
        What was seen; what others are to send; or why nothing was sent.
    """
    longest = ready.endpoint.max_model_tokens
    try:
        _plan(longest, asked, left(), rng)  # before the two requests are spent
        if scale is None:
            _, scale = await measure_scale(client, rng)
        plan = _plan(longest, asked, left(), rng)  # and so that it may fit no longer
    except UsageError as error:
        return replay_failed(error)
    if asked.spread:
        schedule = Schedule(requests_of(plan, scale, rng), plan.workload.arrival_s)
        return ToSpread(plan, schedule, ready.connection)
    return ReplayRun(plan, await run_replay(client, plan, scale, rng))


def send_spread(replay: ToSpread, asked: Replayed, tally: Tally) -> ReplayRun | Reason:
    """Sends a replay from several processes, or from the machines of a cluster.

    Ray has no place inside of an event loop: none may run in this thread.

    Args:
        replay: What is sent.
        asked: By how many, and where they are.
        tally: Gets what was sent and answered, also where Ctrl-C ends it.

    Returns:
        What was seen, or why it failed.
    """
    from slotwise_workflows.probe.load.spread import spread_load

    try:
        sent = spread_load(
            replay.schedule,
            replay.connection,
            stage="replay",
            workers=asked.workers,
            seconds=replay.plan.seconds,
            address=asked.address,
            key_variable=asked.key_variable,
            give_up_after=max(1, MOST_FAILED // asked.workers),
            on_seen=tally.sent_elsewhere,
        )
    except SlotwiseError as error:  # what was found before stays
        return replay_failed(error)
    return ReplayRun(replay.plan, sent)


def replay_failed(error: SlotwiseError) -> Reason:
    """The remark that there is no replay, and why."""
    why = ": ".join(filter(None, (error.what, error.why)))
    return Reason(code="replay_failed", numbers={"why": why})


def _plan(
    context_tokens: int | None, replay: Replayed, budget: Budget, rng: np.random.Generator
) -> ReplayPlan:
    return plan_replay(
        replay.traffic,
        rng=rng,
        first=replay.first,
        busiest_s=replay.busiest_s,
        rate_scale=replay.rate_scale,
        length_scale=replay.length_scale,
        budget=budget,
        context_tokens=context_tokens,
    )
