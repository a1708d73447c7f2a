"""Millions of requests: read to the last row, and simulated as the closed form has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slotwise_sim import Continuous, PerToken, Static, Workload, simulate
from slotwise_workflows.traffic import read_traffic

pytestmark = pytest.mark.big


def test_a_log_of_a_million_rows_is_accounted_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 1_000_000
    tokens = rng.integers(0, 1000, n)
    path = tmp_path / "big.csv"
    with path.open("w") as file:
        file.write("timestamp,prompt_tokens,completion_tokens\n")
        file.writelines(f"{1_788_220_800 + k * 0.25:.2f},100,{t}\n" for k, t in enumerate(tokens))
    traffic = read_traffic([str(path)])
    assert traffic.rows == n
    assert len(traffic) == int((tokens > 0).sum())
    assert traffic.excluded == {"no_output": int((tokens == 0).sum())}
    assert traffic.table["gen_ai.usage.output_tokens"].sum() == int(tokens.sum())


@pytest.mark.parametrize(("slots", "harmonic"), [(8, 2.7178571), (64, 4.7438909)])
def test_ten_million_exponential_lengths_gain_the_harmonic_number(
    slots: int, harmonic: float
) -> None:
    rng = np.random.default_rng(2)
    n = 10_000_000
    tokens = np.maximum(1, np.rint(rng.exponential(2000.0, n))).astype(np.int64)
    backlog = Workload(np.zeros(n), tokens, np.zeros(n, dtype=np.int64))
    makespan = [
        float(simulate(backlog, policy, PerToken(1.0), slots=slots).end_s.max())
        for policy in (Static(), Continuous())
    ]
    assert makespan[0] / makespan[1] == pytest.approx(harmonic, rel=2e-3)
