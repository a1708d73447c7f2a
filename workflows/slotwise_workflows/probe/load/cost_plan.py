"""What is sent to learn what an iteration costs: told, and within a budget, before anything is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from slotwise_sim.lengths import expected_longest, histogram
from slotwise_sim.workload import Ints
from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.model import Baseline, Batching
from slotwise_workflows.probe.prompts import SIZING_WORDS
from slotwise_workflows.record import Record

SIZING_TOKENS = 8
EQUAL_PAIRS = 4
"""Requests with equal prompts, and as many of the same length with unlike ones."""

PROMPTS = (32, 128, 512)
"""Tokens of the prompts where the client's own are not known."""

BATCHES = frozenset({"static", "dynamic"})
"""Ways of batching under which nobody joins a batch that runs."""

_ROUNDS = (2, 4)  # requests of a user in a rung, at least and at most
_FEWEST = 48  # requests of all rungs: more rounds where users are few, so that half can be held out
_MOST_THOUGHT = 4  # iterations
_FEWEST_TOKENS = 8  # of an answer on average: shorter ones tell more of prefill than of decoding
_SLOWER = 1.5  # an iteration with all slots busy against one alone: llama.cpp and vLLM on CPU


class Rung(Record):
    """So many users, each of whom sends the next request when the own answer has come."""

    users: int
    output_tokens: tuple[int, ...] = Field(description="dealt out to the users in turn")
    prompt_tokens: tuple[int, ...]
    think_s: tuple[float, ...] = Field(
        description="before each: a user who sends at once arrives where the iteration that ended "
        "the answer has just ended, always at the same point of the next one"
    )


class CostPlan(Record):
    """What the cost stage sends at most."""

    rungs: tuple[Rung, ...] = Field(
        description="in the order sent: drawn, and then backwards, so that drift cancels"
    )
    equal_prompt_tokens: int = Field(description="of the prompts that test for a prefix cache")
    length_scale: float = Field(description="the lengths were multiplied with, to fit the budget")
    requests: int
    output_tokens: int = Field(description="asked for, all requests together")
    prompt_tokens: int = Field(description="of all prompts together, about")
    estimated_s: float = Field(description="how long it takes, about")
    seconds: float = Field(description="after which no more is sent")


def article_lengths(n: int, rng: np.random.Generator) -> Ints:
    """85 % of 40 to 199 tokens and 15 % of 400 to 999, shape (n,): where nobody's are known."""
    long = rng.random(n) < 0.15
    return np.where(long, rng.integers(400, 1000, n), rng.integers(40, 200, n))


def plan_cost(
    *,
    batching: Batching,
    slots: int,
    baseline: Baseline,
    rng: np.random.Generator,
    lengths: Ints | None = None,
    prompts: Sequence[int] | Ints = PROMPTS,
    budget: Budget | None = None,
    context_tokens: int | None = None,
) -> CostPlan:
    """Rungs of 1, 2, 4, ... users, there and back, as far as the budget allows.

    Each rung lasts about as long as any other. Lengths are drawn from the client's own, since equal
    ones hide what batching does, and all multiplied with one factor where the budget is small.

    Args:
        batching: How the server batches, as far as it was found.
        slots: How many requests it was seen to run at once.
        baseline: What a request alone took.
        rng: Draws lengths, prompts and the order of the rungs.
        lengths: The client's output tokens, shape (n,), n >= 1; `article_lengths` if left out.
        prompts: Prompt tokens to draw from.
        budget: What may be spent; `Budget` if left out.
        context_tokens: The most that prompt and answer may have together.

    Raises:
        UsageError: The budget is too small for two rungs, or for answers of a few tokens.
    """
    budget = budget or Budget()
    fixed = len(SIZING_WORDS) + 2 * EQUAL_PAIRS
    ladder = _ladder(most_users(batching, slots), budget.requests - fixed)
    per_round = 2 * sum(ladder)
    rounds = max(_ROUNDS[1], -(-_FEWEST // per_round))
    rounds = min(rounds, (budget.requests - fixed) // per_round)
    there = [int(users) for users in rng.permutation(ladder)]
    order = [*there, *reversed(there)]
    own = article_lengths(4096, rng) if lengths is None else np.asarray(lengths)
    drawn = rng.choice(own, rounds * per_round)
    asked = rng.choice(np.asarray(prompts, dtype=np.int64), rounds * per_round)
    if context_tokens is not None:
        asked = np.minimum(asked, context_tokens // 2)
        drawn = np.minimum(drawn, context_tokens - asked)
    rungs_s = sum(rounds * _turn(batching, slots, users, drawn) for users in order)
    rungs_s *= baseline.seconds_per_token * _SLOWER
    left_s = budget.seconds - fixed * (baseline.ttft_s + SIZING_TOKENS * baseline.seconds_per_token)
    left = budget.output_tokens - fixed * SIZING_TOKENS
    scale = min(1.0, left / float(drawn.sum()), left_s / rungs_s)
    if scale * float(drawn.mean()) < _FEWEST_TOKENS:
        raise UsageError(
            "the budget for the cost of an iteration is too small",
            why=f"{rounds * per_round} answers would have fewer than {_FEWEST_TOKENS} tokens each",
            hint="Allow more tokens or seconds, or leave the cost out",
        )
    tokens = np.maximum(1, np.floor(scale * drawn)).astype(np.int64)
    think_s = rng.uniform(0, _MOST_THOUGHT * baseline.seconds_per_token, len(tokens))
    ends = np.cumsum([users * rounds for users in order])[:-1]
    rungs = tuple(
        Rung(
            users=users,
            output_tokens=tuple(tokens[rows].tolist()),
            prompt_tokens=tuple(asked[rows].tolist()),
            think_s=tuple(think_s[rows].tolist()),
        )
        for users, rows in zip(order, np.split(np.arange(len(tokens)), ends), strict=True)
    )
    return CostPlan(
        rungs=rungs,
        equal_prompt_tokens=int(asked.max()),
        length_scale=scale,
        requests=fixed + len(tokens),
        output_tokens=fixed * SIZING_TOKENS + int(tokens.sum()),
        prompt_tokens=int(asked.sum()) + 2 * EQUAL_PAIRS * int(asked.max()),
        estimated_s=scale * rungs_s + budget.seconds - left_s,
        seconds=budget.seconds,
    )


def _turn(batching: Batching, slots: int, users: int, lengths: Ints) -> float:
    """Tokens that a user of a rung waits for in a turn, on average: the own ones, or batches'."""
    if batching not in BATCHES:
        return float(lengths.mean())
    return expected_longest(*histogram(lengths), min(users, slots)) * max(1.0, users / slots)


def most_users(batching: Batching, slots: int) -> int:
    """How many users bring a server to every size of batch.

    One that lets requests join runs as many as there are users, up to its slots. One that does not
    runs those who came while the batch before ran: with as many users as slots they would take
    turns in halves, and only twice as many fill its batches.
    """
    return 2 * slots if batching in BATCHES else slots


def _ladder(users: int, requests: int) -> list[int]:
    """1, 2, 4, ... and the most, as far as each may send twice, both ways."""
    doubling = [1 << k for k in range(users.bit_length()) if 1 << k < users]
    ladder = [*doubling, max(1, users)]
    while len(ladder) > 1 and 2 * _ROUNDS[0] * sum(ladder) > requests:
        ladder.pop()
    if 2 * _ROUNDS[0] * sum(ladder) > requests or (len(ladder) == 1 and users > 1):
        raise UsageError(
            "the budget for the cost of an iteration is too small",
            why=f"{max(0, requests)} requests are left for users, and 1 and 2 of them need"
            f" {2 * _ROUNDS[0] * 3}",
            hint="Allow more requests, or leave the cost out",
        )
    return ladder
