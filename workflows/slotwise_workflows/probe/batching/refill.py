"""The refill test: does a queued request begin when the first of those before it ends, or the last?

A plug opens the engine. Behind it as many requests as there are slots gather, one shorter and the
rest long, and two more queue. A server that refills its slots lets the first of the two in when the
shorter one ends; one that fills a batch at once, when the longest does. Without the plug the first
request would run alone there, and the rest behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.probe.batching.send import Ask, send
from slotwise_workflows.probe.batching.spans import Span
from slotwise_workflows.probe.model import Alone, Sample

QUEUED = 2
"""One that queues may find, by chance, the server of the shorter one among several; two do not."""
_SPACING_S = 0.004
_SHORTEST_S = 0.25
_TTFTS = 3.5
_SMALLEST = 24
_LONG = 4


@dataclass(frozen=True, slots=True)
class Refill:
    """Tokens of the plug, of those that gather behind it, and of those that queue."""

    plug: int
    members: tuple[int, ...]
    queued: tuple[int, ...]

    @property
    def requests(self) -> int:
        """All of them."""
        return 1 + len(self.members) + len(self.queued)

    @property
    def total(self) -> int:
        """Tokens of the trial."""
        return self.plug + sum(self.members) + sum(self.queued)


def size_refill(slots: int, alone: Alone, *, shorter: int, tokens_left: int) -> Refill | None:
    """Sizes the test for a server of so many slots.

    The plug lasts until all are sent. The shorter one lasts one and a half plugs, the others four,
    those that queue half a plug: both are done long before the others, if they are let in.

    Args:
        slots: Two or more.
        alone: What a request alone takes.
        shorter: Which of those that gather is the shorter one, from 0.
        tokens_left: What all may ask for together.

    Returns:
        The sizes; None if they would need more tokens.
    """
    pace = alone.seconds_per_token
    sending_s = _SPACING_S * (slots + QUEUED) + 2 * alone.ttft_s
    smallest = max(_SMALLEST, round(sending_s / pace))
    wanted = max(smallest, round(max(_SHORTEST_S, _TTFTS * alone.ttft_s, 2 * sending_s) / pace))
    plug = min(wanted, int(tokens_left / (1 + 1.5 + _LONG * (slots - 1) + QUEUED / 2 + 1)))
    if plug < smallest:
        return None
    members = [_LONG * plug] * slots
    members[shorter % slots] = 3 * plug // 2
    return Refill(plug, tuple(members), (plug // 2,) * QUEUED)


async def refill_trial(ask: Ask, sizes: Refill, *, trial: int) -> list[Sample]:
    """Sends it.

    Args:
        ask: Sends a request.
        sizes: Its tokens.
        trial: The trial's number.

    Returns:
        The samples in the order sent: the plug, those that gather, those that queue.
    """
    async with asyncio.TaskGroup() as group:
        sent = [send(group, ask, "refill", trial, "plug", sizes.plug)]
        await sent[0].begun.wait()
        named = [(f"member-{i}", tokens) for i, tokens in enumerate(sizes.members, start=1)]
        named += [(f"queued-{i}", tokens) for i, tokens in enumerate(sizes.queued, start=1)]
        for name, tokens in named:
            sent.append(send(group, ask, "refill", trial, name, tokens))
            await asyncio.sleep(_SPACING_S)
    return [request.task.result() for request in sent]


def position(spans: Sequence[Span], sizes: Refill) -> float | None:
    """When the queued request that began first did so: 0, the shorter one's end; 1, the longest's.

    Args:
        spans: Of the trial.
        sizes: Its tokens.

    Returns:
        The position; below 0 if it waited for neither, None if the ends cannot be told apart.
    """
    member = {s.name: s for s in spans if s.name.startswith("member")}
    queued = [s for s in spans if s.name.startswith("queued")]
    name = f"member-{1 + sizes.members.index(min(sizes.members))}"
    if name not in member or not queued:
        return None
    first, last = member[name].end, max(span.end for span in member.values())
    return (min(s.begin for s in queued) - first) / (last - first) if last > first else None
