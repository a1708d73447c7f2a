"""llama.cpp's own HTTP server, out of the wheel `xllamacpp`; on the loopback interface.

python tests/engine/llama_server.py MODEL.gguf --slots 8 [--no-cont-batching] [--port 0]

Prints its URL when it can be asked, and ends when its standard input does. With `cont_batching` it
lets a prompt in at every step while a slot is free; without, only when no slot generates, which is
static batching; with one slot it serves by turn.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import xllamacpp


def parameters(
    model: Path, *, slots: int, cont_batching: bool, slot_context: int, port: int
) -> Any:
    """Returns llama.cpp's parameters: one thread, no prompt remembered, metrics to be read."""
    chosen = xllamacpp.CommonParams()
    chosen.model.path = str(model)
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = port
    chosen.n_parallel = slots
    chosen.n_ctx = slot_context * slots
    chosen.kv_unified = False
    chosen.cont_batching = cont_batching
    # One thread: the client needs the other core, or it measures itself.
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = 1
    chosen.n_threads_http = 4 * slots + 32  # every request in the queue holds one
    chosen.endpoint_metrics = True
    chosen.n_gpu_layers = 0
    chosen.fit_params = False
    chosen.cache_prompt = False
    chosen.cache_idle_slots = False
    chosen.cache_ram_mib = 0
    chosen.n_ctx_checkpoints = 0
    return chosen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--no-cont-batching", action="store_true")
    parser.add_argument("--slot-context", type=int, default=4096)
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    server = xllamacpp.Server(
        parameters(
            asked.model,
            slots=asked.slots,
            cont_batching=not asked.no_cont_batching,
            slot_context=asked.slot_context,
            port=asked.port,
        )
    )
    print(server.listening_address, flush=True)  # noqa: T201
    sys.stdin.read()
