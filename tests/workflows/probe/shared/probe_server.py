"""An OpenAI-compatible server of known policy: what a probe finds is held against it.

It generates words of nothing, a token a step. `Policy` says who is let in when; `Faults` what it
does wrong. It listens on the loopback interface, on a port of its own, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Policy:
    """Who is let in when, and what a step costs.

    Attributes:
        batching: continuous: at every step, while a slot is free. static: when nobody runs.
            dynamic: likewise, but a batch waits `delay_ms` for company unless it is full.
        slots: Requests at once; 1 is serial under any.
        release: static and dynamic only: when a member's answer ends, and whether it was streamed
            before.
        step_ms: How long a step takes.
        per_seq_ms: And how much longer with each request in it.
        replicas: Servers of this kind; each request goes to the one with the fewest.
        prefill_ms: And how much longer for each request let in with it.
        jitter: Standard deviation of a step's time over its mean; evenly distributed.
        delay_ms: dynamic only.
        order: fifo or shortest: who is let in first.
        chunk: Most tokens a request makes in a step (speculative decoding): 1 to `chunk`, evenly.
        seed: Of the jitter and the chunks.
    """

    batching: str = "continuous"
    slots: int = 16
    release: str = "own"
    step_ms: float = 8.0
    per_seq_ms: float = 0.0
    replicas: int = 1
    prefill_ms: float = 0.0
    jitter: float = 0.0
    delay_ms: float = 0.0
    order: str = "fifo"
    chunk: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Faults:
    """What the server does wrong, or otherwise than others."""

    key: str | None = None  # refuses every other one
    fail: dict[int, int] = field(default_factory=dict)  # status by number of request, from 1
    location: str = ""
    chat: bool = True
    completions: bool = True
    models: tuple[str, ...] = ("test-model",)
    stream: bool = True
    stream_options: bool = True  # False: refuses them with 400
    usage: bool = True
    done: bool = True
    stop_after: int | None = None  # ends by itself after so many tokens
    at_least: int = 0  # answers with so many tokens, whatever was asked for
    error_after: int | None = None  # an error event after so many tokens
    drop_after: int | None = None  # closes the connection after so many tokens
    crlf: bool = False
    comments: bool = False
    buffer: bool = False  # a proxy that passes a stream on when it has ended
    prefix: str = "/v1"
    owned_by: str = "somebody"
    entry: dict[str, object] = field(default_factory=dict)  # more about each model listed
    headers: dict[str, str] = field(default_factory=dict)  # of every whole answer
    pages: dict[str, object] = field(default_factory=dict)  # what further paths hold
    moved: dict[str, str] = field(default_factory=dict)  # where a path leads to
    known: frozenset[str] | None = None  # refuses a body with any other field, by name
    mute: bool = False  # refuses without a name
    one_by_one: bool = False  # names the first such field only
    refusal: int = 400
    encoding: str = ""  # gzip: compresses, whatever was asked for
    per_chunk: int = 1  # tokens in a chunk
    reset_after: int | None = None  # resets the connection after so many tokens
    body: bytes | None = None  # answers with this, as it stands
    content_type: str = "text/event-stream; charset=utf-8"
    endless: bool = False  # again and again


@dataclass
class Job:
    tokens: int
    out: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    made: int = 0
    since: float = 0.0

    def put(self, tokens: int) -> None:
        for _ in range(tokens):
            self.out.put_nowait("token")

    def end(self) -> None:
        self.out.put_nowait("end")


class Engine:
    """One server's slots and the queue before them."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.most = 0
        self.wake = asyncio.Event()
        self.random = random.Random(policy.seed)

    @property
    def load(self) -> int:
        return len(self.waiting) + len(self.running)

    def submit(self, job: Job) -> None:
        job.since = asyncio.get_running_loop().time()
        self.waiting.append(job)
        self.wake.set()

    async def run(self) -> None:
        while True:
            if not self.running and not self.waiting:
                await self.news()
            if self.policy.batching == "dynamic" and not self.running:
                await self.gather()
            admitted = self.admit()
            size = len(self.running)
            self.most = max(self.most, size)
            await asyncio.sleep(self.step_s(size, admitted))
            self.step()

    async def news(self) -> None:
        self.wake.clear()
        await self.wake.wait()

    async def gather(self) -> None:
        """Until the batch is full or its first member has waited for the delay."""
        loop = asyncio.get_running_loop()
        due = self.waiting[0].since + self.policy.delay_ms / 1000
        while len(self.waiting) < self.policy.slots and loop.time() < due:
            try:
                async with asyncio.timeout_at(due):
                    await self.news()
            except TimeoutError:
                return

    def step_s(self, size: int, admitted: int) -> float:
        policy = self.policy
        mean = policy.step_ms + policy.per_seq_ms * size + policy.prefill_ms * admitted
        half = policy.jitter * 3**0.5  # an even distribution of this standard deviation
        return mean / 1000 * max(0.05, 1 + self.random.uniform(-half, half))

    def admit(self) -> int:
        at_once = self.policy.batching in {"static", "dynamic"}
        if at_once and self.running:
            return 0
        if self.policy.order == "shortest":
            self.waiting.sort(key=lambda job: job.tokens)
        free = max(0, self.policy.slots - len(self.running))
        admitted = self.waiting[:free]
        self.running += admitted
        self.waiting = self.waiting[free:]
        return len(admitted)

    def step(self) -> None:
        policy = self.policy
        at_once = policy.batching in {"static", "dynamic"}
        together = at_once and policy.release == "batch"
        for job in self.running:
            if job.made >= job.tokens:
                continue  # padding
            more = 1 if policy.chunk == 1 else self.random.randint(1, policy.chunk)
            more = min(more, job.tokens - job.made)
            job.made += more
            if not together:
                job.put(more)
                if job.made == job.tokens:
                    job.end()
        left = [job for job in self.running if job.made < job.tokens]
        if together and not left:
            for job in self.running:
                job.put(job.tokens)
                job.end()
        if left and at_once:
            return  # the batch ends with its longest
        self.running = left


class Server:
    """A running server.

    Attributes:
        url: Its address.
        requests: What came in: the path, the headers and the body of each generating request.
        targets: The target of every request, a generating one or not, with its query.
        most: Requests it had running at once.
    """

    def __init__(self, policy: Policy, faults: Faults) -> None:
        self.policy = policy
        self.faults = faults
        self.requests: list[tuple[str, dict[str, str], dict[str, object]]] = []
        self.targets: list[str] = []
        self.engines = [Engine(policy) for _ in range(policy.replicas)]
        self.url = ""

    @property
    def most(self) -> int:
        return max(engine.most for engine in self.engines)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target = head[0].split(" ")[:2]
        path = target.partition("?")[0]
        self.targets.append(target)
        headers = {name.lower(): value for name, value in (h.split(": ", 1) for h in head[1:] if h)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        faults = self.faults
        if faults.key is not None and headers.get("authorization") != f"Bearer {faults.key}":
            return await self.whole(writer, 401, {"error": {"message": f"bad key {headers}"}})
        if method == "GET":
            return await self.page(writer, path)
        body = json.loads(raw)
        self.requests.append((path, headers, body))
        status = faults.fail.get(len(self.requests), 200)
        chat = path == f"{faults.prefix}/chat/completions"
        if not (
            faults.chat if chat else faults.completions and path == f"{faults.prefix}/completions"
        ):
            status = 404
        if "stream_options" in body and not faults.stream_options:
            status = 400
        if status != 200:
            return await self.whole(writer, status, {"error": {"message": "no"}})
        unknown = [] if faults.known is None else sorted(fields_of(body) - faults.known)
        unknown = [
            name for name in unknown if name.partition(".")[0] not in unknown or name in body
        ]
        if unknown:
            unknown = unknown[:1] if faults.one_by_one else unknown
            named = "no" if faults.mute else f"Unrecognized: {', '.join(unknown)}"
            return await self.whole(writer, faults.refusal, {"error": {"message": named}})
        if faults.body is not None:
            return await self.as_it_stands(writer, faults.body)
        await self.generate(writer, body, chat=chat)
        return None

    async def page(self, writer: asyncio.StreamWriter, path: str) -> None:
        faults = self.faults
        if path in faults.moved:
            moved = {"location": faults.moved[path]}
            return await self.whole(writer, 307, {}, more=moved)
        if path in faults.pages:
            return await self.whole(writer, 200, faults.pages[path])
        if not path.endswith("/models") or path.startswith("/api/") or not faults.models:
            return await self.whole(writer, 404, {"error": {}})
        entry = {"object": "model", "owned_by": faults.owned_by, **faults.entry}
        listed = [{"id": model, **entry} for model in faults.models]
        return await self.whole(writer, 200, {"object": "list", "data": listed})

    async def as_it_stands(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        kind = self.faults.content_type
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n".encode())
        if self.faults.encoding:
            writer.write(f"content-encoding: {self.faults.encoding}\r\n".encode())
        writer.write(b"connection: close\r\n\r\n")
        writer.write(body)
        await writer.drain()
        while self.faults.endless:
            writer.write(body)
            await writer.drain()

    async def generate(
        self, writer: asyncio.StreamWriter, body: dict[str, object], *, chat: bool
    ) -> None:
        asked = int(str(body.get("max_completion_tokens", body.get("max_tokens"))))
        job = Job(max(self.faults.at_least, min(asked, self.faults.stop_after or asked)))
        min(self.engines, key=lambda engine: engine.load).submit(job)
        streams = bool(body.get("stream")) and self.faults.stream
        options = body.get("stream_options")
        told = options if isinstance(options, dict) and self.faults.usage else {}
        writing = Writing(writer, self.faults, chat=chat)
        if streams:
            writing.begin()
        made = 0
        while await job.out.get() == "token":
            made += 1
            if made == self.faults.drop_after:
                return None
            if made == self.faults.reset_after:
                return self.reset(writer)
            if made == self.faults.error_after:
                writing.event({"error": {"message": "out of memory"}})
                return None
            if streams and (made % self.faults.per_chunk == 0 or made == job.tokens):
                writing.token(usage_of(made) if told.get("continuous_usage_stats") else None)
                await writer.drain()
        if not streams:
            message = {"message": {"content": "x"}} if chat else {"text": "x"}
            choice = {**message, "finish_reason": "length"}
            return await self.whole(writer, 200, {"choices": [choice], "usage": usage_of(made)})
        writing.finish(usage_of(made) if told.get("include_usage") else None)
        await writer.drain()
        return None

    def reset(self, writer: asyncio.StreamWriter) -> None:
        """Not closed but reset, as by a process that dies: what was under way is lost."""
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    async def whole(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: object,
        *,
        more: dict[str, str] | None = None,
    ) -> None:
        content = json.dumps(body).encode()
        headers = {"content-type": "application/json", **self.faults.headers, **(more or {})}
        if 300 <= status < 400 and self.faults.location:
            headers["location"] = self.faults.location
        if self.faults.encoding == "gzip":
            content = gzip.compress(content)
            headers["content-encoding"] = "gzip"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(
            f"HTTP/1.1 {status} Text\r\n{lines}"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n".encode()
            + content
        )
        await writer.drain()


def fields_of(body: dict[str, object]) -> set[str]:
    """The names of a body's fields, those within an object with a dot."""
    inner = {
        f"{name}.{key}" for name, value in body.items() if isinstance(value, dict) for key in value
    }
    return {*body, *inner}


def usage_of(made: int) -> dict[str, object]:
    details = {"cached_tokens": 0}
    return {"prompt_tokens": 40, "completion_tokens": made, "prompt_tokens_details": details}


class Writing:
    """An event stream in the server's dialect."""

    def __init__(self, writer: asyncio.StreamWriter, faults: Faults, *, chat: bool) -> None:
        self.writer = writer
        self.faults = faults
        self.chat = chat
        self.held = b""
        self.eol = "\r\n" if faults.crlf else "\n"
        self.deflate = zlib.compressobj(wbits=31) if faults.encoding == "gzip" else None

    def begin(self) -> None:
        encoding = "content-encoding: gzip\r\n" if self.deflate is not None else ""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {self.faults.content_type}\r\n{encoding}"
        self.writer.write(f"{head}connection: close\r\n\r\n".encode())
        if self.faults.comments:
            self.send(f": ping{self.eol}{self.eol}".encode())

    def event(self, data: object) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.send(f"data: {text}{self.eol}{self.eol}".encode())

    def token(self, usage: object = None) -> None:
        choice = {"index": 0, **self.content("x"), "finish_reason": None}
        self.event({"choices": [choice], **({} if usage is None else {"usage": usage})})

    def content(self, text: str) -> dict[str, object]:
        return {"delta": {"content": text}} if self.chat else {"text": text}

    def finish(self, usage: object) -> None:
        self.event({"choices": [{"index": 0, **self.content(""), "finish_reason": "length"}]})
        if usage is not None:
            self.event({"choices": [], "usage": usage})
        if self.faults.done:
            self.event("[DONE]")
        if self.held:
            self.writer.write(self.held)
        if self.deflate is not None:
            self.writer.write(self.deflate.flush())

    def send(self, content: bytes) -> None:
        if self.deflate is not None:
            content = self.deflate.compress(content) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
        if self.faults.buffer:
            self.held += content
        else:
            self.writer.write(content)


@contextmanager
def running_server(policy: Policy, faults: Faults) -> Iterator[Server]:
    """The server, for as long as the block lasts."""
    ready = threading.Event()
    stop: list[asyncio.Event] = []
    loops: list[asyncio.AbstractEventLoop] = []
    servers: list[Server] = []

    async def serve() -> None:
        server = Server(policy, faults)
        stop.append(asyncio.Event())
        loops.append(asyncio.get_running_loop())
        listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        engines = [asyncio.create_task(engine.run()) for engine in server.engines]
        servers.append(server)
        ready.set()
        await stop[0].wait()
        for engine in engines:
            engine.cancel()
        listener.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield servers[0]
    finally:
        loops[0].call_soon_threadsafe(stop[0].set)
        thread.join(10)
