"""Ctrl-C stops a long replay, and nothing of it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from slotwise_sim import (
    Balancer,
    Binned,
    Continuous,
    Cost,
    Memory,
    PerToken,
    Policy,
    Step,
    Workload,
    simulate,
    watching,
)

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows sends no SIGINT to one process"
)

# A hundred thousand bins are looked through for every batch: minutes, if nobody stops it.
ENDLESS = """
import numpy as np
from slotwise_sim import *

n = 1_000_000
workload = Workload(np.zeros(n), np.arange(n) + 1, np.zeros(n, dtype=np.int64))
told = []

def on_progress(done, n):
    if not told:
        told.append(print("runs", flush=True))

simulate(workload, Binned(100_000), PerToken(1.0), slots=2, on_progress=on_progress)
print("ends")
"""


def test_ctrl_c_ends_a_process_that_replays() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in the background with SIGINT ignored, which would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGINT)
        told, fault = process.communicate(timeout=120)
    assert told == ""
    assert fault.strip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    ("policy", "cost", "memory", "balancer"),
    [
        (Binned(1000), PerToken(1.0), None, "round_robin"),
        (Continuous(), Step(1.0, 0.1, 1e-3), Memory(20_000), "round_robin"),
        (Continuous(), Step(1.0, 0.1, 1e-3), None, "least_busy"),
        (Continuous(), PerToken(1.0), None, "round_robin"),
    ],
)
def test_an_interrupted_loop_stops_and_its_thread_ends(
    policy: Policy,
    cost: Cost,
    memory: Memory | None,
    balancer: Balancer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 1_000_000
    tokens = np.random.default_rng(1).integers(1, 1000, n)
    heard = []

    def interrupt(done: int, _: int) -> None:
        heard.append(done)
        os.kill(os.getpid(), signal.SIGINT)

    def serve(n: int, on_progress: Callable[[int, int], None] | None = None) -> None:
        simulate(
            Workload(np.zeros(n), tokens[:n], tokens[:n]),
            policy,
            cost,
            slots=4096,
            replicas=1 if balancer == "round_robin" else 2,
            memory=memory,
            balancer=balancer,
            on_progress=on_progress,
        )

    serve(9)  # compiles
    monkeypatch.setattr(watching, "GLANCE_S", 1e-3)
    threads = threading.active_count()
    # Where the tests run in the background of a shell, they were started with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            serve(n, interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert threading.active_count() == threads
    assert len(heard) == 1
    assert heard[0] < n
