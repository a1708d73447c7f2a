"""How much is sent: bounded before, sized after the baseline."""

from __future__ import annotations

import math

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.model import Baseline, Plan, Sizes
from slotwise_workflows.probe.wire.preflight import TRIES

MOST_REQUESTS = 288
MOST_TOKENS = 49_152
MOST_SECONDS = 420.0
"""What a probe sends at most and how long it takes, unless told; less is the rule."""

BASELINE_TOKENS = 32
ALONE_TOKENS = 16
"""Of each further request alone; another length than the baseline's, on purpose."""
WHOLE_TOKENS = 128
"""Of one of them where only whole answers are seen."""
SHORTS = 6
LONG_S = 4.0
_TTFTS_OF_LONG = 52
"""Makes every short last more than six times to the first token: it can be seen to run."""
SMALLEST_LONG = 48
"""Tokens below which the shorts, an eighth to a quarter of them, differ too little."""
_USUAL_LONG = 96
"""Tokens wanted even where a token takes long: a step must be short against the shorts."""
_GROUP_SHARE = 0.45
"""Of the tokens; the rest is for the slots test and the refill test."""
_TIME_SHARE = 0.33
"""Of the seconds; what the long requests of all group tests may last, the rest by turn behind."""


def make_plan(
    *,
    trials: int = 2,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    long_s: float = LONG_S,
    seconds: float | None = None,
) -> Plan:
    """The most that a probe will send.

    The group tests come first; what is left goes to the slots test and the refill test.

    Args:
        trials: Repetitions of the group test wanted; fewer if the requests do not allow them.
        max_requests: Requests at most, all stages together; `MOST_REQUESTS` if left out.
        max_tokens: Output tokens asked for at most, all requests together; likewise.
        long_s: How long the long request should last; longer tells more, and costs more.
        seconds: After which the probe gives up; likewise.

    Returns:
        The plan.

    Raises:
        UsageError: Not even one group test fits, or the seconds are not finite.
    """
    if not (seconds is None or math.isfinite(seconds)):
        raise UsageError(
            "--max-seconds is no finite number",
            hint=f"Give seconds; {MOST_SECONDS:g} if left out",
        )
    max_requests = MOST_REQUESTS if max_requests is None else max_requests
    max_tokens = MOST_TOKENS if max_tokens is None else max_tokens
    per_trial = SHORTS + 1
    possible = min(trials, (max_requests - TRIES) // per_trial)
    if possible < 1:
        raise UsageError(
            f"--max-requests {max_requests} is too few",
            why=f"up to {TRIES} to begin with and a trial of {per_trial} are needed",
            hint=f"Allow {per_trial + TRIES}",
        )
    smallest = TRIES * BASELINE_TOKENS + possible * sizes_for(SMALLEST_LONG).total
    if max_tokens < smallest:
        raise UsageError(
            f"--max-tokens-total {max_tokens} is too few",
            why=f"{possible} trials need {smallest} output tokens",
            hint=f"Allow {smallest}, or fewer --trials",
        )
    return Plan(
        trials=possible,
        shorts=SHORTS,
        requests=max_requests,
        output_tokens=max_tokens,
        long_s=long_s,
        seconds=MOST_SECONDS if seconds is None else seconds,
    )


def sizes_for(long: int) -> Sizes:
    """Shorts from an eighth to a quarter of the long one, all different, the lengths mixed.

    Long enough that all run together on a server with room for them; short enough that, one after
    the other, they are done soon after the long one. Not in order of length: a server that serves
    the shortest first would look as if it served them by turn.
    """
    low, high = long / 8, long / 4
    even = [round(low + (high - low) * step / (SHORTS - 1)) for step in range(SHORTS)]
    return Sizes(long=long, shorts=tuple(even[step] for step in _MIXED))


_MIXED = (3, 0, 5, 1, 4, 2)


def size_trial(plan: Plan, baseline: Baseline) -> Sizes:
    """Size the requests of a trial so that seconds remain of the long one after the shorts.

    The long request lasts ``long_s``, or several times what it takes to send the shorts, and never
    more tokens or seconds than the plan allows.
    """
    wanted_s = max(plan.long_s, _TTFTS_OF_LONG * baseline.ttft_s)
    if not baseline.streams:
        wanted_s = plan.long_s  # its time to the first token is that of the whole answer
    wanted_s = min(wanted_s, _TIME_SHARE * plan.seconds / plan.trials)
    wanted = round(wanted_s / baseline.seconds_per_token)
    available = plan.output_tokens - TRIES * BASELINE_TOKENS
    smallest = sizes_for(SMALLEST_LONG).total
    budget = max(smallest, min(available, int(_GROUP_SHARE * available)) // plan.trials)
    long = max(_USUAL_LONG, wanted)
    while sizes_for(long).total > budget and long > SMALLEST_LONG:
        long = max(SMALLEST_LONG, int(long * 0.95))
    return sizes_for(long)
