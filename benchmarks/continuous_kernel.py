"""How fast the continuous per-token loop is, against plain JavaScript and as traffic grows.

    uv run benchmarks/continuous_kernel.py

Both programs serve the same arrays in the same run, and must come to the same makespan and waiting.
Without Node the comparison is left out, and this says so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from slotwise_sim import Continuous, PerToken, Policy, Static, Workload, simulate
from slotwise_sim.kernels import slots as kernel
from slotwise_sim.synthetic import mixture, poisson_arrivals, uniform
from slotwise_sim.workload import Floats

MS_PER_TOKEN = 8.0
UTILISATION = 0.9
REPEATS = 5
LOOP = Path(__file__).with_name("article_loop.mjs")
TARGETS = {8: 10.0, 256: 15.0}


@dataclass(frozen=True)
class Timing:
    """The fastest repeat, and what was computed."""

    seconds: float
    makespan_s: float
    waited_s: float


def traffic(n: int, slots: int) -> Workload:
    """The article's mixture of lengths, arriving so that refilled slots are 90 % busy."""
    rng = np.random.default_rng(20260818)
    tokens = mixture(
        n,
        [
            (0.85, lambda n, rng: uniform(n, 40, 199, rng)),
            (0.15, lambda n, rng: uniform(n, 400, 999, rng)),
        ],
        rng,
    )
    rate = UTILISATION * slots / (float(tokens.mean()) * MS_PER_TOKEN / 1000)
    return Workload(poisson_arrivals(n, rate, rng), tokens, np.zeros(n, dtype=np.int64))


def service_times(workload: Workload) -> Floats:
    """Seconds each request is in its slot, shape (n,)."""
    return np.multiply(workload.output_tokens, MS_PER_TOKEN / 1000, dtype=np.float64)


def fastest(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of some repeats: the one least disturbed by the machine."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def time_kernel(workload: Workload, slots: int) -> Timing:
    """The compiled loop, from arrivals and service times to starts and ends."""
    service_s = service_times(workload)

    def run() -> tuple[Floats, Floats]:
        start_s, end_s = np.empty(len(workload)), np.empty(len(workload))
        kernel.continuous_slots(
            workload.arrival_s, service_s, slots, start_s, end_s, np.zeros(2, dtype=np.int64)
        )
        return start_s, end_s

    start_s, end_s = run()
    waited_s = float((start_s - workload.arrival_s).sum())
    return Timing(fastest(run), float(end_s.max()), waited_s)


def time_javascript(node: str, workload: Workload, slots: int) -> dict[str, Timing]:
    """Both loops of `article_loop.mjs` in Node, on the same arrays."""
    with tempfile.TemporaryDirectory() as folder:
        arrivals, service = Path(folder) / "arrivals", Path(folder) / "service"
        workload.arrival_s.astype("<f8").tofile(arrivals)
        service_times(workload).astype("<f8").tofile(service)
        arguments = [arrivals, service, slots, REPEATS]
        command = [node, str(LOOP), *map(str, arguments)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return {
        name: Timing(found["seconds"], found["makespan"], found["waited"])
        for name, found in json.loads(answer.stdout).items()
    }


def compare_with_javascript(requests: int) -> bool:
    """Prints the ratios at each number of slots; false where a target is missed."""
    node = shutil.which("node")
    if node is None:
        print("Node is not installed: the comparison with JavaScript is left out.\n")
        return True
    print(f"{requests:,} requests, fastest of {REPEATS}, millions of requests a second")
    print(
        f"{'slots':>6} {'kernel':>8} {'article':>8} {'ratio':>6} {'scan':>8} {'ratio':>6}  target"
    )
    met = True
    for slots, target in TARGETS.items():
        workload = traffic(requests, slots)
        kernel = time_kernel(workload, slots)
        loops = time_javascript(node, workload, slots)
        line = f"{slots:>6} {requests / kernel.seconds / 1e6:>8.2f}"
        for name, loop in loops.items():
            for figure in ("makespan_s", "waited_s"):
                ours, theirs = getattr(kernel, figure), getattr(loop, figure)
                if not np.isclose(ours, theirs, rtol=1e-9):
                    sys.exit(f"{name} disagrees with the kernel on {figure}: {theirs} and {ours}")
            line += f" {requests / loop.seconds / 1e6:>8.2f} {loop.seconds / kernel.seconds:>6.1f}"
        print(f"{line}  article >= {target:g}")
        met &= loops["article"].seconds / kernel.seconds >= target
    print()
    return met


def show_growth(slots: int) -> None:
    """Prints how the time of a whole `simulate` grows with the number of requests."""
    policies: dict[str, Policy] = {"static": Static(), "continuous": Continuous()}
    print(f"simulate() on {slots} slots, seconds (nanoseconds a request)")
    print(f"{'requests':>11} " + " ".join(f"{name:>20}" for name in policies))
    for power in (4, 5, 6, 7):
        workload = traffic(10**power, slots)
        cells = []
        for policy in policies.values():

            def run(workload: Workload = workload, policy: Policy = policy) -> object:
                return simulate(workload, policy, PerToken(MS_PER_TOKEN), slots=slots)

            run()
            seconds = fastest(run, repeats=3)
            cells.append(f"{seconds:.4f} ({seconds / 10**power * 1e9:.0f})")
        print(f"{10**power:>11,} " + " ".join(f"{cell:>20}" for cell in cells))


def main() -> None:
    """Both parts; exit code 1 where a target is missed."""
    met = compare_with_javascript(1_000_000)
    show_growth(8)
    print()
    show_growth(256)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
