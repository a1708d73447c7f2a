"""What ran beside whom, read off instants: on cases that one can count by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from slotwise_sim import Continuous, Step, Workload, simulate
from slotwise_sim.observed import (
    Measured,
    apart,
    batch_range,
    most_at_once,
    shared,
    spans_s,
    stretches,
)


def measured(rows: Sequence[tuple[float, float, float, int, int]]) -> Measured:
    """Arrival, first token, end, prompt tokens and output tokens of each request."""
    arrival, first, end, prompt, output = (np.array(column) for column in zip(*rows, strict=True))
    return Measured(Workload(arrival.astype(float), output, prompt), first * 1.0, end * 1.0)


TWO_TOGETHER = [(0, 1, 11, 100, 11), (0, 1, 6, 200, 6)]


def test_sums_over_the_iterations_of_each_request() -> None:
    found = shared(measured(TWO_TOGETHER))
    assert found.iterations.tolist() == [10, 5]
    assert found.sequences == pytest.approx([15, 10])  # five iterations together, five alone
    # The second holds 201 to 205 in its five iterations, the first 101 to 110 in its ten; the
    # line through them is read at its middle, half a token lower.
    assert found.held_tokens == pytest.approx([1050 + 1012.5, 512.5 + 1012.5], rel=0.01)
    assert found.prefilled_tokens.tolist() == [0, 0]


def test_prompts_of_others_count_while_one_decodes() -> None:
    found = shared(measured([*TWO_TOGETHER, (2, 4, 5, 70, 2), (11, 12, 13, 9, 2)]))
    assert found.prefilled_tokens.tolist() == [70, 70, 0, 0]


def test_what_runs_beside_simulated_requests_adds_up_to_what_they_took() -> None:
    rng = np.random.default_rng(3)
    workload = Workload(
        np.cumsum(rng.exponential(0.3, 200)),
        rng.integers(2, 300, 200),
        rng.integers(1, 900, 200),
    )
    cost = Step(10, 0.4, 3e-4, 0.03)
    outcome = simulate(workload, Continuous(), cost, slots=64)
    found = shared(Measured(workload, outcome.first_token_s, outcome.end_s))
    spans_ms = (
        cost.base_ms * found.iterations
        + cost.per_seq_ms * found.sequences
        + cost.per_kv_token_ms * found.held_tokens
        + cost.per_prefill_token_ms * found.prefilled_tokens
    )
    assert spans_ms.sum() == pytest.approx(1000 * found.span_s.sum(), rel=0.03)


def test_idle_stretches_are_drawn_out_and_nothing_else() -> None:
    before = measured([(0, 1, 4, 1, 2), (2, 3, 5, 1, 2), (9, 10, 11, 1, 2), (20, 21, 22, 1, 2)])
    after = apart(before)
    shift = after.workload.arrival_s - before.workload.arrival_s
    assert shift.tolist() == [0, 0, 15, 21]
    assert (after.end_s - before.end_s).tolist() == shift.tolist()
    assert stretches(before).tolist() == stretches(after).tolist() == [0, 0, 1, 2]


def test_spans_of_stretches() -> None:
    stretch = np.array([3, 0, 3, 0])  # in any order, and some without requests
    begin, end = np.array([7.0, 1.0, 6.0, 0.0]), np.array([8.0, 2.0, 9.0, 4.0])
    assert spans_s(stretch, begin, end).tolist() == [4, 3]
    unsorted = measured([(9, 10, 11, 1, 2), (0, 1, 4, 1, 2), (2, 3, 5, 1, 2)])
    assert stretches(unsorted).tolist() == [1, 0, 0]


def test_requests_there_at_once_and_batches() -> None:
    assert most_at_once(measured([(0, 1, 4, 1, 2), (2, 3, 5, 1, 2), (5, 6, 7, 1, 2)])) == 2
    assert batch_range(measured(TWO_TOGETHER)) == (1, 2)
    assert batch_range(measured(TWO_TOGETHER), replicas=2) == (0.5, 1)


def test_instants_must_ascend() -> None:
    with pytest.raises(ValueError, match="must ascend"):
        measured([(2, 1, 3, 1, 2)])
    with pytest.raises(ValueError, match="must ascend"):
        measured([(0, 3, 2, 1, 2)])
    with pytest.raises(ValueError, match="shape"):
        Measured(Workload(np.zeros(2), np.ones(2, int), np.ones(2, int)), np.ones(1), np.ones(2))
