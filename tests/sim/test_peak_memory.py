"""Ten million requests are simulated in about a hundred bytes each beyond the input."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.big

# The peak is that of a process of its own, outcome included; writing 5 starts it again from what
# is held at that moment.
SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from slotwise_sim import *

def held(key):
    return 1024 * int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0])

def workload(n):
    rng = np.random.default_rng(1)
    arrival_s = {arrivals}
    return Workload(arrival_s, rng.integers(1, 600, n), rng.integers(0, 2000, n))

def serve(workload):
    return simulate(workload, {policy}, {cost}, slots=64, memory={memory})

serve(workload(1000))
n = 10_000_000
requests = workload(n)
Path("/proc/self/clear_refs").write_text("5")
before = held("VmRSS")
outcome = serve(requests)
print((held("VmHWM") - before) / n)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("policy", "cost", "memory"),
    [
        ("Static()", "PerToken(8)", None),
        ("Continuous()", "PerToken(8)", None),
        ("Binned(8)", "Step(8, 0.1, 1e-4)", None),
        ("Continuous()", "Step(8, 0.1, 1e-4)", None),
        ("Continuous()", "Step(8, 0.1, 1e-4)", "Memory(64_000)"),
    ],
)
@pytest.mark.parametrize("arrivals", ["np.zeros(n)", "rng.random(n) * n"])  # in order, in none
def test_a_request_takes_about_a_hundred_bytes(
    policy: str, cost: str, memory: str | None, arrivals: str
) -> None:
    script = SCRIPT.format(policy=policy, cost=cost, memory=memory, arrivals=arrivals)
    answer = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert 24 < float(answer.stdout) < 115
