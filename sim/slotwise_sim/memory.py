"""The KV memory of a server: how much it holds, and how a request takes its share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from slotwise_sim.policies import one_of
from slotwise_sim.workload import Bools, Ints, Workload

Reserve = Literal["paged", "max_tokens"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Tokens one server can hold.

    Attributes:
        kv_tokens: Capacity in tokens.
        block_tokens: Tokens of a block; paged memory is given out in whole blocks.
        reserve: ``paged`` grows block by block as a request generates; ``max_tokens`` holds prompt
            and cap from admission to end.
    """

    kv_tokens: int
    block_tokens: int = 16
    reserve: Reserve = "paged"

    def __post_init__(self) -> None:
        if self.kv_tokens < 1:
            raise ValueError(f"kv_tokens must be >= 1, got {self.kv_tokens}")
        if self.block_tokens < 1:
            raise ValueError(f"block_tokens must be >= 1, got {self.block_tokens}")
        one_of(Reserve, "reserve", self.reserve)


class NeverFitsError(ValueError):
    """A request is too large for the memory, however little else runs.

    Attributes:
        row: Its row in the workload.
        needs: What it needs, in ``unit``.
        holds: What there is.
        unit: ``blocks`` or ``tokens``.
    """

    def __init__(self, row: int, needs: int, holds: int, unit: str) -> None:
        super().__init__(row, needs, holds, unit)
        self.row, self.needs, self.holds, self.unit = row, needs, holds, unit

    def __str__(self) -> str:
        return (
            f"request {self.row} can never run: it needs {self.needs} {self.unit} of KV memory,"
            f" and there are {self.holds}"
        )


def reserved_tokens(workload: Workload) -> Ints:
    """What each request holds under contiguous reservation: its prompt and its cap, shape (n,).

    Raises:
        ValueError: The caps are not known.
    """
    if workload.max_tokens is None:
        raise ValueError("reserving max_tokens needs the max_tokens of every request")
    return workload.prompt_tokens + workload.max_tokens


def check_fits(workload: Workload, memory: Memory) -> None:
    """Makes sure that every request can run when it is alone.

    Raises:
        NeverFitsError: One cannot; the first such row is named.
        ValueError: The caps are not known, and are to be reserved.
    """
    if memory.reserve == "max_tokens":
        needs, holds, unit = reserved_tokens(workload), memory.kv_tokens, "tokens"
    else:
        most = workload.prompt_tokens + workload.output_tokens - 1
        needs = -(-most // memory.block_tokens) + 1
        holds, unit = memory.kv_tokens // memory.block_tokens, "blocks"
    never: Bools = needs > holds
    if never.any():
        row = int(np.argmax(never))
        raise NeverFitsError(row, int(needs[row]), holds, unit)
