"""`slotwise probe` on llama.cpp's own server, whose batching is known by how it was started.

The engine's own counters say what it did; nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from tests.engine.conftest import Llama, Serve

KINDS: dict[str, dict[str, Any]] = {
    "continuous": {"slots": 8, "cont_batching": True},
    "static": {"slots": 8, "cont_batching": False},
    "serial": {"slots": 1, "cont_batching": True},
}
LONG, SHORTS = 400, (20, 40, 60)


pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("continuous", LONG),  # all beside the long one
        ("static", LONG + max(SHORTS)),  # after it, together
        ("serial", LONG + sum(SHORTS)),  # after it, by turn
    ],
)
def test_the_engine_batches_as_it_was_told(serve: Serve, kind: str, steps: int) -> None:
    """Without this the probe might be held against a wrong truth."""
    llama = serve(**KINDS[kind])
    seen = asyncio.run(_long_and_shorts(llama.url))
    counted = llama.counts()
    assert counted.output_tokens == LONG + sum(SHORTS)
    assert counted.steps == steps
    begun = [seen.index(("first", tokens)) for tokens in SHORTS]
    ended = seen.index(("end", LONG))
    assert [first < ended for first in begun] == [kind == "continuous"] * len(SHORTS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_probe_tells_how_it_batches(serve: Serve, kind: str) -> None:
    llama = serve(**KINDS[kind])
    said = _probed(llama)
    found = said[-1]
    assert found["batching"] == kind, found["reason"]
    assert found["release"] == ("own" if kind == "static" else None)
    assert 1 <= found["slots_at_least"] <= KINDS[kind]["slots"]
    counted = llama.counts()
    # All that was spent is told, and it is no more than was announced.
    assert counted.output_tokens == sum(one["output_tokens"] for one in said)
    for one in said:
        assert one["output_tokens"] <= one["plan"]["output_tokens"]
        assert one["requests_sent"] <= one["plan"]["requests"]
    # Each slot makes a token a step: by turn there are as many steps as tokens, else fewer.
    assert (counted.steps == counted.output_tokens) == (kind == "serial")
    assert (counted.busy == 1) == (kind == "serial")


def _probed(llama: Llama) -> list[dict[str, Any]]:
    """What `slotwise probe --json` says of a server, until it says something.

    On a machine that is busy with other work the times vary, and it rightly leaves the answer open.
    """
    said: list[dict[str, Any]] = []
    while not said or (said[-1]["batching"] == "undetermined" and len(said) < 3):
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from slotwise_cli.app import main; main()"),
                *("probe", llama.url, "--yes", "--json", "--trials", "1", "--no-cost"),
                *("--max-requests", "80", "--max-tokens-total", "12000"),
            ],
            capture_output=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        said.append(json.loads(done.stdout))
    return said


async def _long_and_shorts(url: str) -> list[tuple[str, int]]:
    """Sends the shorts once the long one has its first token.

    Returns:
        First tokens and ends as they came, each with the length of its request.
    """
    seen: list[tuple[str, int]] = []
    begun = asyncio.Event()

    async def send(client: httpx.AsyncClient, tokens: int) -> None:
        body = {"prompt": f"{tokens} words", "max_tokens": tokens, "stream": True}
        async with client.stream("POST", f"{url}/v1/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data:") and ("first", tokens) not in seen:
                    seen.append(("first", tokens))
                    begun.set()
        seen.append(("end", tokens))

    async with httpx.AsyncClient(timeout=60) as client, asyncio.TaskGroup() as group:
        group.create_task(send(client, LONG))
        await begun.wait()
        for tokens in SHORTS:
            group.create_task(send(client, tokens))
    return seen
