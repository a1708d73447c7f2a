"""The files of a sweep's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from slotwise_workflows.costs import CostRecord
from slotwise_workflows.files import write_file
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.table import limits, parquet, replays

SWEEP = "sweep.parquet"
LIMITS = "limits.parquet"


def write_sweep(
    done: Sequence[Done], costs: Mapping[str, CostRecord], directory: Path
) -> list[Path]:
    """Writes ``sweep.parquet`` and ``limits.parquet``, those that have rows; returns their paths.

    Args:
        done: The points of a sweep, in the order of its grid.
        costs: What tokens or iterations cost, by the name that rows have them by.
        directory: Where to.

    Raises:
        InputError: The directory cannot be written.
    """
    tables = {SWEEP: replays(done), LIMITS: limits(done)}
    return [
        write_file(directory / name, parquet(table, costs))
        for name, table in tables.items()
        if table.height
    ]
