"""The group test: do short requests begin while a long one is being answered?"""

from __future__ import annotations

import asyncio

from slotwise_workflows.probe.batching.send import Ask, send, until_done, until_token
from slotwise_workflows.probe.model import Baseline, Sample, Sizes

_GAP_TTFTS = 3.0
_SHORTEST_GAP_S = 0.02
_BUFFERED_SHARE = 0.15


async def group_trial(ask: Ask, sizes: Sizes, baseline: Baseline, *, trial: int) -> list[Sample]:
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
        trial: The trial's number.

    Returns:
        The long request's sample and the shorts', in the order sent; the long one alone if it
        ended before the first short could be sent.
    """
    gap_s = max(_SHORTEST_GAP_S, _GAP_TTFTS * baseline.ttft_s) if baseline.streams else 0.05
    async with asyncio.TaskGroup() as group:
        long = send(group, ask, "group", trial, "long", sizes.long)
        if baseline.streams:
            await long.begun.wait()
        else:
            # Its tokens are not seen; by now it is being answered.
            await until_done(long, _BUFFERED_SHARE * sizes.long * baseline.seconds_per_token)
        sent = [long]
        for index, tokens in enumerate(sizes.shorts, start=1):
            if long.task.done():
                break
            sent.append(send(group, ask, "group", trial, f"short-{index}", tokens))
            await until_token(sent[-1], gap_s)
    return [request.task.result() for request in sent]
