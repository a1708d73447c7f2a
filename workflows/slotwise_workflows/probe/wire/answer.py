"""One answer as it comes in: its bytes, its events, and when each of them was there."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from urllib.parse import urlsplit

import httpx

from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.wire.chunks import DONE, Piece, merge, read_piece
from slotwise_workflows.probe.wire.faults import fault_of_status, retry_after_s
from slotwise_workflows.probe.wire.sse import Event, EventStream

Clock = Callable[[], int]
"""Nanoseconds of a clock that never steps back."""

LARGEST_ANSWER = 64 << 20
_BASE_BYTES = 1 << 20
_BYTES_PER_TOKEN = 16 << 10
_LONGEST_REFUSAL = 64 << 10
_INFLATED_AT_ONCE = 64 << 10
_LOOKED_AT = 256


class Answer:
    """What is known of one answer so far; never a word of it.

    Attributes:
        clock: The clock.
        status: Its HTTP status.
        refusal: The text of an HTTP error, to see which field it names; for nobody else.
        redirect_host: Where a redirect leads, else empty.
    """

    def __init__(self, clock: Clock, tokens: int, on_first_token: Callable[[], None]) -> None:
        self.clock = clock
        self.status: int | None = None
        self.refusal = ""
        self.redirect_host = ""
        self._asked = tokens
        self._largest = min(LARGEST_ANSWER, _BASE_BYTES + tokens * _BYTES_PER_TOKEN)
        self._retry_after_s: float | None = None
        self._streamed = False
        self._on_first_token = on_first_token
        self._sent_ns = clock()
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._end_ns: int | None = None
        self._chunks = 0
        self._first_chunk_tokens: int | None = None
        self._gaps_ns: list[int] = []
        self._told = Piece()
        self._fault: str | None = None

    async def follow(self, response: httpx.Response) -> None:
        """Reads the answer to its end.

        Args:
            response: Its head has come; its body is read here.

        Raises:
            httpx.HTTPError: The connection broke, or the body cannot be decompressed.
            EventTooLong: An event is longer than any is meant to be.
        """
        self.status = response.status_code
        fault = fault_of_status(response.status_code)
        if fault is not None:
            self.fail(fault)
            self._retry_after_s = retry_after_s(response.headers)
            self.redirect_host = host_of_redirect(response)
            body = await read_bounded(response, _LONGEST_REFUSAL)
            self.refusal = (body or b"").decode("utf-8", "replace")
            return
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in {"application/x-ndjson", "application/jsonl"}:
            self.fail("ndjson")
            return
        await self._read(response, kind)

    async def _read(self, response: httpx.Response, kind: str) -> None:
        stream = EventStream() if kind == "text/event-stream" else None
        body = bytearray()
        size = 0
        now_ns = self.clock()
        async with aclosing(stamped(response, self.clock)) as chunks:
            async for now_ns, chunk in chunks:
                size += len(chunk)
                if size > self._largest:
                    self.fail("too_large")
                    return
                if stream is None:
                    unsure = kind != "application/json" and len(_head(body)) < _LONGEST_FIELD
                    body += chunk
                    if unsure and _head(body).startswith(_FIELDS):
                        stream, chunk = EventStream(), bytes(body)
                if stream is not None and self._take_events(stream.feed(chunk), now_ns):
                    return
        if stream is None:
            # A server that does not know `stream`: only when all of it was there can be seen.
            self._take(body.decode("utf-8", "replace"), now_ns)
            self._end(now_ns, told=True)
        elif not self._take_events(stream.close(), self.clock()):
            self._end(self.clock(), told=False)

    def _take_events(self, events: Sequence[Event], now_ns: int) -> bool:
        """Whether one of the events is the last: by what it says, or because it is an error."""
        self._streamed = True
        for event in events:
            if event.data.strip() == DONE:
                self._end(now_ns, told=True)
                return True
            self._take(
                event.data, now_ns, named_error=event.name == "error", cut=not event.complete
            )
            if self._fault is not None:
                return True
        return False

    def _take(
        self, data: str, now_ns: int, *, named_error: bool = False, cut: bool = False
    ) -> None:
        piece = read_piece(data)
        if named_error:
            self.fail("error_event")
        elif piece.fault is not None:
            self.fail("cut" if cut else piece.fault)
        self._told = merge(self._told, piece)
        if not piece.has_token:
            return
        if piece.output_tokens is None and self._told.output_tokens is not None:
            # A count from before this token is not that of the answer.
            self._told = replace(self._told, output_tokens=None)
        self._chunks += 1
        if self._last_ns is not None:
            self._gaps_ns.append(now_ns - self._last_ns)
        self._last_ns = now_ns
        if self._first_ns is None:
            self._first_ns = now_ns
            self._first_chunk_tokens = piece.output_tokens or None
            self._on_first_token()

    def _end(self, now_ns: int, *, told: bool) -> None:
        """The answer has ended; ``told`` if the server said so, else its stream just stopped.

        Many servers leave ``[DONE]`` out; a stream with neither that nor a finish reason was cut.
        """
        self._end_ns = now_ns
        if not told and self._told.finish_reason is None:
            self.fail("cut")
        elif self._first_ns is None:
            self.fail("no_tokens")

    def sent(self) -> None:
        """The request goes out now; called again once a connection for it has been made."""
        self._sent_ns = self.clock()

    def fail(self, fault: str) -> None:
        """The first fault is the cause; what follows from it is not told."""
        self._fault = self._fault or fault

    def sample(self, *, stage: Stage, name: str, trial: int) -> Sample:
        """What there is to keep of it.

        Args:
            stage: What the request was sent for.
            name: Its name.
            trial: Its trial.

        Returns:
            Its times and counts.
        """
        gaps = sorted(self._gaps_ns)
        return Sample(
            stage=stage,
            name=name,
            trial=trial,
            asked_tokens=self._asked,
            sent_ns=self._sent_ns,
            first_token_ns=self._first_ns,
            last_token_ns=self._last_ns,
            end_ns=self.clock() if self._end_ns is None else self._end_ns,
            chunks=self._chunks,
            first_chunk_tokens=self._first_chunk_tokens,
            gap_p50_ns=gaps[len(gaps) // 2] if gaps else None,
            gap_max_ns=gaps[-1] if gaps else None,
            streamed=self._streamed,
            status=self.status,
            prompt_tokens=self._told.prompt_tokens,
            cached_tokens=self._told.cached_tokens,
            output_tokens=self._told.output_tokens,
            retry_after_s=self._retry_after_s,
            finish_reason=self._told.finish_reason,
            fault=self._fault,
        )


async def stamped(
    response: httpx.Response, clock: Clock
) -> AsyncGenerator[tuple[int, bytes], None]:
    """The body as it comes, decompressed, each piece with the time at which it was there.

    Decompressed here and not by the HTTP client, which would unpack a small piece to any size.

    Args:
        response: Its head has come.
        clock: The clock.

    Yields:
        Nanoseconds, and some bytes.

    Raises:
        httpx.HTTPError: The connection broke, or the body cannot be decompressed.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise httpx.DecodingError(f"content-encoding {encoding[:40]!r}", request=response.request)
    inflate = None if encoding in {"", "identity"} else zlib.decompressobj(zlib.MAX_WBITS | 32)
    async for raw in response.aiter_raw():
        now_ns = clock()
        if inflate is None:
            yield now_ns, raw
            continue
        try:
            for chunk in _inflated(inflate, raw):
                yield now_ns, chunk
        except zlib.error as error:
            raise httpx.DecodingError(str(error), request=response.request) from error


async def read_bounded(response: httpx.Response, largest: int) -> bytes | None:
    """The whole body, or None if it is larger than that.

    Raises:
        httpx.HTTPError: The connection broke, or the body cannot be decompressed.
    """
    body = bytearray()
    async with aclosing(stamped(response, lambda: 0)) as chunks:
        async for _now_ns, chunk in chunks:
            body += chunk
            if len(body) > largest:
                return None
    return bytes(body)


def host_of_redirect(response: httpx.Response) -> str:
    """The host that a redirect names; empty where it is none, or names none."""
    try:
        host = urlsplit(response.headers.get("location", "")).hostname or ""
    except ValueError:
        return ""
    fit = response.status_code // 100 == 3 and host.isascii() and host.isprintable()
    return host if fit and len(host) < 254 else ""


def _inflated(inflate: zlib._Decompress, raw: bytes) -> Iterator[bytes]:
    while raw:
        yield inflate.decompress(raw, _INFLATED_AT_ONCE)
        raw = inflate.unconsumed_tail


_FIELDS = (b"data:", b"event:", b":")
"""How events begin, which some proxies pass on under another content type."""
_LONGEST_FIELD = max(map(len, _FIELDS))


def _head(body: bytearray) -> bytes:
    """The first bytes that are not blank, whatever the pieces they came in."""
    return bytes(body[:_LOOKED_AT]).removeprefix(codecs.BOM_UTF8).lstrip()
