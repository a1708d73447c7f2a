"""Measures llama.cpp's own server, request by request: ``probe_engines.csv``.

uv run docs/validation/engine_load.py OUT.csv    # about five minutes on two cores
"""

from __future__ import annotations

import asyncio
import csv
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

ENGINE = Path(__file__).parents[2] / "tests" / "engine"
SERVERS: dict[str, tuple[str, ...]] = {"continuous": (), "static": ("--no-cont-batching",)}
SLOTS = 8
RUNS = 3
UP_FRONT = 64
AT_ONCE = {1: 6, 2: 10, 4: 16, 8: 24}
"""Requests sent for the calibration, by how many are kept under way; there and back again."""
_USAGE = re.compile(rb'"completion_tokens":(\d+),"prompt_tokens":(\d+)')


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    prompt: str
    tokens: int


@dataclass(frozen=True)
class Row:
    """One request, measured; seconds, since the recording began where they are instants.

    Attributes:
        server: How the server batches.
        sent_for: ``users``, each sends when its own answer has ended; ``groups``, each sent when
            all of the one before has; ``mixed`` or ``equal`` lengths, all sent up front.
        run: Which run; for ``users`` and ``groups`` how many requests were under way.
        arrival_s: When it was sent.
        ttft_s: From there to its first token.
        latency_s: From there to its end.
        prompt_tokens: As the server counts them.
        output_tokens: Likewise.
    """

    server: str
    sent_for: str
    run: int
    arrival_s: float
    ttft_s: float
    latency_s: float
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Seen:
    """When a request was sent, gave its first token and ended, and its tokens."""

    sent_s: float
    first_s: float
    end_s: float
    prompt_tokens: int
    output_tokens: int


def draw(lengths: str, count: int, rng: np.random.Generator) -> list[Request]:
    """Draws requests: 85 % of 40 to 200 tokens and 15 % of 400 to 1,000, or all of 150."""
    short, long = rng.integers(40, 201, count), rng.integers(400, 1001, count)
    tokens = np.where(rng.random(count) < 0.85, short, long)
    if lengths == "equal":
        tokens = np.full(count, 150)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    prompts = [
        " ".join("".join(rng.choice(letters, 6)) for _ in range(words))
        for words in rng.integers(4, 17, count)
    ]
    return [Request(p, int(t)) for p, t in zip(prompts, tokens, strict=True)]


async def send(port: int, asked: Sequence[Request], at_once: int) -> list[Seen]:
    """Keeps ``at_once`` requests under way; each user sends the next when one has ended."""
    left = iter(asked)
    seen: list[Seen] = []

    async def user() -> None:
        for request in left:
            seen.append(await _ask(port, request))  # noqa: PERF401 - ends of all users, in order

    await asyncio.gather(*(user() for _ in range(at_once)))
    return seen


async def send_groups(port: int, asked: Sequence[Request], size: int) -> list[Seen]:
    """Sends group after group, each together, behind a short one that the server takes alone.

    A server that lets nobody join takes what waits, and users that send when their own answer has
    ended are never all waiting: two of them are served by turn.
    """
    seen: list[Seen] = []
    for start in range(0, len(asked), size):
        plug = asyncio.create_task(_ask(port, Request(asked[start].prompt, 16)))
        await asyncio.sleep(0.01)
        seen += await asyncio.gather(plug, *(_ask(port, r) for r in asked[start : start + size]))
    return seen


async def _ask(port: int, request: Request) -> Seen:
    """Sends one request; each event of llama.cpp's stream is a line of its own, and a token."""
    body = (
        f'{{"prompt":"{request.prompt}","max_tokens":{request.tokens},"stream":true,'
        '"stream_options":{"include_usage":true}}'
    )
    head = "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
    sent_s = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    instants = []
    async for line in reader:
        if line.startswith(b"data: [DONE]"):
            break
        if line.startswith(b"data: "):
            instants.append(time.perf_counter())
            last = line
    writer.close()
    usage = _USAGE.search(last)
    if usage is None or int(usage[1]) != request.tokens:
        raise RuntimeError(f"not what was asked for: {last[:300]!r}")
    return Seen(sent_s, instants[0], time.perf_counter(), int(usage[2]), int(usage[1]))


@contextmanager
def running(model: Path, options: Sequence[str]) -> Iterator[int]:
    """Starts a server; gives its port."""
    command = [sys.executable, str(ENGINE / "llama_server.py"), str(model), *options]
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        try:
            yield int(server.stdout.readline().rpartition(":")[2])
        finally:
            server.stdin.close()


def record() -> Iterator[Row]:
    """Measures both servers by turns, so that what else the machine does meets both."""
    rng = np.random.default_rng(1)
    began_s = time.perf_counter()
    there = list(AT_ONCE.items())
    both = [*there, *reversed(there)]  # each half has all, or a half tells nothing of the other
    runs = [
        ("mixed", way, at_once, count, at_once)
        for way in ("users", "groups")
        for at_once, count in both
    ]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model = Path(folder) / "tiny.gguf"
        command = [sys.executable, str(ENGINE / "tiny_model.py"), str(model)]
        subprocess.run(command, check=True)  # noqa: S603
        ports = {
            server: stack.enter_context(running(model, ("--slots", str(SLOTS), *options)))
            for server, options in SERVERS.items()
        }
        for lengths in ("mixed", "equal"):
            runs += [(lengths, lengths, run, UP_FRONT, UP_FRONT) for run in range(RUNS)]
        for lengths, sent_for, run, count, at_once in runs:
            asked = draw(lengths, count, rng)
            way = send_groups if sent_for == "groups" else send
            for server, port in ports.items():
                for seen in asyncio.run(way(port, asked, at_once)):
                    yield _row(server, sent_for, run, seen, began_s)
            print(sent_for, run, f"{time.perf_counter() - began_s:.0f} s", file=sys.stderr)


def _row(server: str, sent_for: str, run: int, seen: Seen, began_s: float) -> Row:
    return Row(
        server,
        sent_for,
        run,
        round(seen.sent_s - began_s, 4),
        round(seen.first_s - seen.sent_s, 4),
        round(seen.end_s - seen.sent_s, 4),
        seen.prompt_tokens,
        seen.output_tokens,
    )


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in fields(Row))
        table.writerows(astuple(row) for row in record())
