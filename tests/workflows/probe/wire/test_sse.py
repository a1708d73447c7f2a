from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.probe.wire.sse import LONGEST_EVENT, Event, EventStream, EventTooLong

HARD = (
    b"\xef\xbb\xbf: ping\r\n\r\ndata: one\r\n\r\n"
    b"data:two\ndata: lines\n\nevent: error\rdata: three\r"
    b"\rid: 7\nretry: 10\n\ndata\n\ndata:  indented\n\n: ping\n\n"
    + 'data: {"s": "\u2028\u65e5\u672c"}\n\n'.encode()
    + b"data: [DONE]\n\ndata: cut off"
)
HARD_EVENTS = [
    Event("one"),
    Event("two\nlines"),
    Event("three", "error"),
    Event(""),
    Event(" indented"),
    Event('{"s": "\u2028\u65e5\u672c"}'),
    Event("[DONE]"),
    Event("cut off", complete=False),
]


def events_of(*chunks: bytes) -> list[Event]:
    stream = EventStream()
    found = [event for chunk in chunks for event in stream.feed(chunk)]
    return found + stream.close()


def test_several_events_in_one_chunk() -> None:
    assert events_of(HARD) == HARD_EVENTS


@pytest.mark.parametrize("cut", range(len(HARD) + 1))
def test_split_at_every_byte(cut: int) -> None:
    assert events_of(HARD[:cut], HARD[cut:]) == HARD_EVENTS


def test_a_byte_at_a_time() -> None:
    assert events_of(*(HARD[i : i + 1] for i in range(len(HARD)))) == HARD_EVENTS


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=5
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_any_data_comes_through_any_split(texts: list[str], eol: str, data: st.DataObject) -> None:
    content = "".join(f"data: {text}{eol}{eol}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    edges = [0, *cuts, len(content)]
    chunks = [content[a:b] for a, b in pairwise(edges)]
    assert events_of(*chunks) == [Event(text) for text in texts]


def test_an_event_goes_out_with_the_byte_that_completes_it() -> None:
    stream = EventStream()
    assert stream.feed(b"data: a\r\n") == []
    assert stream.feed(b"\r") == [Event("a")]
    assert stream.feed(b"\ndata: b\n\n") == [Event("b")]
    assert stream.close() == []


@pytest.mark.parametrize("line", [b"x" * 70_000, b"data: " + b"x" * 70_000 + b"\n"])
def test_memory_is_bounded(line: bytes) -> None:
    stream = EventStream()
    for _ in range(LONGEST_EVENT // len(line)):
        stream.feed(line)
    with pytest.raises(EventTooLong, match="longer than"):
        stream.feed(line * 2)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(content: bytes) -> None:
    for event in events_of(content):
        json.dumps(event.data)
