"""What can go wrong with a request: its class in the data, its sentence for a person."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

import httpx

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.wire.sse import EventTooLong

SENTENCES: Mapping[str, tuple[str, str]] = {
    "unreachable": ("the endpoint cannot be reached", "Check the address and that it runs"),
    "name_unknown": ("the endpoint's host name is unknown", "Check the address"),
    "tls": (
        "no secure connection: the endpoint's certificate or TLS version is not accepted",
        "Check the address, and http or https; for a private authority set SSL_CERT_FILE",
    ),
    "connect_timeout": (
        "the endpoint takes no connection in time",
        "Check the address and the port, and what lies between: a firewall",
    ),
    "timeout": (
        "the endpoint did not answer in time",
        "Check http or https and the port; or try again when it is less busy",
    ),
    "request_timeout": (
        "the endpoint gave the request up as too slow",
        "Look at what lies between: a proxy; or try again when it is less busy",
    ),
    "connection_lost": (
        "the endpoint closed the connection in the middle of an answer",
        "Look at its log, and at what lies between: a proxy may cut long answers",
    ),
    "not_http": ("the endpoint's answer is no HTTP", "Check the address and its port"),
    "redirect": (
        "the endpoint redirects elsewhere, and requests are not sent elsewhere",
        "Give the final URL",
    ),
    "unauthorized": (
        "the endpoint wants an API key, or does not accept this one",
        "Put it into SLOTWISE_API_KEY, or name another variable with --api-key-env",
    ),
    "not_found": (
        "the endpoint knows no such API or model",
        "Check the URL (often it ends in /v1), --api and --model",
    ),
    "rate_limited": ("the endpoint limits the rate of requests", "Try again later"),
    "rejected": ("the endpoint rejects the request", "Check --model and --api"),
    "server_error": ("the endpoint failed", "Look at its log"),
    "not_json": ("the endpoint's answer is not that of an OpenAI-compatible API", "Check the URL"),
    "ndjson": (
        "the endpoint answers with lines of JSON, not with server-sent events",
        "Give the URL of its OpenAI-compatible API; often it ends in /v1",
    ),
    "error_event": ("the endpoint answers with an error in place of tokens", "Look at its log"),
    "bad_encoding": (
        "the endpoint's answer cannot be decompressed",
        "Look at what lies between: a proxy",
    ),
    "too_large": ("the endpoint's answer is larger than any answer should be", "Check the URL"),
    "cut": ("the endpoint's answer ends in the middle", "Look at its log"),
    "no_tokens": ("the endpoint answered without a single token", "Check --model"),
}


def fault_of_status(status: int) -> str | None:
    """The class of an HTTP status; None for 200."""
    if status == 200:
        return None
    if 300 <= status < 400:
        return "redirect"
    known = {401: "unauthorized", 403: "unauthorized", 404: "not_found", 405: "not_found"}
    known |= {408: "request_timeout", 429: "rate_limited"}
    return known.get(status, "server_error" if status >= 500 else "rejected")


def fault_of_exception(error: Exception) -> str:
    """The class of what the HTTP client raised."""
    if isinstance(error, EventTooLong):
        return "too_large"
    if isinstance(error, httpx.ConnectTimeout):
        return "connect_timeout"
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return "timeout"
    if isinstance(error, httpx.DecodingError):
        return "bad_encoding"
    if isinstance(error, (httpx.ConnectError, httpx.UnsupportedProtocol)):
        causes = list(_causes(error))
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return "tls"
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return "name_unknown"
        return "unreachable"
    if isinstance(error, httpx.RemoteProtocolError):
        # One class for a peer that hangs up and for one that says what it should not.
        hung_up = any(word in str(error) for word in ("disconnected", "closed"))
        return "connection_lost" if hung_up else "not_http"
    return "connection_lost"


def endpoint_error(
    fault: str, *, where: str, status: int | None, detail: str = ""
) -> EndpointError:
    """The fault of the first request, which ends the probe.

    Args:
        fault: Its class, a key of `SENTENCES`.
        where: The URL, as it may be shown.
        status: The HTTP status, if one came.
        detail: What else is known; never a text of the server's.

    Returns:
        The error to raise.
    """
    what, hint = SENTENCES[fault]
    code = "" if status is None or status == 200 else f"HTTP {status}"
    why = ", ".join(part for part in (code, detail) if part)
    return EndpointError(what, where=where, why=why, hint=hint)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long a refusal asks to wait.

    https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3: whole seconds, or a date, which is held
    against the answer's own ``Date``, so that the two clocks need not agree. ``retry-after-ms``, as
    OpenAI and Azure send it, is finer and goes first.

    Args:
        headers: Of the answer.

    Returns:
        Seconds, or None where it does not say.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _number(said)
    if seconds is not None:
        return seconds
    try:
        then, now = (parsedate_to_datetime(t) for t in (said, headers.get("date", "")))
        return max(0.0, (then - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    """Of at most nine digits: no server means more, and a float holds it."""
    plain = text.strip()
    return float(plain) if plain.isascii() and plain.isdigit() and len(plain) < 10 else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
