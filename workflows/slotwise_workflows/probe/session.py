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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from slotwise_workflows.errors import EndpointError, SlotwiseError, UsageError
from slotwise_workflows.probe.load.cost import CostRun, measure_scale, run_cost
from slotwise_workflows.probe.load.cost_fit import fit_cost, server_of
from slotwise_workflows.probe.load.cost_plan import Budget, CostPlan, plan_cost
from slotwise_workflows.probe.load.generator import Client, sender
from slotwise_workflows.probe.load.model import Sent
from slotwise_workflows.probe.load.prompts import Scale
from slotwise_workflows.probe.load.replay import replay_figures, requests_of, run_replay
from slotwise_workflows.probe.load.replay_plan import ReplayPlan, plan_replay
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample, Stage
from slotwise_workflows.probe.run import OnProgress, find_out, opened
from slotwise_workflows.probe.wire.client import Clock
from slotwise_workflows.probe.wire.preflight import Preflight
from slotwise_workflows.result import Reason
from slotwise_workflows.sweep.engine import ray_is_missing

if TYPE_CHECKING:
    from slotwise_sim.replay import Server
    from slotwise_workflows.traffic import Traffic

LOOKING = Budget(requests=128, output_tokens=32_768, seconds=300.0)
MEASURING = Budget(requests=160, output_tokens=16_384, seconds=120.0)
"""What finding out how it batches takes as a rule, and what an iteration costs at most.

A plan that allows more than both gives what is beyond to the first; a replay has what is left.
"""


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
        _check_replay(wanted.replay, plan)  # before anything is spent

    async def run() -> ProbeResult:
        begin = asyncio.get_running_loop().time()
        deadline = begin + plan.seconds
        async with opened(url, api, model, api_key, rng, clock, deadline) as ready:
            looking = _looking(plan)
            result = await find_out(
                ready,
                looking,
                rng,
                begin + looking.seconds,
                lambda done, _: on_progress(done, plan.requests),
            )
            if result.stopped_by != "user":
                spent = _spent(result, asyncio.get_running_loop().time() - begin)
                budget = _left(plan, spent)

                def answered(sample: Sample) -> None:
                    further.samples.append(sample)
                    on_progress(len(result.samples) + len(further.samples), plan.requests)

                work = _measure(ready, result, wanted, budget, rng, clock, further, answered)
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


def _looking(plan: Plan) -> Plan:
    """The part of a plan for finding out how it batches; that comes first."""

    def part(name: str) -> Any:
        allowed = getattr(plan, name)
        return max(min(allowed, getattr(LOOKING, name)), allowed - getattr(MEASURING, name))

    return plan.model_copy(update={name: part(name) for name in Budget.model_fields})


def _spent(result: ProbeResult, seconds: float) -> Budget:
    asked = sum(sample.asked_tokens for sample in result.samples)
    return Budget(requests=result.requests_sent, output_tokens=asked, seconds=seconds)


def _left(plan: Plan, spent: Budget) -> Budget:
    return Budget(
        requests=max(0, plan.requests - spent.requests),
        output_tokens=max(0, plan.output_tokens - spent.output_tokens),
        seconds=max(0.0, plan.seconds - spent.seconds),
    )


def _smaller(one: Budget, other: Budget) -> Budget:
    return Budget(
        requests=min(one.requests, other.requests),
        output_tokens=min(one.output_tokens, other.output_tokens),
        seconds=min(one.seconds, other.seconds),
    )


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
        return Client(sender(ready.connection, stage), clock=clock, on_sample=on_sample)

    if wanted.cost:
        plan = _cost_plan(ready, result, wanted, budget, rng, further)
        if plan is not None:
            further.cost = await run_cost(client("cost"), plan, rng)
            asked = sum(sample.asked_tokens for sample in further.samples)
            budget = Budget(
                requests=max(0, budget.requests - len(further.samples)),
                output_tokens=max(0, budget.output_tokens - asked),
                seconds=max(0.0, budget.seconds - (clock() - begin_ns) / 1e9),
            )
    if wanted.replay is not None:
        try:
            replay = _replay_plan(ready.endpoint.max_model_tokens, wanted.replay, budget, rng)
        except UsageError as error:
            further.remarks.append(_replay_failed(error))
            return
        own = client("replay")
        if further.cost is None:
            _, scale = await measure_scale(own, rng)
        else:
            scale = further.cost.scale
        if wanted.replay.spread:  # Ray has no place inside of an event loop
            further.spread = partial(_spread, ready, wanted.replay, replay, scale, rng, further)
        else:
            further.replay = await run_replay(own, replay, scale, rng), replay


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
    )
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
    budget = _smaller(budget, MEASURING)
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


def _check_replay(replay: Replayed, plan: Plan) -> None:
    """Whether the log can be replayed at all, within all that may be sent."""
    if replay.spread and find_spec("ray") is None:
        raise ray_is_missing()
    whole = Budget(requests=plan.requests, output_tokens=plan.output_tokens, seconds=plan.seconds)
    _replay_plan(None, replay, whole, np.random.default_rng(0))


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
    """The result with what the later stages found; what is computed from it is computed here."""
    samples = [*result.samples, *further.samples]
    server = _server(result)
    cost = None
    if further.cost is not None and server is not None:
        cost = fit_cost(further.cost, server, others=result.samples)
    replay = None
    if further.replay is not None:
        sent, replayed = further.replay
        calibration = None if cost is None else cost.calibration
        try:
            replay = replay_figures(sent, replayed, calibration=calibration, server=server)
        except EndpointError as error:
            further.remarks.append(_replay_failed(error))
    return result.model_copy(
        update={
            "plan": plan,
            "remarks": [*result.remarks, *further.remarks],
            "cost": cost,
            "replay": replay,
            "samples": samples,
            "requests_sent": result.requests_sent + len(further.samples),
            "output_tokens": sum(sample.output_tokens or 0 for sample in samples),
            "interrupted": result.interrupted or further.interrupted,
            "stopped_by": "user" if further.interrupted else result.stopped_by,
        }
    )


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
