"""One request to the endpoint, timed at the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.wire.answer import Answer, Clock, host_of_redirect, read_bounded
from slotwise_workflows.probe.wire.chunks import read_json
from slotwise_workflows.probe.wire.dialect import Dialect
from slotwise_workflows.probe.wire.faults import fault_of_exception
from slotwise_workflows.probe.wire.products import product_of_host
from slotwise_workflows.probe.wire.sse import EventTooLong
from slotwise_workflows.probe.wire.target import Target

__all__ = [
    "Clock",
    "Connection",
    "Page",
    "ask",
    "backoff_s",
    "get_page",
    "new_client",
    "send",
    "tells_key",
]

LONGEST_WAIT_S = 5.0
"""Whoever asks for a longer wait than this is not asked again."""
_CONNECT_S = 10.0
_LARGEST_PAGE = 1 << 20
_REDIRECTS = 3
_SHORTEST_SECRET = 8
_PASSING = frozenset({"rate_limited", "server_error", "connection_lost", "cut", "unreachable"})


@dataclass(frozen=True, slots=True)
class Connection:
    """What all requests of a probe share.

    Attributes:
        client: The HTTP client; its headers hold the key.
        target: Where requests go.
        model: The model asked for, or None.
        dialect: What may be sent.
        clock: The clock.
        deadline: When every request is given up, on the event loop's clock.
    """

    client: httpx.AsyncClient = field(repr=False)
    target: Target
    model: str | None
    dialect: Dialect
    clock: Clock
    deadline: float


@dataclass(frozen=True, slots=True)
class Page:
    """What a GET brought.

    Attributes:
        status: HTTP status.
        server: The ``Server`` header.
        body: Its JSON, or None.
        redirect_host: The other host that it redirects to, else empty.
    """

    status: int
    server: str
    body: Any
    redirect_host: str = ""


def new_client(api_key: str | None, target: Target | None = None) -> httpx.AsyncClient:
    """A client that follows no redirect and waits as long as the probe's own deadline.

    Every request has a connection of its own: one used before may be closed by the server at that
    very moment, and the failure would be the generator's. Proxies are taken from the environment,
    but never for this machine's own addresses. HTTP/1.1.

    Args:
        api_key: Sent as a bearer token, or as Azure wants it.
        target: Where requests will go.

    Returns:
        The client; to be closed.

    Raises:
        UsageError: The key cannot be one; the environment names a proxy or certificates that cannot
            be used.
    """
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
        raise UsageError(
            "the API key is empty, or holds characters that no key has",
            why="a line break at its end is one",
            hint="Set its environment variable again, without it",
        )
    headers = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
    headers["Connection"] = "close"
    host = "" if target is None else target.host
    if api_key is not None:
        product = product_of_host(host)
        if product is not None and product.kind == "azure":
            headers["api-key"] = api_key
        else:
            headers["Authorization"] = f"Bearer {api_key}"
    try:
        certificates = httpx.create_ssl_context()
    except OSError:
        raise UsageError(
            "the certificates that SSL_CERT_FILE names cannot be read", hint="Correct or unset it"
        ) from None
    try:
        return httpx.AsyncClient(
            headers=headers,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            verify=certificates,
            trust_env=not is_loopback(host),
        )
    except (ValueError, ImportError, httpx.InvalidURL):  # an import: of what SOCKS proxies need
        raise UsageError(
            "the proxy that the environment names cannot be used",
            hint="Set HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY to http:// proxies and hosts",
        ) from None


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

    A fault of the endpoint is part of the answer, not an exception. Nothing is tried again: where
    time is what is measured, a request sent again looks like a slow one.

    Args:
        connection: The endpoint and what goes with it.
        stage: What it is sent for.
        name: The request's name in the results.
        trial: Which trial it belongs to.
        tokens: The output tokens to ask for.
        prompt: A generated prompt.
        on_first_token: Called when the first token has come.

    Returns:
        Its times and counts.
    """
    answer = await send(connection, tokens=tokens, prompt=prompt, on_first_token=on_first_token)
    return answer.sample(stage=stage, name=name, trial=trial)


async def send(
    connection: Connection,
    *,
    tokens: int,
    prompt: str,
    on_first_token: Callable[[], None] = lambda: None,
) -> Answer:
    """Sends a request once; see `ask`.

    Its time begins when its bytes go out: what it takes to make a connection is the network's.
    """
    body = connection.dialect.body(
        connection.target.api, model=connection.model, tokens=tokens, prompt=prompt
    )
    answer = Answer(connection.clock, tokens, on_first_token)

    async def watch(event: str, _info: object) -> None:
        if event == "http11.send_request_headers.started":
            answer.sent()

    try:
        async with (
            asyncio.timeout_at(connection.deadline),
            connection.client.stream(
                "POST", connection.target.url, json=body, extensions={"trace": watch}
            ) as response,
        ):
            await answer.follow(response)
    except (httpx.HTTPError, TimeoutError, EventTooLong) as error:
        answer.fail(fault_of_exception(error))
    return answer


def backoff_s(sample: Sample, attempt: int) -> float | None:
    """How long to wait before a request is sent again.

    Args:
        sample: The attempt that failed.
        attempt: How many there were before it.

    Returns:
        Seconds; None where trying again would not help, or the endpoint wants too long a wait.
    """
    if sample.fault not in _PASSING:
        return None
    wait = max(2.0**attempt, sample.retry_after_s or 0.0)
    return wait if wait <= LONGEST_WAIT_S else None


async def get_page(client: httpx.AsyncClient, url: str, *, seconds: float) -> Page:
    """A page of the endpoint's that costs nothing.

    Redirects are followed as long as they stay on the host and do not leave HTTPS: the key goes
    along.

    Args:
        client: The HTTP client.
        url: The page.
        seconds: After which it is given up.

    Returns:
        The page; without a body where it is no JSON, or longer than any such page.

    Raises:
        httpx.HTTPError: It cannot be reached.
        TimeoutError: It does not come in time.
    """
    async with asyncio.timeout(seconds):
        for _ in range(_REDIRECTS + 1):
            async with client.stream("GET", url) as response:
                if response.status_code // 100 == 3 and "location" in response.headers:
                    following = _stays(url, response.headers["location"])
                    if following is None:
                        return Page(response.status_code, "", None, host_of_redirect(response))
                    url = following
                    continue
                content = await read_bounded(response, _LARGEST_PAGE)
                text = (content or b"").decode("utf-8", "replace")
                server = response.headers.get("server", "")
                return Page(response.status_code, server, read_json(text))
    return Page(310, "", None)  # a circle


def _stays(url: str, location: str) -> str | None:
    """Where a redirect leads, if that is the same host, as safe as before."""
    try:
        following = str(httpx.URL(urljoin(url, location)))
        old, new = urlsplit(url), urlsplit(following)
        same = new.hostname == old.hostname and new.username is None
        if new.scheme == old.scheme:
            return following if same and new.port == old.port else None
        return following if same and (old.scheme, new.scheme) == ("http", "https") else None
    except (ValueError, httpx.InvalidURL):
        return None


def tells_key(client: httpx.AsyncClient, text: str) -> bool:
    """Whether a server's text holds the key that the client sends: such a text is never shown.

    A key of a few characters is a dummy, as local servers are given, and stands in many a name.
    """
    bearer = client.headers.get("authorization", "").removeprefix("Bearer ")
    key = client.headers.get("api-key", bearer).lower()
    return len(key) >= _SHORTEST_SECRET and key in text.lower()


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
