"""One request over real sockets; which redirects, proxies and certificates are taken."""

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
    Connection,
    ask,
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
TOKEN = b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"


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
        ({"fail": {1: 408}}, "request_timeout", 0),
        ({"fail": {1: 302}, "location": "http://other.example/"}, "redirect", 0),
        ({"fail": {1: 308}, "location": "/v1/elsewhere"}, "redirect", 0),
        ({"body": b"data: " + b"x" * (10 << 20)}, "too_large", 0),
        ({"body": TOKEN * 1000, "endless": True}, "too_large", None),
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
            async with new_client("sk-Abcde", target) as client:
                assert tells_key(client, "model SK-ABCDE-1")
                assert not tells_key(client, "model")
                assert "sk-Abcde" not in repr(
                    Connection(client, azure, None, dialect_of(UNKNOWN), time.perf_counter_ns, 1.0)
                )
        async with new_client(None) as client:
            assert not tells_key(client, "model")
        for dummy in ("x", "-", "test"):  # no secrets, but parts of many names
            async with new_client(dummy) as client:
                assert not tells_key(client, "mixtral-test")

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
