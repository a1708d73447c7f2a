"""The test server, started. What tests share beside fixtures are the modules in `shared`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from probe_server import Faults, Policy, running_server


@pytest.fixture
def serve() -> Iterator[Callable[..., object]]:
    """Starts a server: its policy's options and, in ``faults``, what it does wrong."""
    with _serving() as start:
        yield start


@pytest.fixture(scope="module")
def serve_once() -> Iterator[Callable[..., object]]:
    """The same, for what a module looks at from several sides."""
    with _serving() as start:
        yield start


@contextmanager
def _serving() -> Iterator[Callable[..., object]]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SLOTWISE_API_KEY"):
            patched.delenv(name, raising=False)
            patched.delenv(name.lower(), raising=False)

        def start(*, faults: dict[str, object] | None = None, **policy: object) -> object:
            known, wrong = Policy(**policy), Faults(**(faults or {}))  # type: ignore[arg-type]
            return stack.enter_context(running_server(known, wrong))

        yield start
