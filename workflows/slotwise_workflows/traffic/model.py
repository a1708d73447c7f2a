"""`Traffic`: a log as one canonical table, with every row of the log accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from slotwise_sim.workload import Workload

# OpenTelemetry GenAI names where they exist; times are integer nanoseconds, durations seconds.
CANONICAL: Mapping[str, pl.DataType] = {
    "request_id": pl.String(),
    "start_time": pl.Int64(),
    "end_time": pl.Int64(),
    "clock": pl.String(),
    "gen_ai.request.model": pl.String(),
    "gen_ai.response.model": pl.String(),
    "gen_ai.provider.name": pl.String(),
    "gen_ai.operation.name": pl.String(),
    "gen_ai.usage.input_tokens": pl.Int64(),
    "gen_ai.usage.cache_read.input_tokens": pl.Int64(),
    "gen_ai.usage.output_tokens": pl.Int64(),
    "gen_ai.usage.reasoning.output_tokens": pl.Int64(),
    "gen_ai.response.finish_reasons": pl.String(),
    "gen_ai.request.max_tokens": pl.Int64(),
    "gen_ai.request.stream": pl.Boolean(),
    "gen_ai.request.choice.count": pl.Int64(),
    "gen_ai.response.time_to_first_chunk": pl.Float64(),
    "e2e_latency": pl.Float64(),
    "gen_ai.conversation.id": pl.String(),
    "prefix_hash_ids": pl.List(pl.Int64()),
    "error.type": pl.String(),
    "cache_hit": pl.Boolean(),
    "truncated": pl.Boolean(),
    "aborted": pl.Boolean(),
    "source": pl.String(),
}

# What a reader of the figures must know: the names of `Traffic.flags`, up to their colon.
FLAGS = (
    "truncated",
    "aborted",
    "multiple_models",
    "inconsistent_reasoning",
    "biased_missing",
    "duplicate_keys",
    "repaired_json",
    "input_cut_off",
    "too_few_requests",
    "ids_unusable",
    "naive_timestamps_assumed_utc",
    "time_unit_assumed",
    "unit_unknown",
    "time_resolution",
    "reordered",
    "backward_jump",
    "ambiguous_date_order",
    "two_clocks",
    "no_arrival",
    "arrival_derived_from_completion",
    "timestamps_are_completion_not_arrival",
    "timestamps_are_write_time_not_arrival",
)

Clock = Literal["epoch", "relative", "monotonic"]
Origin = Literal["first", "zero"]
Engine = Literal["batches", "unknown"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it was read: its name, content hash and size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """The kept requests of a log and the account of the rest.

    ``rows == len(table) + sum(excluded.values())`` always holds.

    Attributes:
        table: One row a kept request, in the order of the input: the columns of `CANONICAL`,
            then one String column for each segment, named as the user named it. The column `clock`
            repeats the attribute, so that the table tells it on its own.
        format: The id of the log format, e.g. ``azure_llm_trace``.
        rows: Records met in the files.
        excluded: Records left out, by reason.
        flags: What a reader of the figures must know, e.g. ``truncated:6/8``.
        clock: What `start_time` counts from; None where arrivals are not known.
        origin: Where the simulated clock starts: the first kept arrival, or the log's own zero.
        segments: Names of the segment columns.
        engine: Whether the server that wrote the log batches continuously by default.
        managed: Whether the log's format belongs to an API that somebody else runs; None where
            the format does not tell.
        offline: Whether the format is that of batch jobs.
        verified: Whether this format's reader was checked on a real export.
        bench: Whether a load generator chose the lengths, so that they prove nothing about spread.
        notes: Places of unusable rows (file:line and why), at most twenty.
        files: What was read.
    """

    table: pl.DataFrame
    format: str
    rows: int
    excluded: Mapping[str, int]
    flags: tuple[str, ...]
    clock: Clock | None
    origin: Origin = "first"
    segments: tuple[str, ...] = ()
    engine: Engine = "unknown"
    managed: bool | None = None
    offline: bool = False
    verified: bool = False
    bench: bool = False
    notes: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()

    def __len__(self) -> int:
        return self.table.height

    def workload(self) -> Workload:
        """The requests as arrays for the simulator; without arrivals all arrive at once.

        Caps are there where every request tells its own. A request that tells of no cached tokens
        had none; of one that tells of more than its prompt, the prompt counts.
        """
        tokens = self.table["gen_ai.usage.output_tokens"].to_numpy().astype(np.int64)
        prompt = self.table["gen_ai.usage.input_tokens"].fill_null(0).to_numpy().astype(np.int64)
        if self.clock is None:
            arrival_s = np.zeros(len(tokens))
        else:
            start = self.table["start_time"].to_numpy().astype(np.int64)
            arrival_s = (start - (start.min() if self.origin == "first" else 0)) / 1e9
        cap = self.table["gen_ai.request.max_tokens"]
        max_tokens = None if cap.null_count() else cap.to_numpy().astype(np.int64)
        told = self.table["gen_ai.usage.cache_read.input_tokens"].fill_null(0).to_numpy()
        cached = np.clip(told.astype(np.int64), 0, prompt)
        return Workload(arrival_s, tokens, prompt, max_tokens, cached if cached.any() else None)


def made_traffic(workload: Workload, *, format_id: str, origin: Origin = "first") -> Traffic:
    """Made requests as `Traffic`, so that they go the way of a log.

    Args:
        workload: Arrivals in seconds, rounded to nanoseconds.
        format_id: What made them, e.g. ``article``.
        origin: Where the simulated clock starts.
    """
    columns: dict[str, Any] = {
        "start_time": np.rint(workload.arrival_s * 1e9).astype(np.int64),
        "clock": ["relative"] * len(workload),
        "gen_ai.usage.output_tokens": workload.output_tokens,
        "cache_hit": np.zeros(len(workload), dtype=np.bool_),
        "truncated": np.zeros(len(workload), dtype=np.bool_),
        "aborted": np.zeros(len(workload), dtype=np.bool_),
    }
    if workload.prompt_tokens.any():  # made without prompts: unknown, not empty
        columns["gen_ai.usage.input_tokens"] = workload.prompt_tokens
    if workload.max_tokens is not None:
        columns["gen_ai.request.max_tokens"] = workload.max_tokens
    table = pl.DataFrame(
        {
            name: pl.Series(name, columns[name], dtype=dtype)
            if name in columns
            else pl.Series(name, [None] * len(workload), dtype=dtype)
            for name, dtype in CANONICAL.items()
        }
    )
    return Traffic(
        table=table,
        format=format_id,
        rows=len(workload),
        excluded={},
        flags=(),
        clock="relative",
        origin=origin,
        verified=True,
    )
