"""How exactly the load generator sends, and what it costs itself.

    uv run benchmarks/load_generator.py [SECONDS]

A small server in a process of its own answers with an event stream of eight tokens, one every 20
ms. It is sent 50 requests a second by a schedule of Poisson arrivals, for SECONDS (20 if left out),
in three ways of waiting for an instant, and beyond that as many as this machine can. Ends with exit
code 1 if the generator's own way has a 99th percentile of its delay above 5 ms.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe

import numpy as np

from slotwise_sim.synthetic import poisson_arrivals
from slotwise_workflows.probe.load.generator import SPIN_S, Client, open_loop, sender
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.prompts import prompt_of
from slotwise_workflows.probe.wire.client import Connection, new_client
from slotwise_workflows.probe.wire.dialect import dialect_of
from slotwise_workflows.probe.wire.products import UNKNOWN
from slotwise_workflows.probe.wire.target import targets

TARGET_S = 0.005
TOKENS = 8
STEP_S = 0.02
RATE = 50.0
RATES = (100.0, 200.0, 400.0)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests of one connection, one after the other, each answered token by token."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            for _ in range(TOKENS):
                await asyncio.sleep(STEP_S)
                _event(writer, b'{"choices":[{"delta":{"content":"x"}}]}')
            _event(writer, b'{"choices":[{"delta":{},"finish_reason":"length"}]}')
            _event(writer, b"[DONE]")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _event(writer: asyncio.StreamWriter, data: bytes) -> None:
    event = b"data: " + data + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))


async def _serve(pipe: Pipe) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1024)
    pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


def _server(pipe: Pipe) -> None:
    asyncio.run(_serve(pipe))


@contextmanager
def running_server() -> Iterator[str]:
    """The server's URL, for as long as the block lasts."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_server, args=(there,))
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


async def _load(url: str, rate: float, seconds: float, spin_s: float) -> Sent:
    rng = np.random.default_rng(1)
    n = int(rate * seconds)
    requests = [Planned(f"r{k}", TOKENS, prompt_of(40, rng)) for k in range(n)]
    async with new_client(None) as http:
        connection = Connection(
            client=http,
            target=targets(url, "chat")[0],
            model="m",
            dialect=dialect_of(UNKNOWN, "m"),
            clock=time.perf_counter_ns,
            deadline=asyncio.get_running_loop().time() + seconds + 60,
        )
        client = Client(sender(connection, "replay"), spin_s=spin_s)
        await open_loop(client, requests[:20], np.zeros(20))  # opens connections
        return await open_loop(client, requests, poisson_arrivals(n, rate, rng))


def _row(name: str, sent: Sent) -> str:
    answered = [s for s in sent.samples if s.answered]
    delay = sent.client.dispatch_delay_s
    lag = sent.client.loop_lag_s
    assert delay is not None
    assert lag is not None
    firsts_s = [
        (s.first_token_ns - s.sent_ns) / 1e9 for s in answered if s.first_token_ns is not None
    ]
    cells = [delay.p50, delay.p95, delay.p99, delay.max, lag.p99, float(np.median(firsts_s))]
    told = " | ".join(f"{1000 * cell:.2f}" for cell in cells)
    why = ", ".join(sent.client.bottleneck) or "-"
    failed = len(sent.samples) - len(answered)
    return f"| {name} | {told} | {sent.client.busy_share:.2f} | {failed} | {why} |"


def main() -> int:
    """Prints the table; the exit code."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    print("| milliseconds | p50 | p95 | p99 | max | lag p99 | TTFT | busy | failed | bottleneck |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    ways = {"asleep to the instant": 0.0, "awake at the end": SPIN_S, "awake for 20 ms": 0.02}
    delays = {}
    with running_server() as url:
        for name, spin_s in ways.items():
            sent = asyncio.run(_load(url, RATE, seconds, spin_s))
            print(_row(f"{RATE:g}/s, {name}", sent))
            delays[name] = sent.client.dispatch_delay_s
        for rate in RATES:
            print(_row(f"{rate:g}/s", asyncio.run(_load(url, rate, min(seconds, 5.0), SPIN_S))))
    own = delays["awake at the end"]
    return int(own is None or own.p99 > TARGET_S)


if __name__ == "__main__":
    sys.exit(main())
