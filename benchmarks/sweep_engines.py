"""What a second process and Ray are worth to a sweep, and what they cost.

    uv run --extra ray benchmarks/sweep_engines.py [SECONDS]

SECONDS is how long one process is to work, 90 if left out: two then work for about a minute. All
engines compute the same points in the same run, and this stops if their rows differ. Without Ray
its part is left out.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from slotwise_sim import Continuous, Dynamic, PerToken, Policy, Static, Workload
from slotwise_sim.replicate import run_length
from slotwise_sim.synthetic import lognormal, poisson_arrivals
from slotwise_workflows.sweep.engine import Engine, EngineName
from slotwise_workflows.sweep.estimate import Estimate, estimate
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.local import run_local
from slotwise_workflows.sweep.points import Axes, Point, points
from slotwise_workflows.sweep.ray_engine import run_ray
from slotwise_workflows.sweep.run import sweep
from slotwise_workflows.sweep.scenario import Scenario

TARGET_RATIO = 1.7
TARGET_SHARE = 0.05
LOADS = (0.25, 0.5, 1.0, 2.0)
TASKS = 2_000
NO_WORK = Estimate(replay_s=1e-4, search_s=1e-4, seconds=0.1, memory_bytes=1)


def scenario_of(requests: int) -> Scenario:
    """Log-normal lengths at 80 % of what 16 slots serve."""
    rng = np.random.default_rng(20260818)
    tokens = lognormal(requests, 200.0, 1.0, rng)
    rate = 0.8 * 16 / (float(tokens.mean()) * 0.008)
    arrivals = poisson_arrivals(requests, rate, rng)
    workload = Workload(arrivals, tokens, np.zeros(requests, np.int64))
    policies: dict[str, Policy] = {
        "static": Static(),
        "dynamic": Dynamic(1000.0),
        "continuous": Continuous(),
    }
    return Scenario(workload, policies, {"": PerToken(8.0)}, run=run_length(workload))


def timed(
    scenario: Scenario,
    grid: Sequence[Point],
    work: Estimate,
    name: EngineName,
    workers: int,
    store: Path | None = None,
) -> tuple[float, tuple[Done, ...]]:
    """Seconds from the call to the last row, starting and stopping included."""
    begin = time.perf_counter()
    done = sweep(scenario, grid, Engine(name, workers, None, ""), work, store=store).done
    return time.perf_counter() - begin, done


def compare(requests: int, seconds: float, engines: Sequence[tuple[EngineName, int]]) -> bool:
    """Runs as many points as keep one process busy for so long, on every engine."""
    scenario = scenario_of(requests)
    sample = points(Axes([8, 16], loads=LOADS), 4, seed=0)
    replications = max(1, round(seconds / estimate(scenario, sample).replay_s / (2 * len(LOADS))))
    grid = points(Axes([8, 16], loads=LOADS), replications, seed=0)
    work = estimate(scenario, grid)
    print(f"\n{requests:,} requests, {len(grid):,} points, estimated {work.seconds:.0f} s")
    alone, expected = timed(scenario, grid, work, "local", 1)
    print(f"  local, 1 process    {alone:7.1f} s")
    met = True
    for name, workers in engines:
        taken, done = timed(scenario, grid, work, name, workers)
        if done != expected:
            raise SystemExit(f"{name} finds other rows")
        ratio = alone / taken
        met &= ratio >= TARGET_RATIO
        print(f"  {name + ',':6} {workers} processes  {taken:7.1f} s  {ratio:5.2f} times as fast")
    return met


def starts(engines: Sequence[tuple[EngineName, int]]) -> None:
    """Seconds until the first of two small tasks is done, and to the end."""
    scenario, grid = scenario_of(10), points(Axes([2], loads=[1.0]), 2, seed=0)
    print("\nseconds for two points that take none")
    for name, workers in engines:
        for _ in range(2):
            begin = time.perf_counter()
            first = 0.0
            running = (
                run_ray(scenario, [grid[:1], grid[1:]], workers=workers, address=None)
                if name == "ray"
                else run_local(scenario, [grid[:1], grid[1:]], workers=workers)
            )
            for _done in running:
                first = first or time.perf_counter() - begin
            whole = time.perf_counter() - begin
            print(f"  {name + ',':6} {workers} processes  first {first:5.2f}, all {whole:5.2f}")


def overhead(engines: Sequence[tuple[EngineName, int]]) -> bool:
    """What a task costs beside its points: many tasks of one point that takes next to nothing."""
    scenario = scenario_of(10)
    grid = points(Axes([2], loads=[1.0]), TASKS, seed=0)
    batches = [(point,) for point in grid]
    begin = time.perf_counter()
    for _ in run_local(scenario, batches, workers=1):
        pass
    point_s = (time.perf_counter() - begin) / TASKS
    print(f"\na task beside its points, of {TASKS:,} tasks of one point of {1e3 * point_s:.2f} ms")
    met = True
    for name, workers in engines:
        running = (
            run_ray(scenario, batches, workers=workers, address=None)
            if name == "ray"
            else run_local(scenario, batches, workers=workers)
        )
        next(iter(running))
        begin = time.perf_counter()
        for _ in running:
            pass
        task_s = workers * (time.perf_counter() - begin) / (TASKS - 1) - point_s
        met &= task_s < TARGET_SHARE
        print(f"  {name + ',':6} {workers} processes  {1e3 * task_s:6.2f} ms of a processor")
    print(f"  (a task is about a second's work where there is much: {TARGET_SHARE:.0%} are 50 ms)")
    return met


def ten_thousand(engines: Sequence[tuple[EngineName, int]]) -> None:
    """A sweep of 10,000 points that keeps what is finished, and the same found finished."""
    scenario = scenario_of(1_000)
    grid = points(Axes([4, 8, 16, 32, 64], loads=[0.25, 0.5, 1, 2]), 500, seed=0)
    work = estimate(scenario, grid)
    print(f"\n1,000 requests, {len(grid):,} points, estimated {work.seconds:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        for name, workers in (("local", 1), *engines):
            store = Path(folder) / f"{name}-{workers}.sqlite"
            taken, _ = timed(scenario, grid, work, name, workers, store)
            print(f"  {name + ',':6} {workers} processes  {taken:7.1f} s")
        taken, _ = timed(scenario, grid, work, "local", 1, store)
        print(f"  found finished       {taken:7.1f} s, {store.stat().st_size / 1e6:.0f} MB")


def main() -> None:
    """Prints the figures; exit code 1 where a target is missed."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 90.0
    engines: list[tuple[EngineName, int]] = [("local", 2)]
    if find_spec("ray") is None:
        print("Ray is not installed: without it")
    else:
        engines.append(("ray", 2))
    starts(engines)
    met = overhead(engines)
    met &= compare(20_000, seconds, engines)
    met &= compare(1_000_000, seconds / 2, engines)
    ten_thousand(engines)
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":  # worker processes import this file
    main()
