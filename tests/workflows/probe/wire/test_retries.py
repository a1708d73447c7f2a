"""Trying again, in virtual time: what passes, after how long, and how it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.wire.client import LONGEST_WAIT_S, Connection, backoff_s
from slotwise_workflows.probe.wire.preflight import TRIES, _first_answer

STREAM = (
    b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'
    b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
)
EVENTS = {"content-type": "text/event-stream"}


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


GOOD = (200, EVENTS, STREAM)


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        ([GOOD], [0]),
        ([(429, {}, b""), GOOD], [0, 1]),
        ([(429, {"retry-after": "4"}, b""), GOOD], [0, 4]),
        ([(503, {"retry-after-ms": "2500"}, b""), GOOD], [0, 2.5]),
        ([(503, {}, b""), (502, {}, b""), GOOD], [0, 1, 3]),
        ([(0, {}, b""), GOOD], [0, 1]),
        ([(200, EVENTS, STREAM[:60]), GOOD], [0, 1]),
        ([(429, {"retry-after": "-1"}, b""), GOOD], [0, 1]),
    ],
)
def test_what_passes_is_tried_again_after_a_wait(
    virtual: Callable[..., Any],
    responses: list[tuple[int, dict[str, str], bytes]],
    expected: list[float],
) -> None:
    handler, times = replies(*responses)
    _, sample, tries = virtual(handler, first)
    assert times == expected
    assert sample.fault is None
    assert sample.sent_ns / 1e9 == expected[-1]
    assert tries == len(expected) <= TRIES


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ((503, {}, b""), [0, 1, 3]),
        ((429, {"retry-after": "6"}, b""), [0]),
        ((401, {}, b""), [0]),
        ((307, {"location": "/x"}, b""), [0]),
    ],
)
def test_what_does_not_pass_ends_it(
    virtual: Callable[..., Any], response: tuple[int, dict[str, str], bytes], expected: list[float]
) -> None:
    handler, times = replies(response)
    with pytest.raises(EndpointError):
        virtual(handler, first)
    assert times == expected


def test_a_wait_beyond_the_deadline_is_not_begun(virtual: Callable[..., Any]) -> None:
    handler, times = replies((429, {"retry-after": "4"}, b""))
    with pytest.raises(EndpointError):
        virtual(handler, first, deadline=3.0)
    assert times == [0]


async def first(connection: Connection) -> Any:
    return await _first_answer(connection, [], tokens=2, rng=np.random.default_rng(0))


def test_waits_double_and_are_bounded() -> None:
    sample = Sample(
        stage="cost", name="n", trial=1, asked_tokens=1, sent_ns=0, first_token_ns=None,
        last_token_ns=None, end_ns=1, chunks=0, streamed=False, status=503, prompt_tokens=None,
        output_tokens=None, finish_reason=None, fault="server_error",
    )  # fmt: skip
    assert [backoff_s(sample, attempt) for attempt in range(6)] == [1, 2, 4, None, None, None]
    patient = sample.model_copy(update={"retry_after_s": LONGEST_WAIT_S})
    assert backoff_s(patient, 0) == LONGEST_WAIT_S
