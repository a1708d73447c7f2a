"""Two measured vLLM servers, half of each run predicted from the other: ``measured_servers.md``.

uv run docs/validation/measured_servers.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from markdown_table import markdown_table
from slotwise_sim import Continuous, Memory
from slotwise_sim.replay import Server
from slotwise_workflows.calibrate.file import CalibrationFile
from slotwise_workflows.calibrate.run import calibrate_run
from slotwise_workflows.traffic import ReadOptions, read_traffic

RTX4090 = "vllm_measured_RTX4090_Llama-3.1-8B_requests.jsonl"
RTXPRO6000 = "vllm_measured_RTXPRO6000_Qwen3-30B-A3B-Instruct-2507_requests.jsonl"
CHUNKS = Continuous(max_batched_tokens=2048)
RUNS = {
    "RTX 4090, Llama 3.1 8B": (RTX4090, Server(CHUNKS, 256, memory=Memory(41_408))),
    "the same, its memory left out": (RTX4090, Server(CHUNKS, 256)),
    "2 × RTX PRO 6000, Qwen3 30B-A3B, as one server": (
        RTXPRO6000,
        Server(Continuous(max_batched_tokens=4096), 256),
    ),
    "the same, as two": (RTXPRO6000, Server(CHUNKS, 128, replicas=2)),
}


def measure(folder: Path) -> dict[str, CalibrationFile]:
    """Returns the calibrations of the runs, by name."""
    return {
        name: calibrate_run(read_traffic([str(folder / log)], ReadOptions()), server)
        for name, (log, server) in RUNS.items()
    }


def tables(measured: dict[str, CalibrationFile]) -> list[str]:
    """Returns the tables of the page."""
    return [
        markdown_table(
            ("run", "mean latency", "p95 latency", "mean TTFT", "makespan"),
            [(name, *_held_out(found)) for name, found in measured.items()],
        ),
        markdown_table(
            (
                "run",
                "batch",
                "base_ms",
                "per_seq_ms",
                "per_prefill_token_ms",
                "overhead_ms",
                "bend",
                "preemptions",
            ),
            [_terms(name, found) for name, found in measured.items()],
        ),
    ]


def _held_out(found: CalibrationFile) -> list[str]:
    if found.hold_out is None:
        return ["not told"] * 4
    errors = found.hold_out.errors
    shares = (errors.latency_mean, errors.latency_p95, errors.ttft_mean, errors.busy)
    return ["not told" if share is None else f"{100 * share:+.1f} %" for share in shares]


def _terms(name: str, found: CalibrationFile) -> list[str]:
    cells = [name, f"{found.batch[0]} to {found.batch[1]}"]
    for term, digits in (
        ("base_ms", 1),
        ("per_seq_ms", 3),
        ("per_prefill_token_ms", 4),
        ("overhead_ms", 0),
    ):
        fitted = found.terms[term]
        if fitted.how == "fitted":
            half = (fitted.high - fitted.low) / 2
            cells.append(f"{fitted.value:.{digits}f} ± {half:.{digits}f}")
        else:
            cells.append("not told")
    bend = found.terms.get("bend")
    cells.append(f"{100 * bend.value:.0f} % at {found.bend_seqs}" if bend else "none")
    cells.append(f"{found.preemptions}")
    return cells


if __name__ == "__main__":
    print("\n\n".join(tables(measure(Path(sys.argv[1])))))
