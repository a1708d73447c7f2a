"""The canonical table as a file, for the run directory and for other tools."""

from __future__ import annotations

import os
from pathlib import Path

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.model import Traffic


def write_parquet(traffic: Traffic, path: Path) -> None:
    """Writes the canonical table and its segments; whole, or not at all.

    The file can be read again as a log (format ``slotwise_traffic``). The same traffic gives the
    same bytes.

    Raises:
        InputError: The place cannot be written to.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            traffic.table.write_parquet(unfinished, compression="zstd", statistics=True)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            "the table cannot be written",
            where=str(path),
            why=error.strerror or type(error).__name__,
            hint="Choose another output directory",
        ) from None
