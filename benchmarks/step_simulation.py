"""How fast continuous batching is simulated under a step cost, and what it holds in memory.

    uv run benchmarks/step_simulation.py [TRACE] [--aisimulate]

All requests wait from the start, on 64 slots, prompts prefilled beside what decodes. TRACE is the
conversation trace of the Azure LLM inference traces 2023 (a CSV, compressed or not); without it,
lengths are drawn from its published quantiles. ``--aisimulate`` has uv fetch the program of this
name from PyPI (1 GB) and times it on the same lengths.

Times are seconds of one core, not of the clock. Ends with exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl

from slotwise_sim import Binned, Continuous, Memory, PerToken, Policy, Static, Workload
from slotwise_sim import simulate as simulate_once
from slotwise_sim.costs import Cost
from slotwise_sim.outcome import Outcome
from slotwise_sim.workload import Ints
from slotwise_workflows.costs.presets import find_preset

REQUESTS = 1_000_000
SLOTS = 64
REPEATS = 3
COST = find_preset("llama-3.1-8b-h100").step
MIXED = Continuous()
PRESSED = Memory(kv_tokens=64_000)
MEMORIES: dict[str, Memory | None] = {
    "no memory limit": None,
    "paged, memory for all": Memory(kv_tokens=1_000_000),
    "paged, too little memory": PRESSED,
}
TARGETS = {name: 5e6 if memory is None else 2e6 for name, memory in MEMORIES.items()}
QUANTILES = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1]
OUTPUT_TOKENS = [7, 41, 54, 77, 91, 103, 129, 177, 384, 400, 424, 451, 601, 1000]
PROMPT_TOKENS = [2, 181, 207, 387, 403, 703, 1020, 1071, 1130, 1315, 2734, 4083, 4142, 14050]
REFERENCE_REQUESTS = 1000
PEER_REQUESTS = (8_192, 65_536)
PEER = """
traffic:
  source: {{type: trace, format: mooncake, paths: [{trace}]}}
  load: {{type: trace_timestamps}}
engine:
  mode: aggregated
  model: meta-llama/Meta-Llama-3.1-8B
  hardware: h100_sxm
  backend: vllm
  workers:
    aggregated:
      scheduler: {{max_sequences: 64, max_batched_tokens: 8192}}
      kv_cache: {{prefix_caching: false}}
"""


@dataclass(frozen=True)
class Lengths:
    """A sample to draw requests from: prompt and output of the same row belong together."""

    prompt: Ints
    output: Ints


def lengths(trace: Path | None) -> Lengths:
    """The trace's, or as many drawn from its quantiles."""
    if trace is not None:
        table = pl.read_csv(trace)
        return Lengths(table["ContextTokens"].to_numpy(), table["GeneratedTokens"].to_numpy())
    rng = np.random.default_rng(2023)

    def drawn(tokens: list[int]) -> Ints:
        return np.rint(np.interp(rng.random(20_000), QUANTILES, tokens)).astype(np.int64)

    return Lengths(drawn(PROMPT_TOKENS), drawn(OUTPUT_TOKENS))


def backlog(sample: Lengths, n: int) -> Workload:
    """Requests that all wait from the start."""
    rows = np.random.default_rng(n).integers(len(sample.output), size=n)
    return Workload(np.zeros(n), sample.output[rows], sample.prompt[rows])


def simulate(workload: Workload, memory: Memory | None) -> Outcome:
    """Continuous batching on 64 slots."""
    return simulate_once(workload, MIXED, COST, slots=SLOTS, memory=memory)


def fastest(run: Callable[[], object]) -> float:
    """Seconds of a core in the fastest of some repeats: the one least disturbed by the machine."""
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        run()
        seconds.append(time.process_time() - began)
    return min(seconds)


def show_speed(sample: Lengths) -> bool:
    """Prints requests a second against the targets; false where one is missed."""
    workload = backlog(sample, REQUESTS)
    print(f"{REQUESTS:,} requests on {SLOTS} slots, fastest of {REPEATS}")
    print(f"{'':<26} {'million requests/s':>18} {'target':>7} {'preemptions/request':>20}")
    met = True
    for name, memory in MEMORIES.items():
        preemptions = simulate(workload, memory).preemptions / REQUESTS
        rate = REQUESTS / fastest(partial(simulate, workload, memory))
        print(f"{name:<26} {rate / 1e6:>18.1f} {TARGETS[name] / 1e6:>7g} {preemptions:>20.2f}")
        met &= rate >= TARGETS[name]
    return met


def show_growth(sample: Lengths) -> None:
    """Prints how the time of one request changes as there are more of them."""
    print("\nnanoseconds a request")
    print(f"{'requests':>11} " + " ".join(f"{name:>26}" for name in MEMORIES))
    for power in (4, 5, 6, 7):
        workload = backlog(sample, 10**power)
        cells = [
            fastest(partial(simulate, workload, memory)) / 10**power * 1e9
            for memory in MEMORIES.values()
        ]
        print(f"{10**power:>11,} " + " ".join(f"{cell:>26.0f}" for cell in cells))


def show_reference(sample: Lengths) -> None:
    """Prints the speed of the tests' loop over single iterations; stops where it disagrees."""
    reference = load_reference()
    workload = backlog(sample, REFERENCE_REQUESTS)
    print(f"\nthe tests' reference, iteration by iteration, {REFERENCE_REQUESTS:,} requests")
    for name, memory in MEMORIES.items():
        requests = [
            reference.Request(row, 0.0, int(output), int(prompt))
            for row, (output, prompt) in enumerate(
                zip(workload.output_tokens, workload.prompt_tokens, strict=True)
            )
        ]
        step = reference.Step(
            COST.base_ms / 1000,
            COST.per_seq_ms / 1000,
            COST.per_kv_token_ms / 1000,
            COST.per_prefill_token_ms / 1000,
            COST.per_prefill_token2_ms / 1000,
            prefill_base=(COST.prefill_base_ms or 0) / 1000,
        )
        limit = reference.Memory(memory.kv_tokens, memory.block_tokens) if memory else None
        serve = reference.continuous_in_iterations(step, separate=False, memory=limit)
        began = time.process_time()
        reference.replay(requests, serve, SLOTS)
        theirs = time.process_time() - began
        if not np.allclose([r.end for r in requests], simulate(workload, memory).end_s, rtol=1e-9):
            sys.exit(f"{name}: the reference disagrees")
        ours = fastest(partial(simulate, workload, memory))
        print(
            f"{name:<26} {REFERENCE_REQUESTS / theirs:>10,.0f} requests/s, 1/{theirs / ours:,.0f}"
        )


def load_reference() -> ModuleType:
    """The second implementation that the tests hold the compiled loops against."""
    path = Path(__file__).parents[1] / "tests" / "sim" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up while they are made
    spec.loader.exec_module(module)
    return module


def show_aisimulate(sample: Lengths) -> None:
    """Prints the speed of AISimulate from the difference of two runs."""
    seconds = []
    for n in PEER_REQUESTS:
        try:
            seconds.append(time_aisimulate(backlog(sample, n)))
        except (OSError, subprocess.CalledProcessError) as fault:
            print(f"\nAISimulate does not run here: {getattr(fault, 'stderr', '') or fault}")
            return
    few, many = PEER_REQUESTS
    rate = (many - few) / (seconds[1] - seconds[0])
    ours = many / fastest(partial(simulate, backlog(sample, many), None))
    print(f"\nAISimulate: {seconds[0]:.2f} s for {few:,} requests, {seconds[1]:.2f} s for {many:,}")
    print(f"at the margin {rate:,.0f} requests/s, 1/{ours / rate:,.0f} of ours without a limit")


def time_aisimulate(workload: Workload) -> float:
    """Seconds of a core that AISimulate takes, its start included."""
    with tempfile.TemporaryDirectory() as folder:
        trace, config = Path(folder) / "trace.jsonl", Path(folder) / "config.yaml"
        with trace.open("w") as file:
            for row, (output, prompt) in enumerate(
                zip(workload.output_tokens.tolist(), workload.prompt_tokens.tolist(), strict=True)
            ):
                blocks = [row * 100 + block for block in range(-(-prompt // 512))]  # none is shared
                request = {
                    "timestamp": 0,
                    "input_length": prompt,
                    "output_length": output,
                    "hash_ids": blocks,
                }
                file.write(json.dumps(request) + "\n")
        config.write_text(PEER.format(trace=trace))
        command = ["uvx", "--no-build", "aisimulate", "predict", "--format", "json"]
        command += ["--config", str(config), "--output-dir", f"{folder}/out"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert json.loads(answer.stdout)["completed_requests"] == len(workload)
    return seconds


def show_memory(sample: Lengths, requests: int = 10_000_000) -> None:
    """Prints what a simulation of ten million requests holds beyond them."""
    cases: dict[str, tuple[Policy, Cost, Memory | None]] = {
        "static, per token": (Static(), PerToken(8), None),
        "continuous, per token": (MIXED, PerToken(8), None),
        "binned, per token": (Binned(8), PerToken(8), None),
        "static, step": (Static(), COST, None),
        "continuous, step": (MIXED, COST, None),
        "continuous, step, paged": (MIXED, COST, PRESSED),
    }
    print(f"\nbytes a request held at the peak beyond the input, {requests:,} requests")
    for name, case in cases.items():
        print(f"{name:<26} {peak_bytes(sample, requests, *case) / requests:>6.0f}")


def peak_bytes(
    sample: Lengths, requests: int, policy: Policy, cost: Cost, memory: Memory | None
) -> int:
    """How much a new process grows while it simulates, outcome included."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_grown, (sample, requests, policy, cost, memory))


def _grown(
    sample: Lengths, requests: int, policy: Policy, cost: Cost, memory: Memory | None
) -> int:
    simulate_once(backlog(sample, 1000), policy, cost, slots=SLOTS, memory=memory)  # compiled
    workload = backlog(sample, requests)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is held now
    before = _status_bytes("VmRSS")
    simulate_once(workload, policy, cost, slots=SLOTS, memory=memory)
    return _status_bytes("VmHWM") - before


def _status_bytes(key: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{key}:")[1].split()[0])


def main() -> None:
    """All parts; exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--aisimulate", action="store_true")
    arguments = parser.parse_args()
    sample = lengths(arguments.trace)
    met = show_speed(sample)
    show_growth(sample)
    show_reference(sample)
    if arguments.aisimulate:
        show_aisimulate(sample)
    else:
        print("\nAISimulate was not asked for: --aisimulate fetches 1 GB from PyPI.")
    show_memory(sample)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
