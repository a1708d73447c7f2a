"""What a sweep found: its two tables, their files, and their summary by setting and policy."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from slotwise_sim import Workload
from slotwise_sim.replicate import interval
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.record import Estimate
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.points import ARRIVING, SERVER
from slotwise_workflows.sweep.record import (
    SCHEMA,
    Failure,
    Here,
    SweepFigures,
    SweepLimit,
    SweepRow,
)
from slotwise_workflows.sweep.rows import Limit, Row
from slotwise_workflows.sweep.scenario import Scenario, offered_per_s

_TYPES = {"str": pl.String, "Arrivals": pl.String, "int": pl.Int64, "float": pl.Float64}


def _columns(kind: type[Row] | type[Limit]) -> dict[str, Any]:
    """Column names and types, in order; the class says what each means."""
    fields = dataclasses.fields(kind)
    return {field.name: _TYPES[str(field.type).removesuffix(" | None")] for field in fields}


COLUMNS = _columns(Row)
LIMIT_COLUMNS = _columns(Limit)
SETTING = (*SERVER, "arrivals", *ARRIVING)


def replays(done: Iterable[Done]) -> pl.DataFrame:
    """The replays as a table: a row a point and policy, in the order given."""
    return _frame((row for own in done if not own.point.search for row in own.rows), COLUMNS)


def limits(done: Iterable[Done]) -> pl.DataFrame:
    """The searches as a table: a row a point and policy, in the order given."""
    return _frame((row for own in done if own.point.search for row in own.rows), LIMIT_COLUMNS)


def _frame(rows: Iterable[Row | Limit], columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([dataclasses.astuple(row) for row in rows], columns, orient="row")


def parquet(frame: pl.DataFrame, costs: Mapping[str, CostRecord]) -> bytes:
    """A table as the bytes of its file: the same table, the same bytes.

    The file's metadata say what the costs are and where they come from, as ``sweep --json`` does.

    Args:
        frame: What `replays` or `limits` returned.
        costs: By the name that rows have them by.
    """
    file = io.BytesIO()
    told = {name: own.model_dump(mode="json") for name, own in costs.items()}
    metadata = {"schema": SCHEMA, "costs": json.dumps(told)}
    frame.write_parquet(file, compression="zstd", metadata=metadata)
    return file.getvalue()


def summary(frame: pl.DataFrame) -> list[SweepRow]:
    """Means over the replications of each setting and policy.

    The interval is the middle 95 % of the replications: how far a figure of one traffic like this
    one may lie from the mean, not how well the mean is known. One replication gives no width.

    Args:
        frame: What `replays` returned.

    Returns:
        A row a setting and policy, in the table's order.
    """
    measured = [name for name in COLUMNS if name in SweepRow.model_fields]
    return [
        SweepRow(**told, requests=group["requests"][0])
        for group, told in _groups(frame, (*SETTING, "policy"), {*measured} - {"requests"})
    ]


def limit_summary(frame: pl.DataFrame) -> list[SweepLimit]:
    """As `summary`, of what `limits` returned."""
    measured = {name for name in LIMIT_COLUMNS if name in SweepLimit.model_fields}
    return [SweepLimit(**told) for _, told in _groups(frame, (*SERVER, "policy"), measured)]


def failures(done: Sequence[Done]) -> list[Failure]:
    """The points that were not computed, in the order given."""
    return [
        Failure(
            **own.point.setting.values,
            replication=own.point.replication,
            limits=own.point.search,
            why=own.failure,
        )
        for own in done
        if own.failure
    ]


def figures_of(
    scenario: Scenario, done: Sequence[Done], *, slots: int | None = None
) -> SweepFigures:
    """What was found, setting by setting.

    Args:
        scenario: What was swept.
        done: Its points, in the order of the grid.
        slots: Of the server that is there, where it is known.
    """
    return SweepFigures(
        objectives=dict(scenario.objectives),
        thresholds={
            "gain_adopt": scenario.gain_adopt,
            "waiting_adopt": scenario.waiting_adopt,
        },
        baseline=scenario.baseline(),
        here=_here(scenario.workload, slots),
        rows=summary(replays(done)),
        limits=limit_summary(limits(done)),
    )


def _here(workload: Workload, slots: int | None) -> Here:
    tokens = workload.output_tokens
    return Here(
        requests=len(tokens),
        length_cv=float(tokens.std(ddof=1) / tokens.mean()) if len(tokens) > 1 else None,
        rate_per_s=offered_per_s(workload),
        slots=slots,
    )


def _groups(
    frame: pl.DataFrame, keys: Sequence[str], measured: set[str]
) -> Iterable[tuple[pl.DataFrame, dict[str, Any]]]:
    for group in frame.partition_by(keys, maintain_order=True):
        told = {name: group[name][0] for name in keys}
        estimates = {name: _estimate(group[name]) for name in sorted(measured - {*keys})}
        yield group, {**told, **estimates, "replications": group.height}


def _estimate(values: pl.Series) -> Estimate | None:
    """None where the figure has no meaning in some replication: a mean of the others would lie."""
    if values.null_count():
        return None
    known: list[float] = values.to_list()
    low, high = interval(known)
    # math.fsum: the mean of equal values is that value, and no order of adding moves it.
    return Estimate(estimate=math.fsum(known) / len(known), low=low, high=high)
