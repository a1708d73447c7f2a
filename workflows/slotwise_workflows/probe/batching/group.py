"""The group test: do short requests begin while a long one is being answered?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from slotwise_workflows.probe.model import Baseline, Sample, Sizes

_GAP_TTFTS = 3.0
_SHORTEST_GAP_S = 0.02
_BUFFERED_SHARE = 0.15


class Ask(Protocol):
    """Sends one request of a trial: `slotwise_workflows.probe.wire.client.ask`, the rest bound."""

    def __call__(
        self, *, name: str, tokens: int, on_first_token: Callable[[], None]
    ) -> Awaitable[Sample]:
        """Sends it and follows its answer."""


async def group_trial(ask: Ask, sizes: Sizes, baseline: Baseline, *, long_s: float) -> list[Sample]:
    """One trial: a long request, and beside it short ones, one after the other.

    The shorts are sent once the long one has its first token, so that it is being answered by
    then. Each next short waits for the first token of the one before, but no longer than a small
    gap. On a server that lets requests join, each begins at once. On a fleet of servers that do
    not, the shorts soon find all of them busy and wait for one another: sent all at once they
    could have begun together as a batch on an idle server, and looked as if they had joined.

    Args:
        ask: Sends a request.
        sizes: Tokens of the long request and of the shorts.
        baseline: What a request alone took.
        long_s: How long the long request should last.

    Returns:
        The long request's sample and the shorts', in the order sent; the long one alone if it
        ended before the first short could be sent.
    """
    gap_s = max(_SHORTEST_GAP_S, _GAP_TTFTS * baseline.ttft_s) if baseline.streams else 0.05
    async with asyncio.TaskGroup() as group:
        long = _send(group, ask, "long", sizes.long)
        if baseline.streams:
            await _until_token(long, long_s)
        else:
            # Its tokens are not seen; by now it is being answered.
            await _until_done(long, _BUFFERED_SHARE * sizes.long * baseline.seconds_per_token)
        sent = [long]
        for index, tokens in enumerate(sizes.shorts, start=1):
            if long.task.done():
                break
            sent.append(_send(group, ask, f"short-{index}", tokens))
            await _until_token(sent[-1], gap_s)
    return [request.task.result() for request in sent]


class _Sent:
    """A request under way, and the moment its first token comes."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.task: asyncio.Task[Sample]


def _send(group: asyncio.TaskGroup, ask: Ask, name: str, tokens: int) -> _Sent:
    sent = _Sent()

    async def follow() -> Sample:
        try:
            return await ask(name=name, tokens=tokens, on_first_token=sent.begun.set)
        finally:
            sent.begun.set()  # it failed without a token: nobody should wait for one

    sent.task = group.create_task(follow())
    return sent


async def _until_token(sent: _Sent, seconds: float) -> None:
    """Until the request's first token or end, but no longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            await sent.begun.wait()
    except TimeoutError:
        return


async def _until_done(sent: _Sent, seconds: float) -> None:
    await asyncio.wait([sent.task], timeout=seconds)
