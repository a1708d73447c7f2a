"""The second stage: what an iteration costs, measured within what the first has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.budget import MEASURING, Budget
from slotwise_workflows.probe.load.cost import CostRun, run_cost
from slotwise_workflows.probe.load.cost_plan import CostPlan, plan_cost
from slotwise_workflows.probe.load.generator import Client
from slotwise_workflows.probe.model import ProbeResult
from slotwise_workflows.result import Reason

if TYPE_CHECKING:
    from slotwise_workflows.traffic import Traffic


async def measure_cost(
    client: Client,
    found: ProbeResult,
    budget: Budget,
    rng: np.random.Generator,
    *,
    like: Traffic | None,
) -> CostRun | Reason:
    """Sends what tells the cost; what it was is computed later.

    Args:
        client: How to send.
        found: How the endpoint batches.
        budget: What is left of the plan.
        rng: Of lengths, prompts and the order of the rungs.
        like: A log with the lengths to send; None takes the article's.

    Returns:
        What was seen, or why nothing could be sent that would tell.
    """
    if found.batching == "undetermined":
        return Reason(code="cost_needs_batching")
    budget = budget.at_most(MEASURING)
    try:
        plan = _plan(found, budget, rng, like)
    except UsageError:
        numbers = {"requests": budget.requests, "tokens": budget.output_tokens}
        return Reason(code="cost_needs_budget", numbers=numbers)
    return await run_cost(client, plan, rng)


def _plan(
    found: ProbeResult, budget: Budget, rng: np.random.Generator, like: Traffic | None
) -> CostPlan:
    lengths = None
    prompts: dict[str, np.ndarray] = {}
    if like is not None:
        workload = like.workload()
        lengths = workload.output_tokens
        if workload.prompt_tokens.any():
            prompts["prompts"] = np.maximum(1, workload.prompt_tokens)
    return plan_cost(
        batching=found.batching,
        slots=found.slots or found.slots_at_least,
        baseline=found.baseline,
        rng=rng,
        lengths=lengths,
        budget=budget,
        context_tokens=found.endpoint.max_model_tokens,
        **prompts,
    )
