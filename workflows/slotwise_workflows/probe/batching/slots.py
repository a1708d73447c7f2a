"""The slots test: many requests at an idle server, more each time, until some have to wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from slotwise_workflows.probe.batching.send import Ask, Sent, send
from slotwise_workflows.probe.model import Alone, Sample

LADDER = (8, 16, 32)
"""Requests of each rung. Fewer than eight are seen well enough in the first: those that wait."""
_SPACING_S = 0.002
_FIRST_OFFSET_S = 0.005
_OFFSETS = 6
_LAST_OFFSET_TTFTS = 1.5
_SHORTEST_S = 0.25
_TTFTS = 3.5
SMALLEST = 16
"""Tokens below which lengths differ too little."""


@dataclass(frozen=True, slots=True)
class Burst:
    """One rung: when each request is sent, in seconds from the first, and its tokens."""

    offsets_s: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def total(self) -> int:
        """Tokens of the rung."""
        return sum(self.tokens)


def size_burst(requests: int, alone: Alone, *, tokens_left: int) -> Burst | None:
    """A rung, sized so that the first request still runs when the last is sent.

    The first six are sent at growing distances, 5 ms to one and a half times the time to the first
    token: a server that waits for company before it begins a batch takes in those that come within
    that time, and no others. All differ in length, one to two times the shortest, else a server
    that refills its slots one by one would look like one that fills them at once.

    Args:
        requests: Of the rung, eight or more.
        alone: What a request alone takes.
        tokens_left: What all may ask for together.

    Returns:
        The rung; None if it would need more tokens.
    """
    last = max(2 * _FIRST_OFFSET_S, _LAST_OFFSET_TTFTS * alone.ttft_s)
    ratio = (last / _FIRST_OFFSET_S) ** (1 / (_OFFSETS - 2))
    offsets = [0.0, *(_FIRST_OFFSET_S * ratio**step for step in range(_OFFSETS - 1))]
    offsets += [last + _SPACING_S * step for step in range(1, requests - _OFFSETS + 1)]
    needed_s = offsets[-1] + alone.ttft_s
    wanted_s = max(_SHORTEST_S, _TTFTS * alone.ttft_s, 2 * offsets[-1])
    pace = alone.seconds_per_token
    smallest = max(SMALLEST, round(needed_s / pace))
    affordable = int(tokens_left / (1.5 * requests + 1))
    shortest = min(max(smallest, round(wanted_s / pace)), affordable)
    if shortest < smallest:
        return None
    tokens = [shortest + shortest * step // (requests - 1) for step in range(requests)]
    return Burst(tuple(offsets), tuple(_mixed(tokens)))


def _mixed(tokens: list[int]) -> list[int]:
    """Not in order of length: one that serves the shortest first would seem to serve by turn."""
    middle = (len(tokens) + 1) // 2
    pairs = zip(tokens[middle:], tokens[:middle], strict=False)
    mixed = [token for pair in pairs for token in pair]
    return mixed + tokens[len(mixed) // 2 : middle]


async def slots_trial(ask: Ask, burst: Burst, *, trial: int) -> list[Sample]:
    """Sends a rung.

    Args:
        ask: Sends a request.
        burst: When and how long.
        trial: The trial's number.

    Returns:
        The samples in the order sent.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    sent: list[Sent] = []
    async with asyncio.TaskGroup() as group:
        pairs = zip(burst.offsets_s, burst.tokens, strict=True)
        for index, (offset_s, tokens) in enumerate(pairs, start=1):
            await asyncio.sleep(max(0.0, start + offset_s - loop.time()))
            sent.append(send(group, ask, "slots", trial, f"burst-{index}", tokens))
    return [request.task.result() for request in sent]
