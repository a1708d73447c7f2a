"""The cost models, as values: how long tokens take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

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
        if not all(piece.base_ms + piece.per_seq_ms > 0 for piece in decoding):
            raise ValueError("an iteration must take some time: base_ms or per_seq_ms must be > 0")
        if not all(below.from_seqs < above.from_seqs for below, above in pairwise(decoding)):
            raise ValueError("pieces must ascend in from_seqs, from 2 on")


Cost = PerToken | Step


def decode_seconds(cost: Step, slots: int) -> tuple[Floats, Floats]:
    """What an iteration costs by the number of sequences that decode in it.

    Args:
        cost: The step cost.
        slots: Most sequences, >= 1.

    Returns:
        Seconds of an iteration in which b sequences decode, without their tokens, and seconds per
        token they hold; both of shape (slots + 1,), indexed by b. At b = 0 the first is the base of
        an iteration that only prefills.
    """
    base, per_seq, per_kv = (np.empty(slots + 1) for _ in range(3))
    for piece in (Piece(0, cost.base_ms, cost.per_seq_ms, cost.per_kv_token_ms), *cost.pieces):
        base[piece.from_seqs :] = piece.base_ms
        per_seq[piece.from_seqs :] = piece.per_seq_ms
        per_kv[piece.from_seqs :] = piece.per_kv_token_ms
    if cost.prefill_base_ms is not None:
        base[0] = cost.prefill_base_ms
    return (base + per_seq * np.arange(slots + 1)) / 1000, per_kv / 1000
