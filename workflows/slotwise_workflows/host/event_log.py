"""The events file: one JSON object a line, each line complete on the disk before the next step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO, TypeAlias

from slotwise_workflows.errors import InputError

Clock: TypeAlias = Callable[[], datetime]


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


class EventLog:
    """Numbers and writes the lines of one run.

    The only mutable state of a run: the number of the last line.
    """

    def __init__(self, stream: TextIO, now: Clock) -> None:
        self._stream = stream
        self._now = now
        self._seq = 0

    def write(self, event: str, **fields: object) -> None:
        """Append one line and hand it to the operating system.

        Raises:
            InputError: The file cannot be written any more, e.g. the disk is full.
        """
        self._seq += 1
        time = self._now().astimezone(UTC).isoformat(timespec="milliseconds")
        line = {"seq": self._seq, "time": time.replace("+00:00", "Z"), "event": event, **fields}
        try:
            self._stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            self._stream.flush()
        except OSError as error:
            raise _unwritable(Path(self._stream.name), error) from error


@contextmanager
def open_event_log(path: Path, now: Clock = utc_now) -> Iterator[EventLog]:
    """Starts an events file, and its folder where that is missing.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield EventLog(stream, now)
    finally:
        with suppress(OSError):  # a full disk was reported when the line was written
            stream.close()


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        "cannot write the events file",
        where=str(path),
        why=error.strerror or type(error).__name__,
        hint="Name a file in a writable folder with --events",
    )
