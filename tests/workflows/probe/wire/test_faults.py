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
        (httpx.ConnectTimeout("x"), "timeout"),
        (httpx.ReadTimeout("x"), "timeout"),
        (TimeoutError(), "timeout"),
        (httpx.RemoteProtocolError("peer closed"), "connection_lost"),
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


def test_sentences_are_single_lines() -> None:
    for what, hint in SENTENCES.values():
        assert "\n" not in what + hint
        assert not what.endswith(".")
        assert not hint.endswith(".")
