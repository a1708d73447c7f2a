"""The log that a probe keeps of its requests: its name, and which of its rows tell a cost.

Its format is `slotwise_probe`, in `formats/own.py`.
"""

from __future__ import annotations

from pathlib import Path

NAME = "probe.jsonl"

SIZING, UNLIKE, EQUAL = "sizing", "unlike", "equal"
"""Names of requests: how many tokens a word is; unlike and equal prompts, to see a prefix cache."""

COST_ROWS = ("stage=cost", f"name!={EQUAL}")
"""Rows that a cost is fitted to. Equal prompts may not have been prefilled; what other stages sent
was to be looked at, or, as a replay, to be predicted."""

_PIECE = 1 << 20


def has_cost_rows(path: Path) -> bool:
    """Whether a file is a probe's, with rows of a cost stage; it is looked at piece by piece."""
    wanted, end = b'"stage": "cost"', b""
    if path.name != NAME or not path.is_file():
        return False
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if wanted in end + piece:
                return True
            end = piece[-len(wanted) :]
    return False
