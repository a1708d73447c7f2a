"""Which requests of a log are sent again: a window, its rate and its lengths scaled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim.workload import Floats, Ints, Workload, at_load, rows_of
from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.traffic import Traffic


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay sends.

    Attributes:
        workload: n requests in order of arrival, the first at 0.
        window: Which of the log's they are, for a person.
        of_requests: Requests of the log.
        rate_scale: Times as fast as they arrived.
        length_scale: Times as long as they were.
        prompts_known: Whether the log tells prompt lengths.
        seconds: After which no more is sent.
    """

    workload: Workload
    window: str
    of_requests: int
    rate_scale: float
    length_scale: float
    prompts_known: bool
    seconds: float

    @property
    def output_tokens(self) -> int:
        """Tokens asked for, all requests together."""
        return int(self.workload.output_tokens.sum())


def plan_replay(
    traffic: Traffic,
    *,
    rng: np.random.Generator,
    first: int | None = None,
    busiest_s: float | None = None,
    rate_scale: float = 1.0,
    length_scale: float = 1.0,
    budget: Budget | None = None,
    context_tokens: int | None = None,
) -> ReplayPlan:
    """Chooses the requests; without a window, the first ones that the budget allows.

    Scaled lengths are rounded up or down at random, so that their mean is scaled as told.

    Args:
        traffic: The log.
        rng: Rounds the lengths.
        first: Only the first so many requests.
        busiest_s: Only the stretch of so many seconds of the log with most output tokens.
        rate_scale: How many times as fast they arrive, > 0.
        length_scale: How many times as long prompts and outputs are, > 0.
        budget: What may be sent at most; `Budget` if left out.
        context_tokens: The most that prompt and answer may have together.

    Raises:
        InputError: The log tells no arrivals.
        UsageError: The window is more than the budget allows, or an option is out of range.
    """
    budget = budget or Budget()
    _check(traffic, first, busiest_s, rate_scale, length_scale)
    log = traffic.workload()
    ordered = rows_of(log, np.argsort(log.arrival_s, kind="stable"))
    scaled = at_load(_scaled(ordered, length_scale, rng), rate_scale)
    if busiest_s is not None:
        rows = busiest(ordered.arrival_s, ordered.output_tokens, busiest_s)
        window = f"the busiest {busiest_s:g} s"
    else:
        allowed = len(log) if first is not None else _allowed(scaled, budget)
        rows = slice(0, min(first or len(log), allowed))
        window = f"the first {rows.stop}"
    chosen = rows_of(scaled, rows)
    chosen = replace(chosen, arrival_s=chosen.arrival_s - chosen.arrival_s[0])
    _check_budget(chosen, budget, context_tokens)
    return ReplayPlan(
        workload=chosen,
        window=window,
        of_requests=len(log),
        rate_scale=rate_scale,
        length_scale=length_scale,
        prompts_known=bool(log.prompt_tokens.any()),
        seconds=budget.seconds,
    )


def busiest(arrival_s: Floats, output_tokens: Ints, seconds: float) -> slice:
    """Rows of the stretch that begins with a request, is so long, and has most output tokens.

    Args:
        arrival_s: Ascending, shape (n,), n >= 1.
        output_tokens: Shape (n,).
        seconds: How long; its end is not part of it.
    """
    until = np.searchsorted(arrival_s, arrival_s + seconds, side="left")
    passed = np.append(0, np.cumsum(output_tokens))
    begin = int(np.argmax(passed[until] - passed[:-1]))
    return slice(begin, int(until[begin]))


def _scaled(workload: Workload, scale: float, rng: np.random.Generator) -> Workload:
    def times(tokens: Ints, least: int) -> Ints:
        rounded = np.floor(tokens * scale + rng.random(len(tokens)))
        return np.maximum(least, rounded).astype(np.int64)

    return Workload(
        workload.arrival_s, times(workload.output_tokens, 1), times(workload.prompt_tokens, 0)
    )


def _allowed(workload: Workload, budget: Budget) -> int:
    """The first so many requests that the budget allows, one at least."""
    tokens = np.searchsorted(np.cumsum(workload.output_tokens), budget.output_tokens, side="right")
    in_time = np.searchsorted(workload.arrival_s, workload.arrival_s[0] + budget.seconds)
    return max(1, min(budget.requests, int(tokens), int(in_time)))


def _check_budget(chosen: Workload, budget: Budget, context_tokens: int | None) -> None:
    needs = {
        "requests": (len(chosen), budget.requests),
        "output tokens": (int(chosen.output_tokens.sum()), budget.output_tokens),
        "seconds": (float(chosen.arrival_s[-1]), budget.seconds),
    }
    over = [
        f"{need:g} {what} of {most:g} allowed"
        for what, (need, most) in needs.items()
        if need > most
    ]
    if over:
        raise UsageError(
            "the replay is larger than is allowed",
            why=", ".join(over),
            hint="Take a smaller window, shorten the lengths, or allow more",
        )
    longest = int((chosen.prompt_tokens + chosen.output_tokens).max())
    if context_tokens is not None and longest > context_tokens:
        raise UsageError(
            "a request of the replay is longer than the endpoint takes",
            why=f"it has {longest} tokens, and {context_tokens} is the most",
            hint="Shorten the lengths",
        )


def _check(
    traffic: Traffic,
    first: int | None,
    busiest_s: float | None,
    rate_scale: float,
    length_scale: float,
) -> None:
    if traffic.clock is None:
        raise InputError(
            "cannot be replayed",
            where=", ".join(file.name for file in traffic.files),
            why="arrival times are not known",
        )
    if first is not None and busiest_s is not None:
        raise UsageError("a replay has one window: the first requests, or the busiest stretch")
    told = {"window": first, "window in seconds": busiest_s}
    told |= {"rate scale": rate_scale, "length scale": length_scale}
    for name, value in told.items():
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"the replay's {name} must be above 0, and is {value:g}")
