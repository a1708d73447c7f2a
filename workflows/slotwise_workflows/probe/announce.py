"""What a plan is about to send, told before it is confirmed: no stage that its limits rule out."""

from __future__ import annotations

from urllib.parse import urlsplit

import numpy as np

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.batching.refill import QUEUED
from slotwise_workflows.probe.batching.slots import LADDER, SMALLEST
from slotwise_workflows.probe.budget import MEASURING, Budget, for_looking
from slotwise_workflows.probe.load.cost_plan import plan_cost
from slotwise_workflows.probe.model import Baseline, Plan
from slotwise_workflows.probe.plan import (
    ALONE_TOKENS,
    BASELINE_TOKENS,
    SMALLEST_LONG,
    sizes_for,
)
from slotwise_workflows.probe.wire.client import is_loopback
from slotwise_workflows.probe.wire.preflight import TRIES

_FEWEST_SLOTS = 2  # of a refill test
# The endpoint that a cost stage asks least of: what does not fit there fits nowhere.
_FAST = Baseline(
    ttft_s=0.0, latency_s=0.0, output_tokens=None, seconds_per_token=1e-6, streams=True
)


def plan_text(
    plan: Plan,
    *,
    url: str,
    api: str,
    model: str | None,
    has_key: bool,
    cost: bool = False,
    replay: str | None = None,
) -> list[str]:
    """What is about to happen, a line each."""
    lines = [
        f"probe {url} ({api}, model {model or 'as the server says'})",
        f"  at most {plan.requests} requests asking for {plan.output_tokens} output tokens in all,"
        f" in at most {plan.seconds:g} s",
        f"  some alone to measure; {_times(plan.trials)} a long one ({plan.long_s:g} s or more, if"
        f" the limits allow) with {plan.shorts} short ones beside it",
        *_queues(for_looking(plan, alone=not cost and replay is None)),
        *(_cost(plan) if cost else []),
        *([f"  then {replay}"] if replay else []),
        "  the prompts are generated; nothing of yours is sent"
        + (" but the API key" if has_key else ""),
    ]
    if has_key and url.startswith("http://") and not is_loopback(urlsplit(url).hostname or ""):
        lines.append("  warning: http:// would carry the API key unencrypted")
    return lines


def _queues(looking: Plan) -> list[str]:
    """The slots test and the refill test, as far as the group tests can leave room for them."""
    requests = looking.requests - TRIES - looking.trials * (looking.shorts + 1) - 1
    tokens = looking.output_tokens - TRIES * BASELINE_TOKENS - ALONE_TOKENS
    tokens -= looking.trials * sizes_for(SMALLEST_LONG).total
    # A third of the tokens a rung, each answer one to two times the shortest; 32 come after 16.
    needed = dict(zip(LADDER, (8, 16, 16 + 32), strict=True))
    rungs = [
        rung
        for rung, sent in needed.items()
        if sent <= requests and SMALLEST * (1.5 * rung + 1) <= tokens // 3
    ]
    if not rungs:
        return ["  nothing to count its slots: the limits leave too little for that"]
    fewer = ", fewer where some have to wait" if rungs[-1] > LADDER[0] else ""
    lines = [f"  then up to {rungs[-1]} at once{fewer}, to count its slots"]
    if requests >= LADDER[0] + 1 + _FEWEST_SLOTS + QUEUED:
        lines.append("  then, if it has few, one more than those and two that queue for them")
    return lines


def _cost(plan: Plan) -> list[str]:
    """The cost stage, with what the group tests can leave for it."""
    asked = plan.trials * sizes_for(SMALLEST_LONG).total + BASELINE_TOKENS
    left = Budget(
        requests=plan.requests - plan.trials * (plan.shorts + 1) - 1,
        output_tokens=plan.output_tokens - asked,
        seconds=plan.seconds,
    )
    users = _most_users(left.at_most(MEASURING))
    if users == 0:
        return ["  nothing to see what an iteration costs: the limits leave too little for that"]
    at_once = "1 user" if users == 1 else f"1, 2, 4, ... users at once ({users} at most)"
    return [f"  then, with what is left, {at_once}, to see what an iteration costs"]


def _times(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _most_users(budget: Budget) -> int:
    """Users of the largest rung on a server of many slots, or of one; 0 where no rung fits."""
    for slots in (LADDER[-1], 1):
        try:
            planned = plan_cost(
                batching="continuous",
                slots=slots,
                baseline=_FAST,
                rng=np.random.default_rng(0),
                budget=budget,
            )
        except UsageError:
            continue
        return max(rung.users for rung in planned.rungs)
    return 0
