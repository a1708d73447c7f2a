"""A measured run, as a log and as its arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from slotwise_sim import Continuous, Step, Workload
from slotwise_sim.replay import Server, simulated

COST = Step(base_ms=20, per_seq_ms=0.4, per_prefill_token_ms=0.08)
ROOMY = Server(Continuous(), 64)


@pytest.fixture
def measured_log(tmp_path: Path) -> Callable[..., Path]:
    """Writes the log of a simulated server of known cost; rows may lack what is named."""

    def write(
        n: int = 120,
        *,
        without: str = "",
        rows_without: int = 0,
        gap_s: float = 0.35,
        server: Server = ROOMY,
    ) -> Path:
        rng = np.random.default_rng(3)
        workload = Workload(
            np.cumsum(rng.exponential(gap_s, n)),
            2 + rng.exponential(120, n).astype(np.int64),
            rng.integers(50, 800, n),
        )
        outcome = simulated(COST, 0.0, workload, server)
        columns = {
            "timestamp": 1_788_220_800 + workload.arrival_s,
            "ttft_s": outcome.first_token_s - workload.arrival_s,
            "latency_s": outcome.end_s - workload.arrival_s,
            "prompt_tokens": workload.prompt_tokens,
            "completion_tokens": workload.output_tokens,
        }
        lines = [",".join(columns)]
        for row in range(n):
            cells = {name: f"{column[row]:.6f}" for name, column in columns.items()}
            if without and (rows_without == 0 or row < rows_without):
                cells[without] = ""
            lines.append(",".join(cells.values()))
        path = tmp_path / "measured.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
