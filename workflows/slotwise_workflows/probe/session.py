"""A whole look at an endpoint: how it batches, what an iteration costs, and whether that predicts.

The stages share one connection, one budget and one deadline; what an interrupt leaves is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import numpy as np

from slotwise_workflows.errors import EndpointError, SlotwiseError, UsageError
from slotwise_workflows.probe.budget import MEASURING, Budget, for_looking
from slotwise_workflows.probe.load.cost import CostRun, measure_scale, run_cost
from slotwise_workflows.probe.load.cost_fit import fit_cost, server_of
from slotwise_workflows.probe.load.cost_plan import CostPlan, plan_cost
from slotwise_workflows.probe.load.findings import CostFinding, ReplayFigures
from slotwise_workflows.probe.load.generator import Client, sender
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.load.prompts import Scale
from slotwise_workflows.probe.load.replay import (
    MOST_FAILED,
    replay_figures,
    requests_of,
    run_replay,
)
from slotwise_workflows.probe.load.replay_plan import ReplayPlan, plan_replay
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample, Stage, Stopped
from slotwise_workflows.probe.run import OnProgress, find_out, opened
from slotwise_workflows.probe.wire.client import Clock
from slotwise_workflows.probe.wire.preflight import Preflight
from slotwise_workflows.result import Reason
from slotwise_workflows.sweep.engine import ray_is_missing

if TYPE_CHECKING:
    from slotwise_sim.replay import Server
    from slotwise_workflows.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Replayed:
    """A log to be sent again, see `plan_replay`.

    Attributes:
        traffic: Its requests.
        first: Send so many; None sends as many as the plan allows.
        busiest_s: Send the busiest stretch of so many seconds instead.
        rate_scale: How many times as fast.
        length_scale: Lengths times this.
        workers: Processes that send it, as actors of Ray where they are more than one.
        address: Of an existing Ray cluster whose machines send it.
        key_variable: Environment variable that holds the API key there.
    """

    traffic: Traffic
    first: int | None = None
    busiest_s: float | None = None
    rate_scale: float = 1.0
    length_scale: float = 1.0
    workers: int = 1
    address: str | None = None
    key_variable: str | None = None

    @property
    def spread(self) -> bool:
        """Whether others than this process send it."""
        return self.workers > 1 or self.address is not None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be found out beside how the endpoint batches.

    Attributes:
        cost: Whether to measure what an iteration costs.
        like: A log whose lengths the requests of the cost stage have; None takes the article's.
        replay: A log to be sent again.
    """

    cost: bool = True
    like: Traffic | None = None
    replay: Replayed | None = None


@dataclass(slots=True)
class _Further:
    """What the stages after the first have seen so far."""

    samples: list[Sample] = field(default_factory=list)
    remarks: list[Reason] = field(default_factory=list)
    cost: CostRun | None = None
    replay: tuple[Sent, ReplayPlan] | None = None
    spread: Callable[[], None] | None = None
    sent: int = 0
    late: bool = False
    interrupted: bool = False


def look_and_measure(
    url: str,
    plan: Plan,
    wanted: Wanted,
    *,
    api: Literal["auto", "chat", "completions"] = "auto",
    model: str | None = None,
    api_key: str | None = None,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
    on_progress: OnProgress = lambda _done, _most: None,
) -> ProbeResult:
    """Finds out how an endpoint batches, what an iteration costs there, and how well that predicts.

    Args:
        url: The endpoint.
        plan: What may be sent at most, all stages together.
        wanted: What is to be found out.
        api: Which API; ``auto`` tries chat completions, then completions.
        model: The model to ask for; the endpoint's only one if left out.
        api_key: Sent as a bearer token, and never anywhere else.
        seed: Of prompts, lengths and the order of the stages' parts.
        clock: Nanoseconds of a clock that never steps back.
        on_progress: Told how many requests are answered, of how many at most.

    Returns:
        Everything found; ``interrupted`` where Ctrl-C or the plan's time ended it early.

    Raises:
        UsageError: The URL, the key or the window of the replay cannot be used.
        EndpointError: The endpoint cannot be reached or does not answer the first request.
        InputError: The log to be replayed has no arrival times.
        MissingExtraError: The replay is to be sent by several processes, and Ray is not installed.
    """
    rng = np.random.default_rng(seed)
    further = _Further()
    if wanted.replay is not None:
        check_replay(wanted.replay, plan)  # before anything is spent

    async def run() -> ProbeResult:
        begin = asyncio.get_running_loop().time()
        deadline = begin + plan.seconds
        async with opened(url, api, model, api_key, rng, clock, deadline) as ready:
            looking = for_looking(plan) if wanted.cost or wanted.replay is not None else plan
            result = await find_out(
                ready,
                looking,
                rng,
                begin + looking.seconds,
                lambda done, _: on_progress(done, plan.requests),
            )
            if result.stopped_by != "user":
                passed_s = asyncio.get_running_loop().time() - begin
                left = Budget.of(plan).less(result.requests_sent, result.samples, passed_s)

                def answered(sample: Sample) -> None:
                    further.samples.append(sample)
                    on_progress(len(result.samples) + len(further.samples), plan.requests)

                work = _measure(ready, result, wanted, left, rng, clock, further, answered)
                await _kept_on_ctrl_c(work, further)
        return result

    result = asyncio.run(run())
    if further.spread is not None:
        try:
            further.spread()
        except KeyboardInterrupt:
            further.interrupted = True
        except SlotwiseError as error:  # what was found before stays
            further.remarks.append(_replay_failed(error))
    return _complete(result, plan, further)


async def _kept_on_ctrl_c(work: Awaitable[None], further: _Further) -> None:
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        further.interrupted = True


async def _measure(
    ready: Preflight,
    result: ProbeResult,
    wanted: Wanted,
    budget: Budget,
    rng: np.random.Generator,
    clock: Clock,
    further: _Further,
    on_sample: Callable[[Sample], None],
) -> None:
    """The stages after the first, each with what those before have left."""
    begin_ns = clock()

    def client(stage: Stage) -> Client:
        send = sender(ready.connection, stage)

        async def counted(planned: Planned) -> Sample:
            further.sent += 1
            return await send(planned)

        return Client(counted, clock=clock, on_sample=on_sample)

    def left() -> Budget:
        return budget.less(further.sent, further.samples, (clock() - begin_ns) / 1e9)

    if wanted.cost:
        plan = _cost_plan(ready, result, wanted, left(), rng, further)
        if plan is not None:
            further.cost = await run_cost(client("cost"), plan, rng)
    if wanted.replay is not None:
        await _replay(ready, wanted.replay, client("replay"), left, rng, further)
    further.late = (
        any(sample.fault == "timeout" for sample in further.samples) or not left().seconds
    )


async def _replay(
    ready: Preflight,
    asked: Replayed,
    client: Client,
    left: Callable[[], Budget],
    rng: np.random.Generator,
    further: _Further,
) -> None:
    """Replays a log as far as it fits into what is left."""
    longest = ready.endpoint.max_model_tokens
    try:
        _replay_plan(longest, asked, left(), rng)
        if further.cost is not None:
            scale = further.cost.scale
        else:  # two requests, so that it may fit no longer
            _, scale = await measure_scale(client, rng)
        plan = _replay_plan(longest, asked, left(), rng)
    except UsageError as error:
        further.remarks.append(_replay_failed(error))
        return
    if asked.spread:  # Ray has no place inside of an event loop
        further.spread = partial(_spread, ready, asked, plan, scale, rng, further)
    else:
        further.replay = await run_replay(client, plan, scale, rng), plan


def _spread(
    ready: Preflight,
    asked: Replayed,
    plan: ReplayPlan,
    scale: Scale,
    rng: np.random.Generator,
    further: _Further,
) -> None:
    """Sends a replay from several processes, or from the machines of a cluster."""
    from slotwise_workflows.probe.load.spread import OpenLoad, spread_load

    sent = spread_load(
        OpenLoad(requests_of(plan, scale, rng), plan.workload.arrival_s),
        ready.connection,
        stage="replay",
        workers=asked.workers,
        seconds=plan.seconds,
        address=asked.address,
        key_variable=asked.key_variable,
        give_up_after=max(1, MOST_FAILED // asked.workers),
    )
    further.sent += len(sent.samples)
    further.samples += sent.samples
    further.replay = sent, plan


def _cost_plan(
    ready: Preflight,
    result: ProbeResult,
    wanted: Wanted,
    budget: Budget,
    rng: np.random.Generator,
    further: _Further,
) -> CostPlan | None:
    """What the cost stage sends; None, with a remark, where it cannot tell anything."""
    if result.batching == "undetermined":
        further.remarks.append(Reason(code="cost_needs_batching"))
        return None
    budget = budget.at_most(MEASURING)
    lengths = None
    prompts: dict[str, np.ndarray] = {}
    if wanted.like is not None:
        workload = wanted.like.workload()
        lengths = workload.output_tokens
        if workload.prompt_tokens.any():
            prompts["prompts"] = np.maximum(1, workload.prompt_tokens)
    try:
        return plan_cost(
            batching=result.batching,
            slots=result.slots or result.slots_at_least,
            baseline=result.baseline,
            rng=rng,
            lengths=lengths,
            budget=budget,
            context_tokens=ready.endpoint.max_model_tokens,
            **prompts,
        )
    except UsageError:
        further.remarks.append(
            Reason(
                code="cost_needs_budget",
                numbers={"requests": budget.requests, "tokens": budget.output_tokens},
            )
        )
        return None


def check_replay(replay: Replayed, plan: Plan) -> ReplayPlan:
    """What a replay would send if all of a plan were left for it.

    Raises:
        UsageError: Its window is larger than the plan, or an option is out of range.
        InputError: The log has no arrival times.
        MissingExtraError: Several processes are to send it, and Ray is not installed.
    """
    if replay.spread and find_spec("ray") is None:
        raise ray_is_missing()
    return _replay_plan(None, replay, Budget.of(plan), np.random.default_rng(0))


def _replay_plan(
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


def _replay_failed(error: SlotwiseError) -> Reason:
    why = ": ".join(filter(None, (error.what, error.why)))
    return Reason(code="replay_failed", numbers={"why": why})


def _complete(result: ProbeResult, plan: Plan, further: _Further) -> ProbeResult:
    """The result with what the later stages found; an interrupt leaves what was measured."""
    cost, replay = None, None
    try:
        cost, replay = _computed(result, further)
    except KeyboardInterrupt:
        further.interrupted = True
    samples = [*result.samples, *further.samples]
    late: Stopped | None = "max_seconds" if further.late else result.stopped_by
    stopped = "user" if further.interrupted else late
    return result.model_copy(
        update={
            "plan": plan,
            "remarks": [*result.remarks, *further.remarks],
            "cost": cost,
            "replay": replay,
            "samples": samples,
            "requests_sent": result.requests_sent + further.sent,
            "output_tokens": sum(sample.output_tokens or 0 for sample in samples),
            "interrupted": stopped is not None,
            "stopped_by": stopped,
        }
    )


def _computed(
    result: ProbeResult, further: _Further
) -> tuple[CostFinding | None, ReplayFigures | None]:
    """The cost fitted to what was seen, and the replay held against a simulation at that cost."""
    server, cost, replay = _server(result), None, None
    if further.cost is not None and server is not None:
        cost = fit_cost(further.cost, server, others=result.samples)
    if further.replay is not None:
        sent, plan = further.replay
        calibration = None if cost is None else cost.calibration
        try:
            replay = replay_figures(sent, plan, calibration=calibration, server=server)
        except EndpointError as error:
            further.remarks.append(_replay_failed(error))
    return cost, replay


def _server(result: ProbeResult) -> Server | None:
    """The server that was found, as it is simulated; None where it was not."""
    if result.batching == "undetermined":
        return None
    return server_of(
        result.batching,
        result.slots or result.slots_at_least,
        release=result.release,
        max_delay_ms=result.delay_ms or 0.0,
    )
