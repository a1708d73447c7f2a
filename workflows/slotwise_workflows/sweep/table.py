"""What a sweep found: the table of all rows, its file, and its summary by point and policy."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterable, Sequence
from typing import Literal

import polars as pl
from pydantic import ConfigDict, Field

from slotwise_sim.memory import Memory
from slotwise_sim.replicate import interval
from slotwise_workflows.costs import CostRecord, StatedCost
from slotwise_workflows.result import Estimate, Record
from slotwise_workflows.sweep.evaluate import Row
from slotwise_workflows.sweep.points import Point

SCHEMA: Literal["slotwise/sweep/v1"] = "slotwise/sweep/v1"

COLUMNS = {
    field.name: (
        pl.String
        if field.name == "policy"
        else pl.Int64
        if field.name in {"slots", "replication", "seed", "requests"}
        else pl.Float64
    )
    for field in dataclasses.fields(Row)
}
"""Column names and types of ``sweep.parquet``, in order; `Row` says what each means."""


class SweepRow(Record):
    """One policy at one point: means over the replications, with their 95 % intervals."""

    slots: int
    load: float = Field(description="times the workload's own arrival rate")
    policy: str
    replications: int
    requests: int = Field(description="of one replication")
    gain: Estimate | None = Field(
        description="sustainable requests per second over batches in order of arrival; null below "
        "one batch"
    )
    latency_ratio: Estimate = Field(description="the baseline's mean latency over this one's")
    latency_mean_s: Estimate
    latency_p95_s: Estimate
    queue_delay_mean_s: Estimate
    ttft_p95_s: Estimate
    idle_share: Estimate
    requests_per_s: Estimate
    output_tokens_per_s: Estimate
    makespan_s: Estimate
    utilisation: Estimate | None = Field(
        description="offered over sustainable load; null where all requests arrive at once"
    )


class SweepReport(Record):
    """The content of ``sweep --json``."""

    schema_: Literal["slotwise/sweep/v1"] = Field(SCHEMA, alias="schema")
    engine: Literal["local", "ray"]
    points: int = Field(description="paired comparisons run: slots x load x replications")
    seed: int
    cost: CostRecord
    memory: Memory | None = Field(description="of one server; null where it limits nothing")
    baseline: str = Field(description="the policy that latency_ratio compares with")
    rows: list[SweepRow]

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


def table(rows: Iterable[Row], grid: Sequence[Point]) -> pl.DataFrame:
    """All rows as a table, in the order of the grid and, within a point, of its policies.

    The engines give rows in the order in which their workers were done; this order does not
    depend on it.

    Args:
        rows: What an engine returned.
        grid: The points they are of.

    Returns:
        A row a point and policy, with the columns of `COLUMNS`.

    Raises:
        ValueError: A row is missing, is there twice, or is of no point of the grid.
    """
    given = list(rows)
    found = {(row.slots, row.load, row.replication, row.policy): row for row in given}
    wanted = [
        (point.slots, point.load, point.replication, name)
        for point in grid
        for name, _policy in point.policies
    ]
    if len(given) != len(wanted) or found.keys() != set(wanted):
        raise ValueError("the rows are not those of the grid")
    return pl.DataFrame([dataclasses.astuple(found[key]) for key in wanted], COLUMNS, orient="row")


def parquet(frame: pl.DataFrame, cost: StatedCost) -> bytes:
    """The table as the bytes of ``sweep.parquet``: the same table, the same bytes.

    The file's metadata say what the cost is and where it comes from, as ``sweep --json`` does.
    """
    file = io.BytesIO()
    metadata = {"schema": SCHEMA, "cost": CostRecord.of(cost).model_dump_json()}
    frame.write_parquet(file, compression="zstd", metadata=metadata)
    return file.getvalue()


def summary(frame: pl.DataFrame) -> list[SweepRow]:
    """Means over the replications of each point and policy.

    The interval is the middle 95 % of the replications: how far a figure of one traffic like this
    one may lie from the mean, not how well the mean is known. One replication gives no width.

    Args:
        frame: What `table` returned.

    Returns:
        A row a number of slots, load and policy, in the table's order.
    """
    keys = ["slots", "load", "policy"]
    measured = [name for name in COLUMNS if name in SweepRow.model_fields and name not in keys]
    measured.remove("requests")
    return [
        SweepRow(
            slots=group["slots"][0],
            load=group["load"][0],
            policy=group["policy"][0],
            replications=group.height,
            requests=group["requests"][0],
            **{name: _estimate(group[name]) for name in measured},
        )
        for group in frame.partition_by(keys, maintain_order=True)
    ]


def _estimate(values: pl.Series) -> Estimate | None:
    """None where the figure has no meaning in any replication."""
    known: list[float] = values.drop_nulls().to_list()
    if not known:
        return None
    low, high = interval(known)
    # math.fsum: the mean of equal values is that value, and no order of adding moves it.
    mean = math.fsum(known) / len(known)
    return Estimate(estimate=mean, low=low, high=high)
