"""What a log is, in one value: nothing simulated."""

from __future__ import annotations

import numpy as np
import polars as pl

from slotwise_sim.workload import Ints
from slotwise_workflows.measure.arrivals import arrival_span
from slotwise_workflows.measure.lengths import gain_bounds, length_figures, stated_slots
from slotwise_workflows.measure.segments import segmentations
from slotwise_workflows.result import Inspection, LengthFigures, Mean
from slotwise_workflows.traffic.model import Traffic


def tokens_in_order(traffic: Traffic) -> Ints:
    """Output lengths in order of arrival where it is known, else of the log; shape (n,)."""
    table = traffic.table
    if traffic.clock is not None:
        table = table.sort("start_time", maintain_order=True)
    tokens: Ints = table["gen_ai.usage.output_tokens"].to_numpy().astype(np.int64)
    return tokens


def prompt_figures(traffic: Traffic) -> LengthFigures | None:
    """Figures of the prompts whose length is known; None where none is."""
    prompts = traffic.table["gen_ai.usage.input_tokens"].drop_nulls()
    return length_figures(prompts.to_numpy().astype(np.int64)) if len(prompts) else None


def inspect(traffic: Traffic, seed: int = 0) -> Inspection:
    """Accounts for every row of a log and states how its lengths vary.

    Args:
        traffic: At least one request.
        seed: For the bootstrap intervals.
    """
    rng = np.random.default_rng(seed)
    table = traffic.table
    tokens = tokens_in_order(traffic)
    return Inspection(
        format=traffic.format,
        rows=traffic.rows,
        requests=len(traffic),
        excluded=dict(traffic.excluded),
        flags=list(traffic.flags),
        output_tokens=length_figures(tokens),
        prompt_tokens=prompt_figures(traffic),
        arrival=arrival_span(traffic),
        latency_s=_mean(table["e2e_latency"]),
        ttft_s=_mean(table["gen_ai.response.time_to_first_chunk"]),
        truncated=int(table["truncated"].sum()),
        aborted=int(table["aborted"].sum()),
        gain_bound=gain_bounds(tokens, stated_slots(len(tokens)), rng),
        segments=segmentations(traffic, rng),
        notes=list(traffic.notes),
    )


def _mean(seconds: pl.Series) -> Mean | None:
    known = seconds.drop_nulls()
    return Mean(n=len(known), mean=float(np.mean(known.to_numpy()))) if len(known) else None
