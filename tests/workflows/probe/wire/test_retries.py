"""Trying again, in virtual time: what passes, after how long, and how it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.wire.client import LONGEST_WAIT_S, Connection, ask, backoff_s

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
