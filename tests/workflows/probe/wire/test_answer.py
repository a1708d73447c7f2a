"""An answer's bytes and times, in virtual time: what is kept of it, to the nanosecond."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.wire.answer import LARGEST_ANSWER
from slotwise_workflows.probe.wire.client import Connection, ask
from slotwise_workflows.probe.wire.sse import LONGEST_EVENT

Pieces = Sequence[tuple[float, bytes | Exception]]
Follow = Callable[..., Sample]
EVENTS = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


def event(body: object, eol: str = "\n") -> bytes:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return f"data: {text}{eol}{eol}".encode()


def token(text: str = "x", **more: Any) -> bytes:
    return event({"choices": [{"delta": {"content": text}}], **more})


def usage(tokens: int, **more: Any) -> bytes:
    return event({"choices": [], "usage": {"completion_tokens": tokens, **more}})


END = event({"choices": [{"delta": {}, "finish_reason": "length"}]})
DONE = event("[DONE]")


@pytest.fixture(scope="session")
def follow(virtual: Callable[..., Any], slow: Any) -> Follow:
    """The sample of one request that is answered with these pieces."""

    def run(
        pieces: Pieces, headers: dict[str, str] | None = None, *, status: int = 200, **more: Any
    ) -> Sample:
        def handler(_request: httpx.Request) -> httpx.Response:
            return httpx.Response(status, headers=headers or EVENTS, stream=slow(pieces))

        async def work(connection: Connection) -> Sample:
            return await ask(
                connection, stage="baseline", name="b", trial=0, tokens=4, prompt="count"
            )

        found = virtual(handler, work, **more)
        assert isinstance(found, Sample)
        return found

    return run


def test_times_are_those_of_the_bytes(follow: Follow) -> None:
    role = event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    pieces = [
        (0.5, role),
        (0.5, token()),
        (0.1, token() + token()),
        (0.4, token()[:9]),
        (0.3, token()[9:]),
        (0.2, END + usage(4, prompt_tokens=30, prompt_tokens_details={"cached_tokens": 16})),
        (0.1, DONE),
    ]
    sample = follow(pieces)
    assert (sample.sent_ns, sample.first_token_ns, sample.last_token_ns, sample.end_ns) == (
        0, 1_000_000_000, 1_800_000_000, 2_100_000_000,
    )  # fmt: skip
    assert (sample.chunks, sample.gap_p50_ns, sample.gap_max_ns) == (4, 100_000_000, 700_000_000)
    counted = (sample.prompt_tokens, sample.cached_tokens, sample.output_tokens)
    assert counted == (30, 16, 4)
    assert (sample.finish_reason, sample.fault, sample.streamed) == ("length", None, True)


def test_the_tokens_of_the_first_chunk_where_told(follow: Follow) -> None:
    def counted(tokens: int) -> bytes:
        return token(usage={"completion_tokens": tokens})

    pieces = [(1.0, counted(3)), (1.0, counted(5)), (2.0, counted(9)), (0.0, END + usage(9) + DONE)]
    sample = follow(pieces)
    assert (sample.first_chunk_tokens, sample.output_tokens) == (3, 9)


def test_a_first_chunk_of_no_tokens_is_not_believed(follow: Follow) -> None:
    first = token(usage={"completion_tokens": 0})
    sample = follow([(1.0, first), (1.0, token() + END + usage(2) + DONE)])
    assert (sample.first_chunk_tokens, sample.output_tokens) == (None, 2)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (token() + token() + END + usage(2) + DONE, 2),
        (token() + token() + usage(2) + END + DONE, 2),
        (token(usage=None) + token(usage=None) + END + DONE, None),
        (usage(0) + token() + token() + END + DONE, None),
        (token(usage={"completion_tokens": 1}) + token() + END + DONE, None),
        (
            token() + token() + END + event({"choices": [], "usage": {"completion_tokens": "2"}}),
            None,
        ),
    ],
    ids=["last", "before the end", "null", "first", "too early", "no number"],
)
def test_a_count_is_that_of_the_whole_answer_or_none(
    follow: Follow, content: bytes, tokens: int | None
) -> None:
    sample = follow([(1.0, content)])
    assert (sample.output_tokens, sample.fault) == (tokens, None)


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"content": [{"type": "text", "text": "x"}]},
        {"content": None, "reasoning_content": "x"},
        {"content": "", "reasoning": "x"},
        {"refusal": "x"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"function_call": {"name": "f"}},
    ],
    ids=lambda delta: "+".join(delta),
)
def test_the_first_token_of_any_channel(follow: Follow, delta: dict[str, object]) -> None:
    pieces = [(1.0, event({"choices": [{"delta": delta}]})), (1.0, token() + END + DONE)]
    assert follow(pieces).first_token_ns == 1_000_000_000


OK_STREAMS = {
    "comments": b": ping\n\n" + token() + b": ping\n\n: ping\n" + END + DONE,
    "CRLF": (token() + END + DONE).replace(b"\n", b"\r\n"),
    "CR": (token() + END + DONE).replace(b"\n", b"\r"),
    "no space after data:": (token() + END + DONE).replace(b"data: ", b"data:"),
    "unterminated last event": (token() + END).rstrip(b"\n"),
    "unterminated [DONE]": token() + b"data: [DONE]",
    "U+2028 inside JSON": token("a\u2028b\u0085c") + END + DONE,
    "[DONE] missing": token() + END,
    "finish reason missing": token() + DONE,
    "usage missing": token() + END + DONE,
    "byte order mark": b"\xef\xbb\xbf" + token() + END + DONE,
    "identifiers and retry": b"id: 1\nretry: 5\n" + token() + END + DONE,
    "named message": b"event: message\n" + token() + END + DONE,
    "data on two lines": b'data: {"choices": [{"delta":\ndata: {"content": "x"}}]}\n\n' + END,
    "bytes that are no UTF-8": token().replace(b"x", b"\xff") + END + DONE,
    "text of the completions API": event({"choices": [{"text": "x"}]}) + END + DONE,
    "error that is null": event({"error": None, "choices": [{"text": "x"}]}) + END + DONE,
}


@pytest.mark.parametrize("content", OK_STREAMS.values(), ids=OK_STREAMS)
def test_streams_as_servers_write_them(follow: Follow, content: bytes) -> None:
    whole = follow([(1.0, content)])
    assert (whole.fault, whole.chunks, whole.first_token_ns) == (None, 1, 1_000_000_000)
    bytewise = follow([(1.0, content[i : i + 1]) for i in range(len(content))])
    assert (bytewise.fault, bytewise.chunks) == (None, 1)
    assert bytewise.finish_reason == whole.finish_reason


BAD_STREAMS = {
    "error object": (token() + event({"error": {"message": "out of memory"}}), "error_event"),
    "error event": (token() + b"event: error\ndata: whatever\n\n", "error_event"),
    "object: error": (event({"object": "error", "message": "m", "code": 400}), "error_event"),
    "error with its type": (event({"error": "m", "error_type": "generation"}), "error_event"),
    "error text": (event({"error": "llama runner has ended"}), "error_event"),
    "finish reason error": (
        token() + event({"choices": [{"delta": {}, "finish_reason": "error"}]}) + DONE,
        "error_event",
    ),
    "aborted": (
        token() + event({"choices": [{"delta": {}, "finish_reason": "abort"}]}) + DONE,
        "error_event",
    ),
    "cut between events": (token() + token(), "cut"),
    "cut within an event": (token() + token()[:20], "cut"),
    "cut within a character": (token() + token("\u65e5")[:-8], "cut"),
    "nothing": (b"", "cut"),
    "comments only": (b": ping\n\n" * 9, "cut"),
    "no token": (END + usage(0) + DONE, "no_tokens"),
    "only empty tokens": (token("") + token("") + END + DONE, "no_tokens"),
    "no JSON": (event("hello"), "not_json"),
    "a list": (event("[1]"), "not_json"),
    "deep": (event("[" * 100_000), "not_json"),
    "a page": (b"<!DOCTYPE html><html></html>", "cut"),
}


@pytest.mark.parametrize(("content", "fault"), BAD_STREAMS.values(), ids=BAD_STREAMS)
def test_a_stream_that_fails_after_http_200_is_a_failure(
    follow: Follow, content: bytes, fault: str
) -> None:
    for pieces in (
        [(1.0, content)],
        [(0.001, content[i : i + 7]) for i in range(0, len(content), 7)],
    ):
        sample = follow(pieces)
        assert (sample.fault, sample.status, sample.answered) == (fault, 200, False)


def test_nothing_is_awaited_after_an_error(follow: Follow) -> None:
    pieces = [(1.0, token() + event({"error": "m"})), (50.0, b": ping\n\n"), (50.0, token())]
    sample = follow(pieces)
    assert (sample.fault, sample.end_ns) == ("error_event", 1_000_000_000)


STREAM = b": ping\r\n\r\n" + token("\u65e5\u2028") + token() + END + usage(2) + DONE


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_every_split_of_a_stream_says_the_same(follow: Follow, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [(0.0, STREAM[a:b]) for a, b in pairwise(edges) if b > a]
    assert follow(pieces) == follow([(0.0, STREAM)])


@settings(deadline=None)
@given(st.lists(st.integers(0, 400), max_size=8), st.sampled_from([16 + 15, 15]))
def test_every_split_of_a_compressed_stream_says_the_same(
    follow: Follow, cuts: list[int], wbits: int
) -> None:
    deflate = zlib.compressobj(wbits=wbits)
    packed = deflate.compress(STREAM) + deflate.flush()
    edges = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    pieces = [(0.0, packed[a:b]) for a, b in pairwise(edges) if b > a]
    headers = EVENTS | {"content-encoding": "gzip" if wbits > 15 else "deflate"}
    assert follow(pieces, headers) == follow([(0.0, STREAM)])


def test_a_compressed_event_is_there_when_its_bytes_are(follow: Follow) -> None:
    deflate = zlib.compressobj(wbits=31)
    first = deflate.compress(token()) + deflate.flush(zlib.Z_SYNC_FLUSH)
    rest = deflate.compress(token() + END + DONE) + deflate.flush()
    sample = follow([(1.0, first), (2.0, rest)], EVENTS | {"content-encoding": "gzip"})
    assert (sample.first_token_ns, sample.last_token_ns) == (1_000_000_000, 3_000_000_000)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [(b"nonsense", "gzip"), (STREAM, "br"), (STREAM, "zstd"), (STREAM, "gzip, gzip")],
)
def test_what_cannot_be_decompressed_is_told(follow: Follow, content: bytes, encoding: str) -> None:
    sample = follow([(1.0, content)], EVENTS | {"content-encoding": encoding})
    assert sample.fault == "bad_encoding"


def test_a_small_piece_that_unpacks_to_much_is_given_up_early(
    follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 60 MB in 60 KB, no more is unpacked than an answer may have."""
    unpacked = 0
    new = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self.inside = new(wbits)

        @property
        def unconsumed_tail(self) -> bytes:
            return self.inside.unconsumed_tail

        def decompress(self, raw: bytes, largest: int = 0) -> bytes:
            nonlocal unpacked
            content = self.inside.decompress(raw, largest)
            unpacked += len(content)
            return content

    packed = gzip.compress(b"\n" * (60 << 20))
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    sample = follow([(0.0, packed)], EVENTS | {"content-encoding": "gzip"})
    assert sample.fault == "too_large"
    assert unpacked < 2 << 20


@pytest.mark.parametrize(
    "pieces",
    [
        [(0.0, b"data: " + b"x" * (10 << 20) + b"\n\n")],
        [(0.0, b"x" * 65536)] * (2 * LONGEST_EVENT // 65536),
        [(0.0, token() * 500)] * 10_000,
        [(0.0, b": ping\n" * 9000)] * 10_000,
    ],
    ids=["a line of 10 MB", "a line without end", "tokens without end", "pings without end"],
)
def test_no_answer_takes_memory_without_end(follow: Follow, pieces: Pieces) -> None:
    taken = 0

    def counted() -> Any:
        nonlocal taken
        for piece in pieces:
            taken += len(piece[1]) if isinstance(piece[1], bytes) else 0
            yield piece

    assert follow(counted()).fault == "too_large"
    assert taken < 12 << 20 < LARGEST_ANSWER


@pytest.mark.parametrize(
    "pieces",
    [
        [(1.0, b"d"), *[(10.0, b"a")] * 1000],
        [(1.0, token()), *[(10.0, b": ping\n\n")] * 1000],
        [(100_000.0, token())],
    ],
    ids=["a byte at a time", "pings and nothing else", "silence"],
)
def test_a_slow_answer_is_given_up_at_the_deadline(follow: Follow, pieces: Pieces) -> None:
    sample = follow(pieces, deadline=60.0)
    assert (sample.fault, sample.end_ns) == ("timeout", 60_000_000_000)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (httpx.ReadError("reset"), "connection_lost"),
        (httpx.RemoteProtocolError("peer closed connection"), "connection_lost"),
        (httpx.ReadTimeout("slow"), "timeout"),
    ],
)
def test_a_connection_that_breaks_keeps_what_was_seen(
    follow: Follow, error: Exception, fault: str
) -> None:
    sample = follow([(1.0, token()), (1.0, error)])
    assert (sample.fault, sample.status, sample.chunks) == (fault, 200, 1)
    assert (sample.first_token_ns, sample.end_ns) == (1_000_000_000, 2_000_000_000)


LINES = '{"response": "a"}\n{"response": "b"}\n'
NDJSON = {"content-type": "application/x-ndjson"}
WHOLE = {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}


@pytest.mark.parametrize(
    ("content", "headers", "fault"),
    [
        (json.dumps(WHOLE), JSON, None),
        (json.dumps(WHOLE), {}, None),
        (json.dumps(WHOLE), {"content-type": "text/plain"}, None),
        (json.dumps({"object": "error", "message": "m"}), JSON, "error_event"),
        (json.dumps({"error": "m", "error_type": "validation"}), JSON, "error_event"),
        ("", JSON, "not_json"),
        ("<html></html>", {"content-type": "text/html"}, "not_json"),
        (LINES, JSON, "ndjson"),
        (LINES, NDJSON, "ndjson"),
        (json.dumps(WHOLE, indent=1), JSON, None),
        ("[" * 100_000, JSON, "not_json"),
        ('{"choices": []}', JSON, "no_tokens"),
    ],
)  # fmt: skip
def test_answers_that_are_no_stream(
    follow: Follow, content: str, headers: dict[str, str], fault: str | None
) -> None:
    sample = follow([(1.0, content.encode()), (1.0, b"")], headers or {"x": "y"})
    assert (sample.fault, sample.streamed) == (fault, False)
    if fault is None:
        assert sample.first_token_ns == sample.last_token_ns


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", ""])
@pytest.mark.parametrize("begin", [b"", b": ping\n\n", b"\nevent: message\n"])
def test_a_stream_under_another_name_is_read_as_one(
    follow: Follow, kind: str, begin: bytes
) -> None:
    headers = {"content-type": kind} if kind else {"x": "y"}
    sample = follow([(1.0, begin + token()), (1.0, token() + END + DONE)], headers)
    assert (sample.fault, sample.streamed, sample.chunks) == (None, True, 2)


@pytest.mark.parametrize("begin", [b"", b"\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b": ping\n\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_its_pieces_do_not_matter(follow: Follow, begin: bytes, size: int) -> None:
    body = begin + token() + token()
    pieces = [(0.1, body[at : at + size]) for at in range(0, len(body), size)]
    sample = follow([*pieces, (1.0, END + DONE)], {"content-type": "text/plain"})
    assert (sample.fault, sample.streamed, sample.chunks) == (None, True, 2)
    assert sample.first_token_ns is not None
    assert sample.last_token_ns is not None
    assert sample.first_token_ns < sample.last_token_ns


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("length", "length"),
        ("MAX_TOKENS", "MAX_TOKENS"),
        ("sk-secret-1", "other"),
        ("x" * 99, "other"),
        (5, None),
    ],
)
def test_a_finish_reason_is_a_word(follow: Follow, sent: object, kept: str | None) -> None:
    last = event({"choices": [{"delta": {}, "finish_reason": sent}]})
    assert follow([(1.0, token() + last + DONE)]).finish_reason == kept
