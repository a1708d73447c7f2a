"""Padded static batching: a loop around transformers' ``generate``, behind the completions API.

python docs/validation/padded_server.py MODEL_DIR PORT [--slots 8] [--release own|batch]

Needs torch and transformers, which this project does not install. What waits when a batch has ended
is the next one, padded on the left to its longest prompt, and generates until its longest answer is
done. With ``own`` each member's tokens are streamed and its answer ends with its last one; with
``batch`` all answers are sent when the batch has ended.
"""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from transformers import AutoModelForCausalLM

_END = None


@dataclass
class Job:
    """A request; its tokens are put into ``out``, and then the end."""

    prompt: list[int]
    tokens: int
    out: queue.Queue[int | None] = field(default_factory=queue.Queue)


def watch(jobs: list[Job]) -> Callable[..., Any]:
    """Returns what ``generate`` calls after each step: it passes each row's own tokens on."""
    steps = itertools.count(1)

    def after_step(ids: Any, _scores: Any, **_: Any) -> Any:
        made = next(steps)
        for job, token in zip(jobs, ids[:, -1].tolist(), strict=True):
            if made <= job.tokens:
                job.out.put(token)
            if made == job.tokens:
                job.out.put(_END)
        return torch.zeros(len(jobs), dtype=torch.bool)  # nobody stops before the longest

    return after_step


def run(model: Any, waiting: queue.Queue[Job], slots: int, *, own: bool) -> None:
    """Serves batch after batch."""
    while True:
        jobs = [waiting.get()]
        while len(jobs) < slots and not waiting.empty():
            jobs.append(waiting.get())
        width = max(len(job.prompt) for job in jobs)
        longest = max(job.tokens for job in jobs)
        rows = [[0] * (width - len(job.prompt)) + job.prompt for job in jobs]
        mask = [[0] * (width - len(job.prompt)) + [1] * len(job.prompt) for job in jobs]
        began = time.perf_counter()
        out = model.generate(
            torch.tensor(rows),
            attention_mask=torch.tensor(mask),
            max_new_tokens=longest,
            min_new_tokens=longest,
            do_sample=False,
            stopping_criteria=[watch(jobs)] if own else [],
        )
        took = time.perf_counter() - began
        print(f"batch of {len(jobs)}: {longest} steps in {took:.2f} s", flush=True)
        if not own:
            for job, row in zip(jobs, out.tolist(), strict=True):
                for token in row[width : width + job.tokens]:
                    job.out.put(token)
                job.out.put(_END)


def handler(waiting: queue.Queue[Job], vocabulary: int) -> type[BaseHTTPRequestHandler]:
    """Returns what answers requests. A prompt's characters are its tokens, a token is a word."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send(200, "application/json", json.dumps({"data": [{"id": "padded"}]}).encode())

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.endswith("/v1/completions"):
                self.send(404, "application/json", b"{}")
                return
            job = Job([3 + ord(c) % (vocabulary - 3) for c in asked["prompt"]], asked["max_tokens"])
            waiting.put(job)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            while (token := job.out.get()) is not _END:
                self.event({"choices": [{"index": 0, "text": f" w{token}"}]})
            usage = {"completion_tokens": job.tokens, "prompt_tokens": len(job.prompt)}
            self.event({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})
            self.event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def event(self, content: object) -> None:
            body = json.dumps(content, separators=(",", ":")).encode()
            self.wfile.write(b"data: " + body + b"\n\n")

        def send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--release", choices=["own", "batch"], default="own")
    options = parser.parse_args()
    torch.set_num_threads(1)
    loaded = AutoModelForCausalLM.from_pretrained(options.model)
    jobs_waiting: queue.Queue[Job] = queue.Queue()
    own_end = options.release == "own"
    threading.Thread(
        target=run,
        args=(loaded, jobs_waiting, options.slots),
        kwargs={"own": own_end},
        daemon=True,
    ).start()
    server = ThreadingHTTPServer(
        ("127.0.0.1", options.port), handler(jobs_waiting, loaded.config.vocab_size)
    )
    server.serve_forever()
