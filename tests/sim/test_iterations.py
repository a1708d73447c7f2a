"""Servers that work in iterations, by hand: every term is in whole seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from slotwise_sim import Continuous, Outcome, Piece, Policy, Static, Step, Workload, simulate
from slotwise_sim.metrics import figures

EVERY_TERM = Step(1000, 1000, 1000, 1000, 1000)


def served(
    requests: Sequence[tuple[float, int, int]],
    policy: Policy,
    cost: Step,
    slots: int,
    cached: list[int] | None = None,
) -> Outcome:
    """Of requests that are (arrival in seconds, prompt, output)."""
    arrivals, prompts, outputs = zip(*requests, strict=True)
    workload = Workload(
        np.array(arrivals, dtype=np.float64),
        np.array(outputs),
        np.array(prompts),
        cached_tokens=None if cached is None else np.array(cached),
    )
    return simulate(workload, policy, cost, slots=slots)


def test_a_padded_batch_pays_for_its_largest_member_to_the_end() -> None:
    outcome = served([(0, 3, 3), (0, 1, 1)], Static(), EVERY_TERM, slots=2)
    # Prefill 1 + 2*3 + 2*9 = 25; then 1 + 2 + (4 + 2) = 9 and 1 + 2 + (5 + 3) = 11.
    assert outcome.first_token_s.tolist() == [25, 25]
    assert outcome.own_end_s.tolist() == [45, 25]
    assert outcome.end_s.tolist() == outcome.held_until_s.tolist() == [45, 45]
    assert outcome.busy_slot_s == 45 + 25


def test_without_padding_who_has_finished_costs_nothing() -> None:
    outcome = served([(0, 3, 3), (0, 1, 1)], Static("own", pad=False), EVERY_TERM, slots=2)
    # Prefill 1 + (3 + 1) + (9 + 1) = 15; then 1 + 1 + 4 = 6 and 1 + 1 + 5 = 7.
    assert outcome.first_token_s.tolist() == [15, 15]
    assert outcome.end_s.tolist() == [28, 15]
    assert outcome.held_until_s.tolist() == [28, 28]


def test_padding_takes_what_is_largest_after_the_cache() -> None:
    prefill_only = [(0, 10, 1), (0, 3, 1)]
    padded = served(prefill_only, Static(), EVERY_TERM, slots=2, cached=[9, 0])
    # The first has 1 token and 100 - 81 = 19 left, the second 3 and 9: 1 + 2*3 + 2*19.
    assert padded.end_s.tolist() == [45, 45]
    own = served(prefill_only, Static(pad=False), EVERY_TERM, slots=2, cached=[9, 0])
    assert own.end_s.tolist() == [1 + 4 + 28] * 2


@pytest.mark.parametrize(
    ("cached", "first_token_s", "end_s"),
    [(0, 1 + 4 + 16, 21 + 7), (3, 1 + 1 + (16 - 9), 9 + 7), (4, 1, 1 + 7)],
)
def test_cached_tokens_are_held_but_not_prefilled(
    cached: int, first_token_s: float, end_s: float
) -> None:
    for policy in (Static(), Continuous(), Continuous("separate")):
        outcome = served([(0, 4, 2)], policy, EVERY_TERM, slots=1, cached=[cached])
        assert outcome.first_token_s.tolist() == [first_token_s]
        assert outcome.end_s.tolist() == [end_s]


def test_chunks_fill_the_budget_in_order_of_admission() -> None:
    cost = Step(1000, per_seq_ms=1000, per_prefill_token_ms=1000)
    outcome = served([(0, 4, 3), (2, 2, 2)], Continuous(max_batched_tokens=3), cost, slots=2)
    # 0 to 4: three tokens of the first. 4 to 8: its fourth, and both of the second. 8 to 11: both
    # decode. 11 to 13: the first alone.
    assert outcome.start_s.tolist() == [0, 4]
    assert outcome.first_token_s.tolist() == [8, 8]
    assert outcome.end_s.tolist() == [13, 11]
    assert outcome.busy_slot_s == 13 + 7


@pytest.mark.parametrize(("prompt", "first_token_s"), [(1, 5), (0, 2)])
def test_a_budget_spent_on_decoding_leaves_prompts_nothing(
    prompt: int, first_token_s: float
) -> None:
    """Two decode from 1 to 4 under a budget of one token: a zero prompt needs none."""
    outcome = served(
        [(0, 0, 4), (0, 0, 4), (1, prompt, 1)],
        Continuous(max_batched_tokens=1),
        Step(1000),
        slots=3,
    )
    assert outcome.start_s.tolist() == [0, 0, 1]
    assert outcome.first_token_s.tolist() == [1, 1, first_token_s]


def test_a_zero_prompt_keeps_its_turn_behind_an_unfinished_chunk() -> None:
    outcome = served([(0, 5, 1), (0, 0, 1)], Continuous(max_batched_tokens=2), Step(1000), slots=2)
    assert outcome.first_token_s.tolist() == [3, 3]
    filled = served([(0, 2, 1), (0, 0, 1)], Continuous(max_batched_tokens=2), Step(1000), slots=2)
    assert filled.first_token_s.tolist() == [1, 1]


def test_separate_prefill_takes_whole_prompts_and_decodes_nothing() -> None:
    cost = Step(1000, per_prefill_token_ms=1000)
    policy = Continuous("separate", max_batched_tokens=4)
    outcome = served([(0, 3, 2), (0, 3, 2), (0, 0, 2)], policy, cost, slots=3)
    # The second prompt would exceed four tokens; the third needs none but stands behind it.
    assert outcome.first_token_s.tolist() == [4, 8, 8]
    assert outcome.end_s.tolist() == [9, 9, 9]


@pytest.mark.parametrize(
    ("prompts", "first_token_s"),
    [((9, 1), [10, 12]), ((9, 0), [10, 11]), ((0, 9), [1, 11]), ((4, 0), [5, 5])],
)
def test_separate_prefill_takes_the_first_prompt_and_what_does_not_exceed_the_budget(
    prompts: tuple[int, int], first_token_s: list[float]
) -> None:
    cost = Step(1000, per_prefill_token_ms=1000)
    policy = Continuous("separate", max_batched_tokens=4)
    outcome = served([(0, prompt, 1) for prompt in prompts], policy, cost, slots=2)
    assert outcome.first_token_s.tolist() == first_token_s


@pytest.mark.parametrize(("arrival_s", "start_s"), [(4.0, 4), (4.5, 8), (8.0, 8), (8.5, 12)])
def test_who_arrives_as_an_iteration_starts_is_in_it(arrival_s: float, start_s: float) -> None:
    outcome = served([(0, 0, 9), (arrival_s, 0, 1)], Continuous(), Step(4000), slots=2)
    assert outcome.start_s.tolist() == [0, start_s]
    assert outcome.first_token_s.tolist() == [4, start_s + 4]


def test_pieces_bend_what_decodes_and_the_prefill_base_what_does_not() -> None:
    cost = Step(1000, prefill_base_ms=3000, pieces=(Piece(2, 10_000),))
    outcome = served([(0, 0, 4), (3.5, 0, 2)], Continuous(), cost, slots=2)
    # 0 to 3: prefill alone. 3 to 4: one decodes. 4 to 5: also beside a prefill. 5 to 15: two.
    assert outcome.first_token_s.tolist() == [3, 5]
    assert outcome.end_s.tolist() == [15, 15]


def test_the_clock_jumps_over_idle_time() -> None:
    outcome = served([(0, 0, 1), (100.25, 0, 2)], Continuous(), Step(1000), slots=2)
    assert outcome.start_s.tolist() == [0, 100.25]
    assert outcome.end_s.tolist() == [1, 102.25]
    assert outcome.busy_slot_s == 3
    assert figures(outcome)["idle_share"] == pytest.approx(1 - 3 / (2 * 102.25))
