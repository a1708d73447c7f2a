"""What the tests on handed logs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from slotwise_workflows.traffic import Traffic


@pytest.fixture
def figures_of() -> Callable[[Traffic], dict[str, Any]]:
    """All figures of a log that `answers.json` gives, computed from its canonical table."""
    return _figures


def _figures(traffic: Traffic) -> dict[str, Any]:
    table = traffic.table
    lengths = table["gen_ai.usage.output_tokens"].to_numpy()
    ttft = table["gen_ai.response.time_to_first_chunk"].drop_nulls()
    starts = table["start_time"].drop_nulls().to_numpy()
    known = traffic.clock is not None
    many = len(lengths) > 1
    return {
        "rows": traffic.rows,
        "requests": len(traffic),
        "excluded": dict(traffic.excluded),
        "mean": lengths.mean(),
        "p50": np.percentile(lengths, 50),
        "p95": np.percentile(lengths, 95),
        "max": lengths.max(),
        "min": lengths.min(),
        "std": lengths.std(ddof=1) if many else None,
        "cv": lengths.std(ddof=1) / lengths.mean() if many else None,
        "prompt_mean": table["gen_ai.usage.input_tokens"].mean(),
        "arrival_known": len(starts) if known else 0,
        "first": starts.min() / 1e9 if known else None,
        "last": starts.max() / 1e9 if known else None,
        "latency_mean": table["e2e_latency"].mean(),
        "ttft_n": len(ttft),
        "ttft_mean": ttft.mean(),
        "truncated": int(table["truncated"].sum()),
        "aborted": int(table["aborted"].sum()),
        "models": table.select(
            pl.coalesce("gen_ai.request.model", "gen_ai.response.model").drop_nulls().n_unique()
        ).item(),
    }
