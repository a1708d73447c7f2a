"""One request to the endpoint, timed at the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.wire.chunks import DONE, Piece, merge, read_piece
from slotwise_workflows.probe.wire.faults import fault_of_exception, fault_of_status
from slotwise_workflows.probe.wire.sse import EventStream, EventTooLong
from slotwise_workflows.probe.wire.target import Target

LARGEST_ANSWER = 64 << 20
_CONNECT_S = 10.0

Clock = Callable[[], int]
"""Nanoseconds of a clock that never steps back."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What all requests of a probe share.

    Attributes:
        client: The HTTP client; its headers hold the key.
        target: Where requests go.
        model: The model asked for, or None.
        usage: Whether to ask for the token counts at the end of a stream.
        clock: The clock.
        deadline: When every request is given up, on the event loop's clock.
    """

    client: httpx.AsyncClient = field(repr=False)
    target: Target
    model: str | None
    usage: bool
    clock: Clock
    deadline: float


def new_client(api_key: str | None) -> httpx.AsyncClient:
    """A client that follows no redirect and waits as long as the probe's own deadline."""
    headers = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    return httpx.AsyncClient(
        headers=headers,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=_CONNECT_S),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
    )


async def ask(
    connection: Connection,
    *,
    stage: Stage,
    name: str,
    trial: int,
    tokens: int,
    prompt: str,
    on_first_token: Callable[[], None] = lambda: None,
) -> Sample:
    """Sends one request and follows its answer to the end.

    A fault of the endpoint is part of the answer, not an exception.

    Args:
        connection: The endpoint and what goes with it.
        stage: What it is sent for.
        name: The request's name in the results.
        trial: Which trial it belongs to.
        tokens: The ``max_tokens`` to send.
        prompt: A generated prompt.
        on_first_token: Called once, when the first token has come.

    Returns:
        Its times and counts.
    """
    seen = _Seen(connection.clock, on_first_token)
    try:
        async with asyncio.timeout_at(connection.deadline):
            await _follow(connection, _body(connection, tokens, prompt), seen)
    except (httpx.HTTPError, TimeoutError, EventTooLong) as error:
        seen.fail(fault_of_exception(error))
    return seen.sample(stage=stage, name=name, trial=trial, tokens=tokens)


def _body(connection: Connection, tokens: int, prompt: str) -> dict[str, Any]:
    body: dict[str, Any] = {"max_tokens": tokens, "stream": True}
    if connection.model is not None:
        body["model"] = connection.model
    if connection.usage:
        body["stream_options"] = {"include_usage": True}
    if connection.target.api == "chat":
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    return body


async def _follow(connection: Connection, body: dict[str, Any], seen: _Seen) -> None:
    seen.sent()
    async with connection.client.stream("POST", connection.target.url, json=body) as response:
        seen.status = response.status_code
        fault = fault_of_status(response.status_code)
        if fault is not None:
            seen.fail(fault)
            return
        kind = response.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() == "text/event-stream":
            await _follow_stream(response, seen)
        else:
            await _read_whole(response, seen)


async def _follow_stream(response: httpx.Response, seen: _Seen) -> None:
    seen.streamed = True
    stream = EventStream()
    size = 0
    async for chunk in response.aiter_bytes():
        now_ns = seen.clock()
        size += len(chunk)
        if size > LARGEST_ANSWER:
            seen.fail("too_large")
            return
        for event in stream.feed(chunk):
            if event.data.strip() == DONE:
                seen.end(now_ns, told=True)
                return
            seen.take(event.data, now_ns, named_error=event.name == "error")
    now_ns = seen.clock()
    for event in stream.close():
        if event.data.strip() == DONE:
            seen.end(now_ns, told=True)
            return
        seen.take(event.data, now_ns, named_error=event.name == "error", cut=True)
    seen.end(now_ns, told=False)


async def _read_whole(response: httpx.Response, seen: _Seen) -> None:
    """A server that does not know ``stream``: all that can be seen is when the answer was there."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            seen.fail("too_large")
            return
    now_ns = seen.clock()
    seen.take(body.decode("utf-8", "replace"), now_ns)
    seen.end(now_ns, told=True)


class _Seen:
    """What is known of one answer so far."""

    def __init__(self, clock: Clock, on_first_token: Callable[[], None]) -> None:
        self.clock = clock
        self.status: int | None = None
        self.streamed = False
        self._on_first_token = on_first_token
        self._sent_ns = clock()
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._end_ns: int | None = None
        self._chunks = 0
        self._gaps_ns: list[int] = []
        self._told = Piece()
        self._fault: str | None = None

    def sent(self) -> None:
        self._sent_ns = self.clock()

    def take(self, data: str, now_ns: int, *, named_error: bool = False, cut: bool = False) -> None:
        piece = read_piece(data)
        if named_error:
            self.fail("error_event")
        elif piece.fault is not None:
            self.fail("cut" if cut else piece.fault)
        self._told = merge(self._told, piece)
        if piece.has_token:
            self._chunks += 1
            if self._last_ns is not None:
                self._gaps_ns.append(now_ns - self._last_ns)
            self._last_ns = now_ns
            if self._first_ns is None:
                self._first_ns = now_ns
                self._on_first_token()

    def end(self, now_ns: int, *, told: bool) -> None:
        """The answer has ended; ``told`` if the server said so, else its stream just stopped.

        Many servers leave ``[DONE]`` out; a stream with neither that nor a finish reason was cut.
        """
        self._end_ns = now_ns
        if not told and self._told.finish_reason is None:
            self.fail("cut")
        elif self._first_ns is None:
            self.fail("no_tokens")

    def fail(self, fault: str) -> None:
        """The first fault is the cause; what follows from it is not told."""
        self._fault = self._fault or fault

    def sample(self, *, stage: Stage, name: str, trial: int, tokens: int) -> Sample:
        gaps = sorted(self._gaps_ns)
        return Sample(
            stage=stage,
            name=name,
            trial=trial,
            asked_tokens=tokens,
            sent_ns=self._sent_ns,
            first_token_ns=self._first_ns,
            last_token_ns=self._last_ns,
            end_ns=self.clock() if self._end_ns is None else self._end_ns,
            chunks=self._chunks,
            gap_p50_ns=gaps[len(gaps) // 2] if gaps else None,
            gap_max_ns=gaps[-1] if gaps else None,
            streamed=self.streamed,
            status=self.status,
            prompt_tokens=self._told.prompt_tokens,
            output_tokens=self._told.output_tokens,
            finish_reason=self._told.finish_reason,
            fault=self._fault,
        )
