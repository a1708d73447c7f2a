"""The KV memory of a server, by hand: who is admitted, who is preempted, who never fits."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from slotwise_sim import (
    Binned,
    Continuous,
    Dynamic,
    Memory,
    NeverFitsError,
    Outcome,
    PerToken,
    Policy,
    Static,
    Step,
    Workload,
    simulate,
)

A_SECOND = Step(1000)


def workload_of(requests: Sequence[tuple[float, int, int]], caps: list[int] | None) -> Workload:
    """Of requests that are (arrival in seconds, prompt, output)."""
    arrivals, prompts, outputs = zip(*requests, strict=True)
    return Workload(
        np.array(arrivals, dtype=np.float64),
        np.array(outputs),
        np.array(prompts),
        max_tokens=None if caps is None else np.array(caps),
    )


def served(
    requests: Sequence[tuple[float, int, int]],
    memory: Memory,
    cost: Step = A_SECOND,
    policy: Policy | None = None,
    caps: list[int] | None = None,
) -> Outcome:
    policy = policy or Continuous()
    return simulate(workload_of(requests, caps), policy, cost, slots=8, memory=memory)


def test_admission_needs_a_block_more_than_it_takes() -> None:
    three_blocks = Memory(12, block_tokens=4)
    # The first takes one of three, the second needs two and takes one; the third would need two.
    one_each = served([(0, 4, 1)] * 3, three_blocks)
    assert one_each.start_s.tolist() == [0, 0, 1]
    # Five tokens are two blocks: beside the first only one is free.
    two_each = served([(0, 5, 1)] * 2, three_blocks)
    assert two_each.start_s.tolist() == [0, 1]


def test_tokens_short_of_a_block_are_not_memory() -> None:
    assert served([(0, 4, 1)] * 3, Memory(15, block_tokens=4)).start_s.tolist() == [0, 0, 1]
    assert served([(0, 4, 1)] * 3, Memory(16, block_tokens=4)).start_s.tolist() == [0, 0, 0]


def test_who_does_not_fit_yet_is_not_overtaken() -> None:
    outcome = served([(0, 8, 2), (0, 8, 1), (0, 0, 1)], Memory(16, block_tokens=4))
    assert outcome.start_s.tolist() == [0, 2, 2]


def test_a_chunked_prompt_takes_all_its_blocks_at_once() -> None:
    outcome = served(
        [(0, 8, 1), (0, 4, 1)],
        Memory(16, block_tokens=4),
        policy=Continuous(max_batched_tokens=2),
    )
    # Four blocks: the first holds two from its admission on, and the second needs two.
    assert outcome.start_s.tolist() == [0, 0]
    assert outcome.first_token_s.tolist() == [4, 6]
    tight = served(
        [(0, 8, 1), (0, 4, 1)],
        Memory(12, block_tokens=4),
        policy=Continuous(max_batched_tokens=2),
    )
    assert tight.start_s.tolist() == [0, 4]


def test_the_last_to_enter_is_preempted_and_recomputes_all_it_had() -> None:
    cost = Step(1000, per_prefill_token_ms=1000)
    outcome = served([(0, 2, 4), (0, 2, 4)], Memory(8, block_tokens=2), cost)
    # 0 to 5: both prompts. 5 to 7: tokens 3 and 4 fill two blocks each. At 7 both need a third: the
    # second leaves. At 8 the first ends, and the second prefills 2 + 3 tokens, which also yields
    # its fourth: 1 + 5.
    assert outcome.start_s.tolist() == [0, 0]
    assert outcome.first_token_s.tolist() == [5, 5]
    assert outcome.end_s.tolist() == [8, 14]
    assert outcome.preemptions == 1
    assert outcome.busy_slot_s == 8 + (7 + 6)


def test_a_cached_prompt_is_not_recomputed_either() -> None:
    cost = Step(1000, per_prefill_token_ms=1000, per_prefill_token2_ms=1000)
    workload = Workload(
        np.zeros(2), np.array([4, 4]), np.array([2, 2]), cached_tokens=np.array([2, 2])
    )
    outcome = simulate(workload, Continuous(), cost, slots=2, memory=Memory(8, block_tokens=2))
    # As above without prompts; what is recomputed are tokens 3 to 5: 1 + 3 + (25 - 4).
    assert outcome.first_token_s.tolist() == [1, 1]
    assert outcome.end_s.tolist() == [4, 4 + 25]


def test_victims_of_one_iteration_return_in_the_order_they_came() -> None:
    outcome = served([(0, 0, 6), (0, 0, 6), (3, 0, 3)], Memory(6, block_tokens=1))
    # At 4 all three grow and nothing is free: the third holds nothing yet, so the second leaves
    # too. At 5 two are free: enough for the third, but the second stands before it. At 6 the first
    # has ended and both are admitted; at 7 they are one block short, and the third leaves again.
    assert outcome.start_s.tolist() == [0, 0, 3]
    assert outcome.first_token_s.tolist() == [1, 1, 4]
    assert outcome.end_s.tolist() == [6, 8, 9]
    assert outcome.preemptions == 3
    assert outcome.busy_slot_s == 6 + (4 + 2) + (1 + 1 + 1)


CROWDED = [(0, 0, 6), (0, 0, 6), (3, 1, 2)]


def test_who_was_just_admitted_may_be_the_victim_and_keeps_its_start() -> None:
    outcome = served(CROWDED, Memory(6, block_tokens=1))
    # At 3 the third takes one of two free blocks, and the two before it need both.
    assert outcome.start_s.tolist() == [0, 0, 3]
    assert outcome.first_token_s.tolist() == [1, 1, 7]
    assert outcome.end_s.tolist() == [6, 8, 9]
    assert outcome.preemptions == 3
    assert outcome.busy_slot_s == 6 + (4 + 2) + (0 + 1 + 1)


def test_nothing_grows_while_prompts_are_prefilled_apart() -> None:
    outcome = served(CROWDED, Memory(6, block_tokens=1), policy=Continuous("separate"))
    # From 3 to 4 only the third prompt is prefilled. At 4 it leaves, at 5 so does the second.
    assert outcome.first_token_s.tolist() == [1, 1, 4]
    assert outcome.end_s.tolist() == [7, 9, 10]
    assert outcome.preemptions == 2
    assert outcome.busy_slot_s == 7 + (5 + 2) + (1 + 1)


def test_a_reserved_cap_is_held_for_life_and_counts_in_tokens() -> None:
    reserved = Memory(10, block_tokens=16, reserve="max_tokens")
    outcome = served([(0, 2, 2), (0, 1, 1), (0, 2, 3)], reserved, caps=[3, 4, 3])
    # Five and five fill it; the second ends at 1.
    assert outcome.start_s.tolist() == [0, 0, 1]
    assert outcome.end_s.tolist() == [2, 1, 4]
    assert outcome.preemptions == 0


@pytest.mark.parametrize("policy", [Static(), Dynamic(0), Binned(2)])
def test_batches_are_assumed_to_fit(policy: Policy) -> None:
    outcome = served([(0, 100, 9), (0, 100, 9)], Memory(1), policy=policy)
    assert outcome.end_s.tolist() == [9, 9]


def test_a_request_that_just_fits_runs_alone() -> None:
    # Blocks of four: eight tokens at most, and a block to be admitted.
    outcome = served([(0, 5, 4), (0, 5, 4)], Memory(12, block_tokens=4))
    assert outcome.end_s.tolist() == [4, 8]
    assert outcome.preemptions == 0


def test_the_first_request_that_never_fits_is_named() -> None:
    with pytest.raises(NeverFitsError, match="request 1 can never run") as paged:
        served([(0, 5, 4), (9, 5, 5), (1, 60, 60)], Memory(15, block_tokens=4))
    error = paged.value
    assert (error.row, error.needs, error.holds, error.unit) == (1, 4, 3, "blocks")
    with pytest.raises(NeverFitsError, match="request 2 can never run") as reserved:
        served([(0, 5, 4)] * 3, Memory(10, reserve="max_tokens"), caps=[5, 4, 6])
    error = reserved.value
    assert (error.row, error.needs, error.holds, error.unit) == (2, 11, 10, "tokens")


def test_the_error_crosses_processes() -> None:
    error = pickle.loads(pickle.dumps(NeverFitsError(3, 4, 2, "blocks")))
    assert str(error) == str(NeverFitsError(3, 4, 2, "blocks"))
    assert error.row == 3


def test_memory_limits_iterations_only() -> None:
    workload = workload_of([(0, 1, 1)], None)
    with pytest.raises(ValueError, match="step cost only"):
        simulate(workload, Continuous(), PerToken(8), slots=1, memory=Memory(100))


def test_caps_that_are_not_known_cannot_be_reserved() -> None:
    with pytest.raises(ValueError, match="max_tokens of every request"):
        served([(0, 1, 1)], Memory(100, reserve="max_tokens"))


@pytest.mark.parametrize(("kv_tokens", "block_tokens"), [(0, 16), (-1, 16), (16, 0)])
def test_no_memory_and_no_blocks_are_refused(kv_tokens: int, block_tokens: int) -> None:
    with pytest.raises(ValueError, match="must be >= 1"):
        Memory(kv_tokens, block_tokens)


def test_a_cap_of_all_that_32_bits_hold_is_a_cap() -> None:
    """Each holds nearly all of the memory, so they run one after the other."""
    three = Workload(np.zeros(3), np.full(3, 5), np.full(3, 7), np.full(3, 2**31 - 1))
    memory = Memory(3 * 10**9, reserve="max_tokens")
    outcome = simulate(three, Continuous(), Step(1000.0), slots=3, memory=memory)
    assert outcome.end_s.tolist() == [5, 10, 15]


def test_more_tokens_than_the_loops_can_count_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 2147483647 tokens"):
        Workload(np.zeros(2), np.array([2**31 - 1, 1]), np.array([0, 1]))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Continuous(prefill="chunked"),  # type: ignore[arg-type]
        lambda: Static(release="none"),  # type: ignore[arg-type]
        lambda: Memory(16, reserve="page"),  # type: ignore[arg-type]
    ],
)
def test_a_name_that_does_not_exist_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        build()
