"""Sends the requests of a trial, and waits for their first tokens or ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from slotwise_workflows.probe.model import Sample, Stage


class Ask(Protocol):
    """Sends one request: `slotwise_workflows.probe.wire.client.ask`, the rest bound."""

    def __call__(
        self,
        *,
        stage: Stage,
        name: str,
        trial: int,
        tokens: int,
        on_first_token: Callable[[], None] = ...,
    ) -> Awaitable[Sample]:
        """Sends it and follows its answer."""


class Sent:
    """A request under way, and the moment its first token comes."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.task: asyncio.Task[Sample]


def send(
    group: asyncio.TaskGroup, ask: Ask, stage: Stage, trial: int, name: str, tokens: int
) -> Sent:
    """Puts a request under way."""
    sent = Sent()

    async def follow() -> Sample:
        try:
            return await ask(
                stage=stage, name=name, trial=trial, tokens=tokens, on_first_token=sent.begun.set
            )
        finally:
            sent.begun.set()  # it failed without a token: nobody should wait for one

    sent.task = group.create_task(follow())
    return sent


async def until_token(sent: Sent, seconds: float) -> None:
    """Until the request's first token or end, but no longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            await sent.begun.wait()
    except TimeoutError:
        return


async def until_done(sent: Sent, seconds: float) -> None:
    """Until the request's end, but no longer than ``seconds``."""
    await asyncio.wait([sent.task], timeout=seconds)
