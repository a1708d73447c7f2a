from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import pytest


def _server_module() -> ModuleType:
    """`server.py` beside this file; the tests' folders are no packages."""
    name = "slotwise_test_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("server.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def probe_server_module() -> ModuleType:
    """The test server's module."""
    return _server_module()


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
    module = _server_module()
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SLOTWISE_API_KEY"):
            patched.delenv(name, raising=False)
            patched.delenv(name.lower(), raising=False)

        def start(*, faults: dict[str, object] | None = None, **policy: object) -> object:
            return stack.enter_context(
                module.running_server(module.Policy(**policy), module.Faults(**(faults or {})))
            )

        yield start
