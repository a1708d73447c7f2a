"""How much of the prompts repeats: a saving of its own, never credited to batching."""

from __future__ import annotations

import polars as pl

from slotwise_workflows.traffic.model import Traffic


def repeated_prefix_share(traffic: Traffic) -> float | None:
    """Share of the prompts that an unlimited prefix cache would have answered.

    From the ids of prefix blocks where the log has them (a block's id stands for everything up to
    its end, so that one seen before is a repeated prefix), else from the cached tokens that the
    server counted. None where the log has neither.
    """
    table = traffic.table
    if traffic.clock is not None:
        table = table.sort("start_time", maintain_order=True)
    blocks = table["prefix_hash_ids"]
    if blocks.null_count() < table.height:
        return _repeated_blocks(blocks)
    prompts = table.select(
        cached="gen_ai.usage.cache_read.input_tokens", whole="gen_ai.usage.input_tokens"
    ).drop_nulls()
    if not prompts.height or not prompts["whole"].sum():
        return None
    return float(prompts["cached"].sum()) / float(prompts["whole"].sum())


def _repeated_blocks(blocks: pl.Series) -> float:
    seen: set[int] = set()
    repeated = total = 0
    for ids in blocks.drop_nulls().to_list():
        total += len(ids)
        repeated += next((k for k, block in enumerate(ids) if block not in seen), len(ids))
        seen.update(ids)
    return repeated / total if total else 0.0
