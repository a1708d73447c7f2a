"""An event loop that never waits: minutes take moments, and come out the same on any machine."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its clock jumps to the next timer."""

    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Jump(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> Any:
                # Nothing but timers ever wakes this loop: to ask the system would cost the most.
                assert timeout is not None, "everybody waits for nothing"
                loop.now += timeout
                return []

        super().__init__(Jump())

    def time(self) -> float:
        return self.now


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs anything on such a loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work())


def clock_ns() -> int:
    """The running loop's clock, as a client's."""
    return round(asyncio.get_running_loop().time() * 1e9)
