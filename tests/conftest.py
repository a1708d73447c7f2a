"""What all tests share: Ctrl-C that works, and pictures that are drawn once.

Drawing is most of what a report takes.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import vl_convert

Draw = Callable[..., str]


@pytest.fixture(autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """A command that has ended ignores Ctrl-C; the test run goes on and must not."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(scope="session", autouse=True)
def charts_drawn_once() -> Iterator[Draw]:
    """Answers from memory if the very same specification was drawn before; gives the renderer."""
    draw: Draw = vl_convert.vegalite_to_svg
    drawn: dict[str, str] = {}

    def once(spec: dict[str, Any], **options: Any) -> str:
        key = json.dumps([spec, options])
        if key not in drawn:
            drawn[key] = draw(spec, **options)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", once)
        yield draw


@pytest.fixture
def charts_drawn_anew(charts_drawn_once: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of drawing itself, and that the same result is drawn the same."""
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", charts_drawn_once)
