"""What tests of the wire share: a client that reaches any host on this machine, time that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import httpx
import pytest

from slotwise_workflows.probe.wire.client import Connection
from slotwise_workflows.probe.wire.dialect import Dialect, dialect_of
from slotwise_workflows.probe.wire.products import UNKNOWN
from slotwise_workflows.probe.wire.target import Target, targets
from virtual_time import clock_ns, in_virtual_time


class Slow(httpx.AsyncByteStream):
    """A body whose pieces come each after its time; an exception among them breaks it."""

    def __init__(self, pieces: Sequence[tuple[float, bytes | Exception]]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for seconds, piece in self.pieces:
            await asyncio.sleep(seconds)
            if isinstance(piece, Exception):
                raise piece
            yield piece


class Elsewhere(httpx.AsyncHTTPTransport):
    """Whatever the host of a request, its bytes go to a server on this machine."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.to = httpx.URL(url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(
            scheme=self.to.scheme, host=self.to.host, port=self.to.port
        )
        return await super().handle_async_request(request)


Handler = Callable[[httpx.Request], httpx.Response]
Work = Callable[[Connection], Awaitable[Any]]


@pytest.fixture(scope="session")
def virtual() -> Callable[..., Any]:
    """Runs work against a handler in virtual time; nothing touches the network."""

    def run(
        handler: Handler,
        work: Work,
        *,
        deadline: float = 300.0,
        target: Target = targets("http://h/v1", "chat")[0],  # noqa: B008 - frozen
        dialect: Dialect = dialect_of(UNKNOWN),  # noqa: B008 - frozen
    ) -> Any:
        async def main() -> Any:
            async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as client:
                connection = Connection(client, target, "m", dialect, clock_ns, deadline)
                return await work(connection)

        return in_virtual_time(main)

    return run


@pytest.fixture(scope="session")
def slow() -> type[Slow]:
    """A body whose pieces take their time."""
    return Slow


@pytest.fixture(scope="session")
def elsewhere() -> type[Elsewhere]:
    """A transport that reaches a server on this machine under any name."""
    return Elsewhere
