from __future__ import annotations

import socket
import ssl

import httpx
import pytest

from slotwise_workflows.probe.wire.faults import (
    SENTENCES,
    endpoint_error,
    fault_of_exception,
    fault_of_status,
    retry_after_s,
)
from slotwise_workflows.probe.wire.sse import EventTooLong


def caused(error: Exception, cause: Exception) -> Exception:
    """As the HTTP client chains them: the cause behind another exception of its own."""
    middle = OSError("connect failed")
    middle.__context__ = cause
    error.__cause__ = middle
    return error


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (httpx.ConnectError("all attempts failed"), "unreachable"),
        (caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError("bad")), "tls"),
        (caused(httpx.ConnectError("x"), socket.gaierror(-2, "unknown")), "name_unknown"),
        (httpx.ConnectTimeout("x"), "connect_timeout"),
        (httpx.ReadTimeout("x"), "timeout"),
        (TimeoutError(), "timeout"),
        (httpx.RemoteProtocolError("peer closed connection without"), "connection_lost"),
        (httpx.RemoteProtocolError("Server disconnected without"), "connection_lost"),
        (httpx.RemoteProtocolError("illegal status line"), "not_http"),
        (httpx.ReadError("reset"), "connection_lost"),
        (httpx.DecodingError("gzip"), "bad_encoding"),
        (EventTooLong("x"), "too_large"),
    ],
)
def test_what_the_client_raises_has_a_class(error: Exception, fault: str) -> None:
    assert fault_of_exception(error) == fault


@pytest.mark.parametrize("status", [*range(200, 600)])
def test_every_status_has_a_class(status: int) -> None:
    fault = fault_of_status(status)
    assert (fault is None) == (status == 200)
    if fault is not None:
        error = endpoint_error(fault, where="http://h/v1", status=status)
        assert str(error).startswith("http://h/v1: the endpoint")
        assert f"HTTP {status}" in str(error)


def test_only_what_the_probe_itself_gave_up_is_a_timeout() -> None:
    """By that its end is told: neither a connection refused so nor an answer says so."""
    assert fault_of_status(408) == "request_timeout"
    assert "timeout" not in {fault_of_status(status) for status in range(100, 600)}


def test_sentences_are_single_lines() -> None:
    for what, hint in SENTENCES.values():
        assert "\n" not in what + hint
        assert not what.endswith(".")
        assert not hint.endswith(".")


DATE = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1.5"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "\u0665"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:30 GMT", "date": DATE}, 0.0),
        ({"retry-after": DATE}, None),
        ({"retry-after": DATE, "date": "today"}, None),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2026 07:28:00 -0000"}, None),
    ],
)
def test_how_long_a_refusal_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_an_error_says_what_else_is_known() -> None:
    error = endpoint_error("redirect", where="http://h", status=307, detail="to other.example")
    assert "HTTP 307, to other.example. Give the final URL" in str(error)
