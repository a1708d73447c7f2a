"""The cost models, as values: how long tokens take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from slotwise_sim.workload import Floats


@dataclass(frozen=True, slots=True)
class PerToken:
    """A request occupies its slot for ``ms_per_token * output_tokens``, whatever else runs."""

    ms_per_token: float

    def __post_init__(self) -> None:
        if not 0 < self.ms_per_token < math.inf:
            raise ValueError("ms_per_token must be finite and > 0")


@dataclass(frozen=True, slots=True)
class Piece:
    """What an iteration costs while at least ``from_seqs`` sequences decode in it."""

    from_seqs: int
    base_ms: float
    per_seq_ms: float = 0.0
    per_kv_token_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """The server works in iterations; one lasts as long as what it decodes and prefills takes.

    An iteration lasts ``base_ms + per_seq_ms B + per_kv_token_ms K + per_prefill_token_ms P +
    per_prefill_token2_ms Q`` milliseconds, where B sequences decode in it, those hold K tokens, P
    prompt tokens are prefilled in it, and Q is the sum over requests of (prompt tokens prefilled
    after it)^2 - (before it)^2.

    Attributes:
        base_ms: Every iteration.
        per_seq_ms: Times B.
        per_kv_token_ms: Times K.
        per_prefill_token_ms: Times P.
        per_prefill_token2_ms: Times Q.
        prefill_base_ms: In place of ``base_ms`` where nothing decodes; None is ``base_ms``.
        pieces: In place of base, per_seq and per_kv_token from so many sequences on, ascending: a
            server whose iteration bends with the batch.
    """

    base_ms: float
    per_seq_ms: float = 0.0
    per_kv_token_ms: float = 0.0
    per_prefill_token_ms: float = 0.0
    per_prefill_token2_ms: float = 0.0
    prefill_base_ms: float | None = None
    pieces: tuple[Piece, ...] = ()

    def __post_init__(self) -> None:
        decoding = (Piece(1, self.base_ms, self.per_seq_ms, self.per_kv_token_ms), *self.pieces)
        prefilling = (
            self.per_prefill_token_ms,
            self.per_prefill_token2_ms,
            self.base_ms if self.prefill_base_ms is None else self.prefill_base_ms,
        )
        terms = [
            *prefilling,
            *(t for p in decoding for t in (p.base_ms, p.per_seq_ms, p.per_kv_token_ms)),
        ]
        if not all(0 <= term < math.inf for term in terms):
            raise ValueError("every term of a step cost must be finite and >= 0")
        for piece in decoding:
            if not piece.base_ms + piece.per_seq_ms > 0:
                where = (
                    "" if piece is decoding[0] else f" in the piece of from_seqs {piece.from_seqs}"
                )
                raise ValueError(
                    f"an iteration must take some time: base_ms or per_seq_ms must be > 0{where}"
                )
        if not all(below.from_seqs < above.from_seqs for below, above in pairwise(decoding)):
            raise ValueError("pieces must ascend in from_seqs, from 2 on")


Cost = PerToken | Step


ITERATION = np.dtype(
    [
        ("base_s", np.float64),
        ("kv_token_s", np.float64),
        ("prefill_token_s", np.float64),
        ("prefill_token2_s", np.float64),
    ]
)


def by_batch(cost: Step, slots: int) -> NDArray[np.void]:
    """What an iteration costs by the number of sequences that decode in it.

    Args:
        cost: The step cost.
        slots: Most sequences, >= 1.

    Returns:
        Seconds by b, shape (slots + 1,), dtype `ITERATION`: of the iteration itself, per token that
        those b sequences hold, per prompt token prefilled beside them, and per unit of attention's
        share of that. At b = 0 an iteration only prefills.
    """
    pieces = (Piece(0, cost.base_ms, cost.per_seq_ms, cost.per_kv_token_ms), *cost.pieces)
    begins = np.minimum([piece.from_seqs for piece in pieces], slots + 1)
    lengths = np.diff(begins, append=slots + 1)

    def over_its_piece(term: str) -> Floats:
        return np.repeat([float(getattr(piece, term)) for piece in pieces], lengths)

    sequences = np.arange(slots + 1)
    base_ms = over_its_piece("base_ms") + over_its_piece("per_seq_ms") * sequences
    if cost.prefill_base_ms is not None:
        base_ms[0] = cost.prefill_base_ms
    seconds = np.empty(slots + 1, ITERATION)
    seconds["base_s"] = base_ms / 1000
    seconds["kv_token_s"] = over_its_piece("per_kv_token_ms") / 1000
    seconds["prefill_token_s"] = cost.per_prefill_token_ms / 1000
    seconds["prefill_token2_s"] = cost.per_prefill_token2_ms / 1000
    return seconds
