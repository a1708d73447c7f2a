"""One request over real sockets, and trying again, in virtual time."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.wire.client import (
    LONGEST_WAIT_S,
    Connection,
    ask,
    backoff_s,
    get_page,
    is_loopback,
    new_client,
    tells_key,
)
from slotwise_workflows.probe.wire.dialect import dialect_of
from slotwise_workflows.probe.wire.products import UNKNOWN
from slotwise_workflows.probe.wire.target import targets

Serve = Callable[..., Any]
FAST = {"step_ms": 0.1}
STREAM = (
    b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'
    b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
)
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"
EVENTS = {"content-type": "text/event-stream"}


def asked(url: str, *, seconds: float = 20.0, tokens: int = 8, key: str | None = None) -> Sample:
    """One request over the loopback."""

    async def main() -> Sample:
        target = targets(url, "chat")[0]
        async with new_client(key, target) as client:
            deadline = asyncio.get_running_loop().time() + seconds
            connection = Connection(
                client, target, "m", dialect_of(UNKNOWN), time.perf_counter_ns, deadline
            )
            return await ask(
                connection, stage="group", name="long", trial=1, tokens=tokens, prompt="count"
            )

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("faults", "fault", "chunks"),
    [
        ({}, None, 8),
        ({"crlf": True, "comments": True}, None, 8),
        ({"encoding": "gzip"}, None, 8),
        ({"encoding": "gzip", "stream": False}, None, 1),
        ({"stream": False}, None, 1),
        ({"per_chunk": 3}, None, 3),
        ({"buffer": True}, None, 8),
        ({"done": False}, None, 8),
        ({"content_type": "text/plain"}, None, 8),
        ({"drop_after": 3}, "cut", 2),
        ({"error_after": 3}, "error_event", 2),
        ({"fail": {1: 429}}, "rate_limited", 0),
        ({"fail": {1: 500}}, "server_error", 0),
        ({"fail": {1: 503}}, "server_error", 0),
        ({"fail": {1: 408}}, "timeout", 0),
        ({"fail": {1: 302}, "location": "http://other.example/"}, "redirect", 0),
        ({"fail": {1: 308}, "location": "/v1/elsewhere"}, "redirect", 0),
        ({"body": b"data: " + b"x" * (10 << 20)}, "too_large", 0),
        ({"body": STREAM[:50] * 1000, "endless": True}, "too_large", None),
        ({"body": b": ping\n\n" * 9999, "endless": True}, "too_large", 0),
        ({"body": b"{}\n{}\n", "content_type": "application/x-ndjson"}, "ndjson", 0),
        ({"body": b"not gzip", "encoding": "gzip"}, "bad_encoding", 0),
        ({"body": b"\x00", "encoding": "br"}, "bad_encoding", 0),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_servers_do(
    serve: Serve, faults: dict[str, Any], fault: str | None, chunks: int | None
) -> None:
    server = serve(**FAST, faults=faults)
    sample = asked(server.url)
    assert sample.fault == fault
    assert chunks is None or sample.chunks == chunks
    assert len(server.requests) == 1
    if fault is None:
        assert (sample.output_tokens, sample.cached_tokens) == (8, 0)


def test_a_connection_reset_in_mid_stream(serve: Serve) -> None:
    """What came before the reset may be lost with it, so how many tokens is not asked here."""
    sample = asked(serve(step_ms=2.0, faults={"reset_after": 5}).url)
    assert (sample.fault, sample.status) == ("connection_lost", 200)


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (b"", "connection_lost"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "connection_lost"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}", "connection_lost"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{", "connection_lost"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "not_http"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "not_http"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "not_http"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_whole_http_answer(head: bytes, fault: str) -> None:
    with listening(None, head) as port:
        assert asked(f"http://localhost:{port}").fault == fault


def test_a_slow_answer_ends_at_the_deadline(serve: Serve) -> None:
    sample = asked(serve(step_ms=60_000.0).url, seconds=0.3)
    assert (sample.fault, sample.first_token_ns) == ("timeout", None)


@contextmanager
def listening(context: ssl.SSLContext | None, said: bytes = BAD_REQUEST) -> Iterator[int]:
    """A port that says the same to whatever comes; over TLS if there is a context."""
    ready, stop = threading.Event(), threading.Event()
    ports: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)  # what is left unread would reset the connection
        writer.write(said)
        await writer.drain()
        writer.close()

    async def serve() -> None:
        listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        ports.append(listener.sockets[0].getsockname()[1])
        ready.set()
        await asyncio.to_thread(stop.wait)
        listener.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield ports[0]
    finally:
        stop.set()
        thread.join(10)


def test_https_to_a_server_that_speaks_none() -> None:
    with listening(None) as port:
        assert asked(f"http://localhost:{port}").fault == "rejected"
        assert asked(f"https://localhost:{port}").fault == "tls"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_a_certificate_that_nobody_vouches_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost -keyout key -out cert"
    )
    subprocess.run(["openssl", *made.split()], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with listening(context) as port:
        assert asked(f"https://localhost:{port}").fault == "tls"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))  # as the hint says
        assert asked(f"https://localhost:{port}").fault == "rejected"


def replies(*responses: tuple[int, dict[str, str], bytes]) -> tuple[Any, list[float]]:
    """A handler that gives one response after the other, and when it was asked for each."""
    times: list[float] = []

    def handler(_request: httpx.Request) -> httpx.Response:
        times.append(asyncio.get_running_loop().time())
        status, headers, content = responses[min(len(times), len(responses)) - 1]
        if status == 0:
            raise httpx.ReadError("reset")
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))

    return handler, times


@pytest.mark.parametrize(
    ("responses", "retries", "expected", "final"),
    [
        ([(200, EVENTS, STREAM)], 2, [0], None),
        ([(429, {}, b""), (200, EVENTS, STREAM)], 0, [0], "rate_limited"),
        ([(429, {}, b""), (200, EVENTS, STREAM)], 2, [0, 1], None),
        ([(429, {"retry-after": "7"}, b""), (200, EVENTS, STREAM)], 2, [0, 7], None),
        ([(503, {"retry-after-ms": "2500"}, b""), (200, EVENTS, STREAM)], 2, [0, 2.5], None),
        ([(503, {}, b"")], 3, [0, 1, 3, 7], "server_error"),
        ([(0, {}, b""), (200, EVENTS, STREAM)], 2, [0, 1], None),
        ([(200, EVENTS, STREAM[:60]), (200, EVENTS, STREAM)], 2, [0, 1], None),
        ([(429, {"retry-after": "31"}, b"")], 2, [0], "rate_limited"),
        ([(400, {}, b"")], 2, [0], "rejected"),
        ([(401, {}, b"")], 2, [0], "unauthorized"),
        ([(307, {"location": "/x"}, b"")], 2, [0], "redirect"),
        ([(429, {"retry-after": "-1"}, b""), (200, EVENTS, STREAM)], 1, [0, 1], None),
    ],
)
def test_what_passes_is_tried_again_after_a_wait(
    virtual: Callable[..., Any],
    responses: list[tuple[int, dict[str, str], bytes]],
    retries: int,
    expected: list[float],
    final: str | None,
) -> None:
    handler, times = replies(*responses)
    again: list[Sample] = []

    async def work(connection: Connection) -> Sample:
        return await ask(
            connection, stage="cost", name="n", trial=1, tokens=2, prompt="p",
            scheduled_ns=5, retries=retries, on_retry=again.append,
        )  # fmt: skip

    sample = virtual(handler, work)
    assert times == expected
    assert sample.fault == final
    assert len(again) == len(times) - 1
    assert all(attempt.fault is not None for attempt in again)
    assert [attempt.sent_ns / 1e9 for attempt in (*again, sample)] == expected
    assert {attempt.scheduled_ns for attempt in (*again, sample)} == {5}


def test_a_wait_beyond_the_deadline_is_not_begun(virtual: Callable[..., Any]) -> None:
    handler, times = replies((429, {"retry-after": "20"}, b""))

    async def work(connection: Connection) -> tuple[Sample, float]:
        sample = await ask(
            connection, stage="cost", name="n", trial=1, tokens=2, prompt="p", retries=9
        )
        return sample, asyncio.get_running_loop().time()

    sample, ended = virtual(handler, work, deadline=15.0)
    assert (len(times), sample.fault, sample.retry_after_s, ended) == (1, "rate_limited", 20.0, 0.0)


def test_waits_double_and_are_bounded() -> None:
    sample = Sample(
        stage="cost", name="n", trial=1, asked_tokens=1, sent_ns=0, first_token_ns=None,
        last_token_ns=None, end_ns=1, chunks=0, streamed=False, status=503, prompt_tokens=None,
        output_tokens=None, finish_reason=None, fault="server_error",
    )  # fmt: skip
    assert [backoff_s(sample, attempt) for attempt in range(6)] == [1, 2, 4, 8, 16, None]
    patient = sample.model_copy(update={"retry_after_s": LONGEST_WAIT_S})
    assert backoff_s(patient, 0) == LONGEST_WAIT_S


@pytest.mark.parametrize(
    ("url", "location", "followed"),
    [
        ("http://h/v1/models", "/models", True),
        ("http://h/v1/models", "http://h/models", True),
        ("http://h:80/v1/models", "https://h/models", True),
        ("http://h:8000/v1/models", "https://h:8443/models", True),
        ("https://h/v1/models", "http://h/models", False),
        ("http://h/v1/models", "http://h:81/models", False),
        ("http://h/v1/models", "http://g/models", False),
        ("http://h/v1/models", "http://h.evil.example/models", False),
        ("http://h/v1/models", "http://h@evil.example/models", False),
        ("http://h/v1/models", "http://u:p@h/models", False),
        ("http://h/v1/models", "ftp://h/models", False),
        ("http://h/v1/models", "http://[h/models", False),
        ("http://h/v1/models", "//evil.example/models", False),
    ],
)
def test_a_get_follows_redirects_on_its_host_alone(url: str, location: str, followed: bool) -> None:
    hosts = []

    def handler(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        if str(request.url).replace(":80/", "/") == url.replace(":80/", "/"):
            return httpx.Response(301, headers={"location": location})
        return httpx.Response(200, stream=httpx.ByteStream(b'{"data": []}'))

    async def main() -> int:
        transport = httpx.MockTransport(handler)
        async with httpx.AsyncClient(transport=transport, headers={"authorization": "k"}) as client:
            return (await get_page(client, url, seconds=5)).status

    assert (asyncio.run(main()) == 200) is followed
    assert set(hosts) == {"h"}
    assert len(hosts) == 1 + followed


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.9.9.9"])
def test_proxies_are_for_other_machines(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def main(url: str) -> bool:
        async with new_client(None, targets(url, "chat")[0]) as client:
            return client._transport_for_url(httpx.URL(url)) is client._transport

    assert asyncio.run(main(f"http://{host}:8000/v1"))
    assert not asyncio.run(main("http://gpu.example:8000/v1"))


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ALL_PROXY", "socks5://user:pw@proxy:1080", "proxy"),
        ("HTTP_PROXY", "ftp://user:pw@proxy", "proxy"),
        ("HTTPS_PROXY", "http://user:pw@a b:1", None),
        ("NO_PROXY", "[::", "proxy"),
        ("SSL_CERT_FILE", "/pw/nowhere", "certificates"),
    ],
)
def test_an_environment_that_cannot_be_used_is_told(
    variable: str, value: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv(variable, value)
    if said is None:
        new_client(None, targets("http://gpu.example", "chat")[0])
    else:
        with pytest.raises(UsageError, match=said) as error:
            new_client(None, targets("http://gpu.example", "chat")[0])
        assert "pw" not in str(error.value)
    if variable != "SSL_CERT_FILE":  # this machine needs no proxy, usable or not
        new_client(None, targets("http://localhost", "chat")[0])


def test_which_texts_tell_the_key() -> None:
    azure = targets("https://x.openai.azure.com", "chat")[0]

    async def main() -> None:
        for target in (None, azure):
            async with new_client("sk-Abc", target) as client:
                assert tells_key(client, "model SK-ABC-1")
                assert not tells_key(client, "model")
                assert "sk-Abc" not in repr(
                    Connection(client, azure, None, dialect_of(UNKNOWN), time.perf_counter_ns, 1.0)
                )
        async with new_client(None) as client:
            assert not tells_key(client, "model")

    asyncio.run(main())


def test_time_begins_when_the_connection_is_there(serve: Serve) -> None:
    """The clock counts its readings: one as the request is made, one as its bytes go out."""
    readings = iter(range(10**6))

    async def main(url: str) -> Sample:
        target = targets(url, "chat")[0]
        async with new_client(None, target) as client:
            deadline = asyncio.get_running_loop().time() + 20
            connection = Connection(
                client, target, None, dialect_of(UNKNOWN), lambda: next(readings), deadline
            )
            return await ask(connection, stage="group", name="n", trial=1, tokens=2, prompt="count")

    assert asyncio.run(main(serve(**FAST).url)).sent_ns == 1
