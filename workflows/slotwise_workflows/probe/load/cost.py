"""The cost stage: rungs of users, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from slotwise_workflows.probe.findings import ClientReport
from slotwise_workflows.probe.load.client_report import worst_of
from slotwise_workflows.probe.load.cost_plan import EQUAL_PAIRS, SIZING_TOKENS, CostPlan, Rung
from slotwise_workflows.probe.load.generator import Client, closed_loop
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.prompts import SIZING_WORDS, Scale, prompt_of, scale_of
from slotwise_workflows.traffic.probe_log import EQUAL, SIZING, UNLIKE

T = TypeVar("T")

_MOST_FAILED = 3
_MOST_PREFILL = 1 / 3  # of the stage's seconds


@dataclass(frozen=True, slots=True)
class CostRun:
    """What the cost stage saw.

    Attributes:
        samples: In the order of the plan, as far as they were sent.
        scale: What a word was found to be in tokens.
        prompt_factor: What the plan's prompt lengths were multiplied with; see `prompt_factor`.
        client: The worst of all rungs.
        unsent: Requests that were not sent, since too many had failed or time was up.
    """

    samples: Sequence[Sample]
    scale: Scale
    prompt_factor: float
    client: ClientReport
    unsent: int


async def run_cost(client: Client, plan: CostPlan, rng: np.random.Generator) -> CostRun:
    """Sends what was planned, rung after rung; between two of them the server is empty.

    It ends early when the plan's seconds are over or three requests of a rung have failed.

    Args:
        client: How to send; its `send` stamps samples with the stage ``cost``.
        plan: What to send.
        rng: Of the prompts.
    """
    stop_ns = client.clock() + round(plan.seconds * 1e9)
    client = replace(client, give_up_after=_MOST_FAILED, stop_ns=stop_ns)
    sizing, scale = await measure_scale(client, rng)
    loads = [sizing]
    factor = prompt_factor(sizing.samples, plan)
    if not loads[0].unsent:
        pairs = _pairs(scale.words(round(factor * plan.equal_prompt_tokens)), rng)
        loads.append(await closed_loop(client, [pairs]))
    for trial, rung in enumerate(plan.rungs, start=1):
        if not loads[-1].unsent:
            thoughts = _dealt(rung.think_s, rung.users)
            loads.append(
                await closed_loop(client, _users(rung, trial, scale, factor, rng), think_s=thoughts)
            )
    samples = [sample for load in loads for sample in load.samples]
    client_report = worst_of([load.client for load in loads])
    return CostRun(samples, scale, factor, client_report, plan.requests - len(samples))


async def measure_scale(client: Client, rng: np.random.Generator) -> tuple[Sent, Scale]:
    """Finds out how many tokens a word is, with two prompts, one after the other.

    Args:
        client: How to send.
        rng: Of the prompts.
    """
    prompts = [Planned(SIZING, SIZING_TOKENS, prompt_of(words, rng)) for words in SIZING_WORDS]
    sent = await closed_loop(client, [prompts])
    return sent, scale_of(sent.samples)


def prompt_factor(sizing: Sequence[Sample], plan: CostPlan) -> float:
    """By how much prompts are shortened, so that prefill takes a third of the time at most.

    What a prompt token takes is the slope between the two sizing prompts. On a CPU it may be as
    much as an output token, and long prompts would leave no time for anything else.

    Args:
        sizing: Samples of the two prompts, the shorter first.
        plan: What is to be sent.
    """
    if len(sizing) != 2 or not all(sample.answered for sample in sizing):
        return 1.0
    few, many = ((s.prompt_tokens or 0, (s.first_token_ns or 0) - s.sent_ns) for s in sizing)
    if many[0] <= few[0] or many[1] <= few[1]:
        return 1.0
    prefill_s = plan.prompt_tokens * (many[1] - few[1]) / (many[0] - few[0]) / 1e9
    return min(1.0, _MOST_PREFILL * plan.seconds / prefill_s)


def _users(
    rung: Rung, trial: int, scale: Scale, factor: float, rng: np.random.Generator
) -> list[Sequence[Planned]]:
    requests = [
        Planned(
            f"users-{rung.users}",
            output,
            prompt_of(scale.words(round(factor * prompt)), rng),
            trial,
        )
        for output, prompt in zip(rung.output_tokens, rung.prompt_tokens, strict=True)
    ]
    return _dealt(requests, rung.users)


def _dealt(values: Sequence[T], users: int) -> list[Sequence[T]]:
    """In turn, as cards are."""
    return [values[user::users] for user in range(users)]


def _pairs(words: int, rng: np.random.Generator) -> list[Planned]:
    """Equal prompts and unlike ones by turns, alone on the server."""
    same = prompt_of(words, rng)
    return [
        Planned(name, SIZING_TOKENS, prompt)
        for _ in range(EQUAL_PAIRS)
        for name, prompt in ((UNLIKE, prompt_of(words, rng)), (EQUAL, same))
    ]
