"""Samples as rows of the file in which a probe keeps them, and those that a cost is fitted to."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slotwise_workflows.probe.files import REQUESTS, requests_jsonl
from slotwise_workflows.probe.model import Sample

if TYPE_CHECKING:
    from slotwise_workflows.traffic import Traffic

SIZING, UNLIKE, EQUAL = "sizing", "unlike", "equal"
"""Names of requests: how many tokens a word is; unlike and equal prompts, to see a prefix cache."""

COST_ROWS = ("stage=cost", f"name!={EQUAL}")
"""Rows of a probe that a cost is fitted to. Equal prompts may not have been prefilled; what other
stages sent was to be looked at, or, as a replay, to be predicted."""

_PIECE = 1 << 20


def traffic_of(samples: Sequence[Sample], where: Sequence[str] = ()) -> Traffic:
    """Samples as a log, by way of the very file in which a probe keeps them.

    Raises:
        InputError: No row is left.
    """
    from slotwise_workflows.traffic import ReadOptions, read_traffic

    with tempfile.TemporaryDirectory(prefix="slotwise-") as directory:
        path = Path(directory, REQUESTS)
        path.write_bytes(requests_jsonl(samples))
        options = ReadOptions(format="slotwise_probe", where=tuple(where))
        return read_traffic([str(path)], options)


def has_cost_rows(path: Path) -> bool:
    """Whether a file is a probe's, with rows of a cost stage; it is looked at piece by piece."""
    wanted, end = b'"stage": "cost"', b""
    if path.name != REQUESTS or not path.is_file():
        return False
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if wanted in end + piece:
                return True
            end = piece[-len(wanted) :]
    return False
