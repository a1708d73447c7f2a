"""Costs are found again from what they made of requests, and refused where they cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration_intervals import SERVERS, TRUTH, holds, requests
from calibration_intervals import seen as measure
from slotwise_sim import Continuous, Memory, NeverFitsError, Piece, Static, Step, Workload, simulate
from slotwise_sim.calibration import GIVABLE, TERMS, calibrate, errors, hold_out
from slotwise_sim.fitting import (
    MOST_SAVED,
    ContradictionError,
    Fit,
    UnidentifiableError,
    fit,
    problem_of,
    start_of,
)
from slotwise_sim.observed import Measured
from slotwise_sim.replay import Replay, Server, errors_of

ROOMY = Server(Continuous(), slots=64)


def iteration_ms(cost: Step, sequences: int) -> float:
    pieces = [Piece(1, cost.base_ms, cost.per_seq_ms), *cost.pieces]
    piece = [p for p in pieces if p.from_seqs <= sequences][-1]
    return piece.base_ms + piece.per_seq_ms * sequences


@pytest.mark.parametrize("name", SERVERS)
def test_a_known_cost_is_found_again(name: str) -> None:
    server, rate = SERVERS[name]
    rng = np.random.default_rng(7)
    seen = measure(requests(200, rate, rng), TRUTH, server, rng)
    found = calibrate(seen, server)
    assert found.step.base_ms == pytest.approx(TRUTH.base_ms, rel=0.05)
    assert found.step.per_prefill_token_ms == pytest.approx(TRUTH.per_prefill_token_ms, rel=0.15)
    for sequences in (1, 8):
        assert iteration_ms(found.step, sequences) == pytest.approx(
            iteration_ms(TRUTH, sequences), rel=0.03
        )
    assert found.bend_seqs is None
    assert abs(found.errors.latency_mean) < 0.02
    assert abs(found.errors.ttft_mean) < 0.02


def test_preemptions_are_told_where_there_are_any() -> None:
    counts = {}
    for name in ("chunked prefill", "preempting"):
        server, rate = SERVERS[name]
        rng = np.random.default_rng(7)
        workload = requests(200, rate, rng)
        counts[name] = calibrate(measure(workload, TRUTH, server, rng), server).preemptions
    assert counts["chunked prefill"] == 0
    server, _ = SERVERS["preempting"]
    truly = simulate(workload, server.policy, TRUTH, slots=64, memory=server.memory).preemptions
    assert truly > 5
    assert counts["preempting"] == pytest.approx(truly, rel=0.3)


def test_intervals_cover_the_truth() -> None:
    hits: list[bool] = []
    for seed, (server, rate) in enumerate(3 * list(SERVERS.values())):
        rng = np.random.default_rng(100 + seed)
        seen = measure(requests(150, rate, rng), TRUTH, server, rng)
        hits += holds(calibrate(seen, server, given={"per_kv_token_ms": 0})).values()
    assert np.mean(hits) >= 0.85


def test_what_kv_tokens_cost_is_told_where_it_matters() -> None:
    cost = Step(base_ms=10, per_seq_ms=0.1, per_kv_token_ms=8e-4, per_prefill_token_ms=0.02)
    rng = np.random.default_rng(11)
    workload = replace(
        requests(250, 2.0, rng, output_mean=200), prompt_tokens=rng.choice([20, 3000], 250)
    )
    found = calibrate(measure(workload, cost, ROOMY, rng, noise=0.01), ROOMY)
    assert found.terms["per_kv_token_ms"].how == "fitted"
    assert found.step.per_kv_token_ms == pytest.approx(8e-4, rel=0.15)


def test_a_cost_that_bends_with_the_batch_is_told_from_one_that_does_not() -> None:
    # A mixture of experts: until 16 sequences have all experts in use, each brings in more.
    bent = Step(5, 1.2, 0, 0.03, pieces=(Piece(16, 22.6, 0.1),))
    rng = np.random.default_rng(5)
    steady = requests(200, 4.0, rng, output_mean=400)
    thinned = replace(steady, arrival_s=np.where(np.arange(200) < 120, 1.0, 2.5) * steady.arrival_s)
    found = calibrate(measure(thinned, bent, ROOMY, rng, noise=0.005), ROOMY)
    assert found.bend_seqs in {8, 16, 32}
    for sequences in (2, 8, 40):
        assert iteration_ms(found.step, sequences) == pytest.approx(
            iteration_ms(bent, sequences), rel=0.12
        )
    bend = found.terms["bend"]
    assert 0 <= bend.low <= bend.value <= bend.high <= MOST_SAVED
    straight = calibrate(measure(thinned, TRUTH, ROOMY, rng, noise=0.005), ROOMY)
    assert straight.bend_seqs is None


def test_the_interval_of_a_bend_ends_where_a_bend_must(monkeypatch: pytest.MonkeyPatch) -> None:
    bent = Step(5, 1.2, 0, 0.03, pieces=(Piece(16, 22.6, 0.1),))
    rng = np.random.default_rng(5)
    workload = requests(150, 4.0, rng, output_mean=300)
    seen = measure(workload, bent, ROOMY, rng, noise=0.005)
    monkeypatch.setattr("slotwise_sim.calibration.half_widths", lambda _, fit: of_any(fit))

    def of_any(found: Fit) -> dict[str, float]:
        return {term: 1.0 if term == "bend" else 0.1 for term in found.shares}

    bend = calibrate(seen, ROOMY, given={"per_kv_token_ms": 0.0}).terms["bend"]
    assert (bend.low, bend.high) == (0, MOST_SAVED)


def test_more_at_once_than_slots_is_a_contradiction() -> None:
    rng = np.random.default_rng(20)
    seen = measure(requests(80, 3.0, rng), TRUTH, ROOMY, rng)
    with pytest.raises(ContradictionError, match="and 2 x 1 slots are told"):
        calibrate(seen, Server(Continuous(), 1, replicas=2))


def test_preempted_requests_are_no_contradiction() -> None:
    rng = np.random.default_rng(21)
    tight = Server(Continuous(), 8, memory=Memory(1800))
    seen = measure(requests(150, 20.0, rng), TRUTH, tight, rng)
    found = calibrate(seen, tight, given={"per_kv_token_ms": 0.0})
    assert found.preemptions > 0
    assert found.batch[1] <= 8


def test_clients_that_wait_for_answers_do_not_bias_the_cost() -> None:
    """Eight in flight on eight slots, and batches of eight sent together."""
    rng = np.random.default_rng(2)
    output = 2 + rng.exponential(100, 160).astype(np.int64)
    prompt = np.full(160, 30)
    arrival, ends = np.zeros(160), np.zeros(0)
    for batch in range(20):
        rows = slice(8 * batch, 8 * batch + 8)
        arrival[rows] = ends.max(initial=0.0) + 0.01
        group = Workload(arrival[rows], output[rows], prompt[rows])
        ends = simulate(group, Continuous(), TRUTH, slots=8).end_s
    seen = measure(Workload(arrival, output, prompt), TRUTH, Server(Continuous(), 9), rng)
    found = calibrate(seen, Server(Continuous(), 8))
    for sequences in (1, 8):
        assert iteration_ms(found.step, sequences) == pytest.approx(
            iteration_ms(TRUTH, sequences), rel=0.03
        )


def test_a_batch_of_one_size_is_refused() -> None:
    rng = np.random.default_rng(1)
    workload = Workload(np.zeros(160), np.full(160, 80), np.full(160, 30))
    server = Server(Continuous(), 8)
    seen = measure(workload, TRUTH, server, rng)
    with pytest.raises(UnidentifiableError, match="all the same batch size: per_seq_ms is not"):
        calibrate(seen, server)
    given = calibrate(seen, server, given={"per_seq_ms": TRUTH.per_seq_ms, "overhead_ms": 20})
    assert given.step.base_ms == pytest.approx(TRUTH.base_ms, rel=0.02)
    assert given.terms["per_seq_ms"].how == "given"
    assert given.overhead_ms == 20


def test_static_batches_are_fitted_too() -> None:
    rng = np.random.default_rng(4)
    server = Server(Static(release="own", pad=False), 8)
    seen = measure(requests(160, 1.0, rng), TRUTH, server, rng)
    found = calibrate(seen, server)
    assert found.step.base_ms == pytest.approx(TRUTH.base_ms, rel=0.06)


def test_too_few_requests_are_refused() -> None:
    rng = np.random.default_rng(1)
    seen = measure(requests(19, 3.0, rng), TRUTH, ROOMY, rng)
    with pytest.raises(UnidentifiableError, match="at least 20 requests"):
        calibrate(seen, ROOMY)


def test_answers_that_come_at_once_are_refused() -> None:
    rng = np.random.default_rng(1)
    seen = measure(requests(60, 3.0, rng), TRUTH, ROOMY, rng)
    with pytest.raises(UnidentifiableError, match="came together"):
        calibrate(replace(seen, first_token_s=seen.end_s), ROOMY)


def test_prompts_that_are_not_known_cost_nothing() -> None:
    rng = np.random.default_rng(8)
    workload = replace(requests(150, 3.0, rng), prompt_tokens=np.zeros(150, np.int64))
    found = calibrate(measure(workload, TRUTH, ROOMY, rng), ROOMY)
    assert found.terms["per_prefill_token_ms"].how == "not_identified"
    assert found.step.per_prefill_token_ms == 0
    assert found.step.base_ms == pytest.approx(TRUTH.base_ms, rel=0.05)


def test_half_a_run_predicts_the_other() -> None:
    rng = np.random.default_rng(9)
    seen = measure(requests(240, 3.5, rng), TRUTH, ROOMY, rng)
    held = hold_out(seen, ROOMY)
    assert (held.fitted, held.judged) == (120, 120)
    assert abs(held.errors.latency_mean) < 0.05
    assert abs(held.errors.latency_p95) < 0.05
    assert held.errors.busy is None  # requests kept coming to the end


def test_the_order_of_the_rows_is_no_matter() -> None:
    rng = np.random.default_rng(12)
    seen = measure(requests(80, 3.0, rng), TRUTH, ROOMY, rng)
    mixed = rng.permutation(80)
    workload = seen.workload
    again = Measured(
        Workload(
            workload.arrival_s[mixed], workload.output_tokens[mixed], workload.prompt_tokens[mixed]
        ),
        seen.first_token_s[mixed],
        seen.end_s[mixed],
    )
    given = {"per_kv_token_ms": 0.0}
    found, other = calibrate(seen, ROOMY, given=given), calibrate(again, ROOMY, given=given)
    assert other.step.base_ms == pytest.approx(found.step.base_ms, rel=1e-6)
    assert found == calibrate(seen, ROOMY, given=given)


def test_the_last_bits_of_a_start_do_not_lead_to_another_fit() -> None:
    # two machines' linear algebra differ in them, and what is simulated jumps
    rng = np.random.default_rng(12)
    problem = problem_of(measure(requests(80, 3.0, rng), TRUTH, ROOMY, rng), ROOMY, {}, None)
    start = start_of(problem)
    found = fit(problem, start, None).shares
    for bits in (-1e-15, 1e-15, 3e-15):
        assert fit(problem, {t: s * (1 + bits) for t, s in start.items()}, None).shares == found


def test_errors_are_relative_and_signed() -> None:
    rng = np.random.default_rng(13)
    seen = measure(requests(60, 0.2, rng), TRUTH, ROOMY, rng, noise=0)
    found = calibrate(seen, ROOMY, given={"per_seq_ms": 0.4})
    slower = replace(found, step=replace(found.step, base_ms=2 * found.step.base_ms))
    everything = np.ones(60, dtype=np.bool_)
    assert abs(errors(found, seen, ROOMY, everything).latency_mean) < 0.01
    assert 0.5 < errors(slower, seen, ROOMY, everything).latency_mean < 1.5


@pytest.mark.parametrize(
    ("rate", "busy"),
    [
        (0.02, pytest.approx(0.30, abs=0.02)),  # most requests alone on the server
        (3.0, None),  # it is never empty: the arrivals alone say how long the run was
        (200.0, pytest.approx(0.30, abs=0.02)),  # all there at once
    ],
)
def test_a_cost_that_is_too_high_is_busy_too_long(rate: float, busy: object) -> None:
    rng = np.random.default_rng(16)
    seen = measure(requests(100, rate, rng), TRUTH, ROOMY, rng, noise=0)
    given = {"per_kv_token_ms": 0.0, "overhead_ms": 20.0, "per_seq_ms": TRUTH.per_seq_ms}
    found = calibrate(seen, ROOMY, given=given)
    slow = Step(1.3 * TRUTH.base_ms, 1.3 * TRUTH.per_seq_ms, 0, 1.3 * TRUTH.per_prefill_token_ms)
    rows = np.ones(100, dtype=np.bool_)
    assert errors(replace(found, step=slow), seen, ROOMY, rows).busy == busy


def test_time_busy_is_that_of_the_judged_requests() -> None:
    """Of a backlog's second half, the first half's time is no part."""
    workload = Workload(np.arange(8.0) / 1000, np.full(8, 101), np.zeros(8, np.int64))
    one = Server(Static(release="own", pad=False), 4)
    outcome = simulate(workload, one.policy, Step(10), slots=4)
    seen = Measured(workload, outcome.first_token_s, outcome.end_s)
    twice = Replay(2 * seen.first_token_s, seen.end_s + 0.2, 0)
    rows = np.arange(8) >= 4
    judged_s = seen.end_s.max() - workload.arrival_s[4]
    assert errors_of(twice, seen, rows).busy == pytest.approx(0.2 / judged_s)


GIVEN = {
    "base_ms": TRUTH.base_ms,
    "per_seq_ms": TRUTH.per_seq_ms,
    "per_prefill_token_ms": TRUTH.per_prefill_token_ms,
}


def test_what_is_left_is_fitted_where_most_terms_are_given() -> None:
    rng = np.random.default_rng(17)
    seen = measure(requests(80, 3.0, rng), TRUTH, ROOMY, rng)
    found = calibrate(seen, ROOMY, given=GIVEN)
    assert found.overhead_ms == pytest.approx(20, abs=6)
    assert found.step == TRUTH
    found = calibrate(seen, ROOMY, given={**GIVEN, "overhead_ms": 20.0})
    assert found.terms["per_kv_token_ms"].how == "not_identified"
    assert abs(found.errors.latency_mean) < 0.01


def test_nothing_left_to_fit_is_refused() -> None:
    rng = np.random.default_rng(17)
    seen = measure(requests(80, 3.0, rng), TRUTH, ROOMY, rng)
    every = {**GIVEN, "overhead_ms": 20.0, "per_kv_token_ms": 0.0}
    with pytest.raises(UnidentifiableError, match="every term is given: nothing is left to fit"):
        calibrate(seen, ROOMY, given=every)


def test_a_given_term_is_no_part_of_what_the_start_explains() -> None:
    cost = Step(base_ms=10, per_seq_ms=0.1, per_kv_token_ms=4e-3, per_prefill_token_ms=0.02)
    rng = np.random.default_rng(18)
    seen = measure(requests(200, 2.0, rng), cost, ROOMY, rng)
    problem = problem_of(seen, ROOMY, {"per_kv_token_ms": 4e-3, "per_seq_ms": 0.1}, None)
    start_ms = start_of(problem)["base_ms"] * problem.unit["base_ms"]
    assert start_ms == pytest.approx(10, rel=0.1)


def test_a_refusal_names_what_was_given() -> None:
    rng = np.random.default_rng(19)
    seen = measure(requests(80, 3.0, rng), TRUTH, ROOMY, rng)
    with pytest.raises(UnidentifiableError, match="not identifiable beside the given base_ms: its"):
        calibrate(seen, ROOMY, given={"base_ms": 9e8})


def test_batches_of_several_servers_are_compared_unrounded() -> None:
    """4 and 5 sequences on two servers are 2 and 2.5 on each: alike, though 2.5 rounds up to 3."""
    arrival = np.repeat(np.arange(20) * 10.0, 5)
    output = np.where(np.arange(100) % 5 == 0, 50, 100)
    workload = Workload(arrival, output, np.full(100, 9))
    pair = Server(Continuous(), 8, replicas=2)
    seen = Measured(workload, arrival + 1, arrival + 1 + (output - 1) / 50)
    with pytest.raises(UnidentifiableError, match=r"\(2 to 2\.5 sequences decoded in 90 %"):
        calibrate(seen, pair)


def test_progress_is_told() -> None:
    rng = np.random.default_rng(14)
    seen = measure(requests(60, 3.0, rng), TRUTH, ROOMY, rng)
    heard: list[tuple[int, int]] = []
    calibrate(seen, ROOMY, on_progress=lambda done, of: heard.append((done, of)))
    assert heard[0][0] == 1
    assert heard[-1][0] == heard[-1][1]


def test_what_is_given_must_have_a_name_and_fit() -> None:
    rng = np.random.default_rng(15)
    seen = measure(requests(60, 3.0, rng), TRUTH, ROOMY, rng)
    with pytest.raises(ValueError, match="'per_seq' cannot be given"):
        calibrate(seen, ROOMY, given={"per_seq": 1})
    with pytest.raises(NeverFitsError):
        calibrate(seen, replace(ROOMY, memory=Memory(100)))
    assert set(GIVABLE) | {"bend"} == set(TERMS)
