from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest


@pytest.fixture
def serve(probe_server_module: Any) -> Iterator[Callable[..., object]]:
    """Starts a server: its policy's options and, in ``faults``, what it does wrong."""
    with _serving(probe_server_module) as start:
        yield start


@pytest.fixture(scope="module")
def serve_once(probe_server_module: Any) -> Iterator[Callable[..., object]]:
    """The same, for what a module looks at from several sides."""
    with _serving(probe_server_module) as start:
        yield start


@contextmanager
def _serving(module: Any) -> Iterator[Callable[..., object]]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SLOTWISE_API_KEY"):
            patched.delenv(name, raising=False)
            patched.delenv(name.lower(), raising=False)

        def start(*, faults: dict[str, object] | None = None, **policy: object) -> object:
            return stack.enter_context(
                module.running_server(module.Policy(**policy), module.Faults(**(faults or {})))
            )

        yield start
