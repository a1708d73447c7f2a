"""A real engine to look at: llama.cpp's server with a small model of random weights.

On Linux the wheel is there and these tests run; elsewhere they are skipped.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_COUNTER = re.compile(r"^llamacpp:(\w+) (\S+)$", re.MULTILINE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips where the wheel is not to be had; on Linux a missing wheel is a failure."""
    if sys.platform == "linux" or importlib.util.find_spec("xllamacpp"):
        return
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.skip(reason="xllamacpp is installed on Linux alone"))


@dataclass(frozen=True)
class Counts:
    """What the engine itself has counted.

    Attributes:
        steps: Calls of `llama_decode`; a prompt's last part is in the one that gives its first
            token.
        prompt_tokens: Of all prompts.
        output_tokens: Of all answers.
        busy: Slots with a request in a step, generating or waiting, on average.
    """

    steps: int
    prompt_tokens: int
    output_tokens: int
    busy: float


@dataclass(frozen=True)
class Llama:
    """A running server."""

    url: str

    def counts(self) -> Counts:
        """Reads `/metrics`."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            found = dict(_COUNTER.findall(answer.read().decode()))
        return Counts(
            steps=int(found["n_decode_total"]),
            prompt_tokens=int(found["prompt_tokens_total"]),
            output_tokens=int(found["tokens_predicted_total"]),
            busy=float(found["n_busy_slots_per_decode"]),
        )


Serve = Callable[..., Llama]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, written once."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    subprocess.run([sys.executable, HERE / "tiny_model.py", path], check=True, timeout=120)
    return path


@pytest.fixture
def serve(model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a server with some slots, that refills them at once or not."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SLOTWISE_API_KEY", raising=False)
    with ExitStack() as stack:

        def start(*, slots: int, cont_batching: bool = True) -> Llama:
            return stack.enter_context(_running(model, slots, cont_batching=cont_batching))

        yield start


@contextmanager
def _running(model: Path, slots: int, *, cont_batching: bool) -> Iterator[Llama]:
    program = str(HERE / "llama_server.py")
    command = [sys.executable, program, str(model), "--slots", str(slots)]
    if not cont_batching:
        command.append("--no-cont-batching")
    log = model.with_name(f"server-{slots}-{cont_batching}.log")
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            assert url, log.read_text(errors="replace")[-2000:]
            yield Llama(url)
        finally:
            server.stdin.close()  # it ends by itself
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                raise
