"""Server-sent events out of bytes, by the WHATWG specification.

https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6. One thing is done
otherwise: an event that the end of the stream cuts off is given out and marked, where a browser
drops it, because some servers end their stream without the last blank line.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

LONGEST_EVENT = 1 << 20
"""Bytes of one event; more is not an answer of a language model."""


class EventTooLong(ValueError):  # noqa: N818 - says what is wrong with the stream
    """An event is longer than `LONGEST_EVENT`."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Attributes:
        data: Its data lines, joined by newlines.
        name: Its type; ``message`` if the stream names none.
        complete: False where the stream ended before the blank line that ends an event.
    """

    data: str
    name: str = "message"
    complete: bool = True


class EventStream:
    """Takes the bytes as they come, gives the events as they are complete.

    Where a chunk of bytes begins and ends means nothing: a line's end, a character or an event may
    be split anywhere. Comments (``: ping``), identifiers and retry times are passed over.
    """

    def __init__(self) -> None:
        self._line = bytearray()  # the line that has not ended yet
        self._data: list[bytes] = []
        self._size = 0
        self._name = b""
        self._after_cr = False  # a LF now belongs to the line that CR ended
        self._first = True

    def feed(self, chunk: bytes) -> list[Event]:
        """Takes some bytes.

        Args:
            chunk: As they came.

        Returns:
            The events that these bytes completed.

        Raises:
            EventTooLong: The stream holds an event that no server means.
        """
        events: list[Event] = []
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        pieces = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        for ended in pieces[:-1]:
            self._line += ended
            self._take_line(events)
        self._line += pieces[-1]
        self._check(len(self._line))
        return events

    def close(self) -> list[Event]:
        """The stream has ended.

        Returns:
            The event that was not complete, if it has data.
        """
        events: list[Event] = []
        if self._line:
            self._take_line(events)
        if self._data:
            events.append(self._event(complete=False))
        return events

    def _take_line(self, events: list[Event]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            line = line.removeprefix(codecs.BOM_UTF8)
            self._first = False
        if not line:
            if self._data:
                events.append(self._event(complete=True))
            self._data, self._size, self._name = [], 0, b""
            return
        field, _colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            self._check(self._size)
        elif field == b"event":
            self._name = value

    def _event(self, *, complete: bool) -> Event:
        data = b"\n".join(self._data).decode("utf-8", "replace")
        name = self._name.decode("utf-8", "replace") or "message"
        return Event(data, name, complete)

    def _check(self, size: int) -> None:
        if size > LONGEST_EVENT:
            raise EventTooLong(f"an event is longer than {LONGEST_EVENT} bytes")
