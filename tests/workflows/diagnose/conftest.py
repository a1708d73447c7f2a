"""Small made-up logs, each of one kind of traffic, and their diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import ArrayLike

from slotwise_sim.workload import Workload
from slotwise_workflows.diagnose import diagnose
from slotwise_workflows.given import Given
from slotwise_workflows.recommend import codes
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.result import Diagnosis, Provenance, Result
from slotwise_workflows.traffic.model import CANONICAL, Traffic, made_traffic

Make = Callable[..., Traffic]
Ask = Callable[..., Result]

NOTHING_TOLD = Given()


@pytest.fixture
def make() -> Make:
    """A log from arrivals (None: unknown) and lengths, with further canonical columns."""

    def build(
        arrival_s: ArrayLike | None,
        output_tokens: ArrayLike,
        *,
        columns: dict[str, Any] | None = None,
        **traffic: Any,
    ) -> Traffic:
        tokens = np.asarray(output_tokens, dtype=np.int64)
        n = len(tokens)
        arrival = np.zeros(n) if arrival_s is None else np.asarray(arrival_s, dtype=float)
        made = made_traffic(
            Workload(arrival, tokens, np.zeros(n, dtype=np.int64)), format_id="made"
        )
        table = made.table.with_columns(
            pl.Series(
                name, value if isinstance(value, list) else [value] * n, dtype=CANONICAL[name]
            )
            if name in CANONICAL
            else pl.Series(name, value)
            for name, value in (columns or {}).items()
        )
        clock = None if arrival_s is None else made.clock
        return replace(made, table=table, clock=clock, **traffic)

    return build


@pytest.fixture
def ask() -> Ask:
    """The diagnosis of a log."""

    def run(traffic: Traffic, given: Given = NOTHING_TOLD, seed: int = 1) -> Result:
        nowhere = Provenance(
            slotwise="0",
            python="",
            platform="",
            packages={},
            seed=seed,
            command=[],
            inputs=[],
            config={},
            created=None,
        )
        result = diagnose(
            traffic, given, name="made", seed=seed, thresholds=Thresholds(), provenance=nowhere
        ).result
        for diagnosis in (result, *result.models):
            assert_sentences_are_complete(diagnosis)
        return result

    return run


def assert_sentences_are_complete(diagnosis: Diagnosis) -> None:
    """Every code is known and carries exactly the numbers its sentence names."""
    for reasons, known in (
        (diagnosis.reasons, codes.REASONS),
        (diagnosis.limits, codes.LIMITS),
        (diagnosis.actions, codes.ACTIONS),
        (diagnosis.alternatives, codes.ALTERNATIVES),
        (diagnosis.flip, codes.FLIPS),
    ):
        for reason in reasons:
            assert set(reason.numbers) == set(known[reason.code]), reason.code
    assert {fact.name for fact in diagnosis.facts} <= set(codes.FACTS)
    assert {fact.basis for fact in diagnosis.facts} <= set(codes.BASES)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261129)
