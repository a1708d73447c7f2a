"""What all tests share: Ctrl-C that works, pictures that are drawn once, a server to be probed.

Drawing is most of what a report takes.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
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


@pytest.fixture(scope="session")
def probe_server_module() -> ModuleType:
    """The probe's test server; the tests' folders are no packages."""
    name, path = "slotwise_test_server", Path(__file__).parent / "workflows/probe/server.py"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def charts_drawn_anew(charts_drawn_once: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of drawing itself, and that the same result is drawn the same."""
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", charts_drawn_once)
