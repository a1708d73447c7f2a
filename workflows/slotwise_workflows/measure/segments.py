"""A log split by one of its columns: which route or model makes the variation?"""

from __future__ import annotations

import numpy as np
import polars as pl

from slotwise_sim.lengths import variance_between
from slotwise_workflows.measure.lengths import gain_bounds, length_figures, stated_slots
from slotwise_workflows.result import Segmentation, SegmentFigures
from slotwise_workflows.traffic.model import Traffic

SHOWN_VALUES = 50
SEGMENT_SLOTS = (8,)


def model_column(table: pl.DataFrame) -> pl.Series:
    """The model that served each request: as asked for, else as answered; null where unknown."""
    return table.select(
        pl.coalesce("gen_ai.request.model", "gen_ai.response.model").alias("model")
    )["model"]


def segmentations(traffic: Traffic, rng: np.random.Generator) -> dict[str, Segmentation]:
    """By model where there are several, and by each column the user named."""
    table = traffic.table
    if traffic.clock is not None:  # the bootstrap respects the order in time
        table = table.sort("start_time", maintain_order=True)
    columns = {name: table[name] for name in traffic.segments}
    model = model_column(table)
    if model.n_unique() > 1:
        columns = {"model": model, **columns}
    tokens = table["gen_ai.usage.output_tokens"]
    return {name: _segmentation(column, tokens, rng) for name, column in columns.items()}


def _segmentation(column: pl.Series, tokens: pl.Series, rng: np.random.Generator) -> Segmentation:
    labels = column.cast(pl.String).fill_null("")
    table = pl.DataFrame({"value": labels, "tokens": tokens})
    sizes = (
        table.group_by("value")
        .agg(pl.col("tokens").sum())
        .sort(["tokens", "value"], descending=[True, False])
    )
    total = int(sizes["tokens"].sum())
    shown = sizes["value"].head(SHOWN_VALUES).to_list()
    values = {}
    for value in shown:
        own = table.filter(pl.col("value") == value)["tokens"].to_numpy().astype(np.int64)
        slots = [s for s in SEGMENT_SLOTS if s in stated_slots(len(own))]
        values[value] = SegmentFigures(
            requests=len(own),
            token_share=float(own.sum()) / total,
            output_tokens=length_figures(own),
            gain_bound=gain_bounds(own, slots, rng),
        )
    codes = labels.rank("dense").to_numpy().astype(np.int64)
    lengths = tokens.to_numpy().astype(np.int64)
    return Segmentation(
        values=values,
        others=table.height - sum(figures.requests for figures in values.values()),
        between_share=variance_between(lengths, codes) if len(sizes) > 1 else None,
    )
