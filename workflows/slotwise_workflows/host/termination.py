"""A host stops a run with SIGTERM (Ctrl-Break on Windows); it then ends as Ctrl-C ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
)


@contextmanager
def restored_handlers() -> Iterator[None]:
    """Puts the signal handlers back as they were, whatever happens inside."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        if _in_main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def stoppable() -> Iterator[None]:
    """Turns the first stop signal into KeyboardInterrupt; afterwards is deaf to all of them.

    Being deaf after the work lets a run write its last event undisturbed. Only the main thread may
    set handlers; elsewhere nothing changes.
    """
    if not _in_main_thread():
        yield
        return
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        _ignore_all()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ignore_all()
    raise KeyboardInterrupt


def _ignore_all() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
