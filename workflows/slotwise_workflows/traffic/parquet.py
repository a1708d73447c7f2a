"""The canonical table as a file, for the run directory and for other tools."""

from __future__ import annotations

from pathlib import Path

from slotwise_workflows.files import replacing
from slotwise_workflows.traffic.model import Traffic


def write_parquet(traffic: Traffic, path: Path) -> None:
    """Writes the canonical table and its segments; whole, or not at all.

    The file can be read again as a log (format ``slotwise_traffic``). The same traffic gives the
    same bytes.

    Raises:
        InputError: The place cannot be written to.
    """
    with replacing(path) as temporary:
        traffic.table.write_parquet(temporary, compression="zstd", statistics=True)
