"""The console as a listener of the pipeline's events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from slotwise_cli.console import Console

if TYPE_CHECKING:
    from slotwise_workflows.events import Event, OnEvent


@contextmanager
def console_listener(console: Console) -> Iterator[OnEvent]:
    """Shows how far the step in hand is.

    Yields:
        What the pipeline tells its events.
    """
    from slotwise_workflows.events import Progress

    with console.progress("diagnose") as advance:

        def listen(event: Event) -> None:
            if isinstance(event, Progress):
                advance(event.done, event.total)

        yield listen
