"""What is counted, held against brute force, closed forms and processes of known rate."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from slotwise_workflows.observe.ends import Ends, count_ends
from slotwise_workflows.observe.likelihood import _of, likelihoods
from slotwise_workflows.observe.sharing import _columns
from slotwise_workflows.observe.starts import (
    MOST_SERVERS,
    Starts,
    _batches,
    _beside,
    _held,
    _most_at_once,
    began_before,
)
from slotwise_workflows.observe.timed import PACE_MARGIN, Timed, _pace, _resolution_s

NOTHING_ENDED = Ends(0, 0, 0.0, 0, 0)


def timed(
    arrival: list[float],
    earliest: list[float],
    latest: list[float],
    end: list[float],
    *,
    tokens: int | list[int] = 100,
    tolerance: float = 0.0,
    streamed: bool = True,
) -> Timed:
    order = np.argsort(latest, kind="stable")
    every = np.broadcast_to(tokens, len(end))
    return Timed(
        arrival=np.asarray(arrival)[order],
        earliest=np.asarray(earliest)[order],
        latest=np.asarray(latest)[order],
        end=np.asarray(end)[order],
        tokens=every[order].astype(np.int64),
        streamed=streamed,
        pace=0.02,
        tolerance=tolerance,
        in_turn=False,
    )


spans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 15)), min_size=1, max_size=7
)


@given(spans=spans)
def test_the_fewest_batches_are_the_fewest_instants_that_hit_all_bounds(
    spans: list[tuple[int, int, int]],
) -> None:
    earliest = [float(at) for at, _, _ in spans]
    latest = [at + width for at, (_, width, _) in zip(earliest, spans, strict=True)]
    end = [last + more for last, (_, _, more) in zip(latest, spans, strict=True)]
    block = timed(earliest, earliest, latest, end)
    joins = began_before(block)
    found = _batches(joins, block)
    for j in range(len(block)):
        running = np.flatnonzero(joins[:, j])
        instants = sorted(set(block.latest[running]))
        fewest = next(
            n
            for n in range(len(running) + 1)
            if any(
                all(any(block.earliest[i] <= t <= block.latest[i] for t in chosen) for i in running)
                for chosen in combinations(instants, n)
            )
        )
        assert found[j] == fewest


def serial_logged_late(late_s: list[float]) -> Timed:
    """Answers of 100 tokens, one after the other: 1.98 s each, all sent at once."""
    n = len(late_s)
    first = np.arange(n) * 2.0
    return timed(
        [0.0] * n, first.tolist(), first.tolist(), (first + 1.98 + late_s).tolist(), tolerance=0.1
    )


@pytest.mark.parametrize("late_s", [[0.0] * 9, [0.5] * 9, [0.0, 0.5, 3.0, 0.1, 1.0, 0.2, 0.7, 2.0]])
def test_ends_that_are_logged_late_are_no_joins(late_s: list[float]) -> None:
    block = serial_logged_late(late_s)
    joins = began_before(block)
    assert not joins.any()
    assert _most_at_once(block) == 1
    assert _beside(block) == (0, len(late_s) - 2)  # the second came with the first
    if max(late_s) <= 0.5:
        assert _held(block, np.zeros(len(block), dtype=bool))[1:].all()


def test_a_start_within_the_time_of_anothers_tokens_is_a_join() -> None:
    block = timed([0.0, 1.0], [0.0, 1.0], [0.0, 1.5], [3.0, 4.0], tolerance=0.1)
    assert began_before(block).tolist() == [[False, True], [False, False]]


def test_without_first_tokens_an_end_is_as_logged() -> None:
    block = timed([0.0, 1.0], [0.0, 1.0], [0.0, 2.5], [3.0, 4.0], streamed=False)
    assert block.surely_until().tolist() == [3.0, 4.0]
    assert began_before(block)[0, 1]


@pytest.mark.parametrize("late_s", [0.0, 0.5, 2.0])
def test_the_pace_has_no_lateness_in_it(late_s: float) -> None:
    tokens = np.random.default_rng(0).integers(50, 250, 1000)
    assert _pace(np.float64(0.02) * (tokens - 1) + late_s, tokens) == pytest.approx(0.02, rel=0.01)


def test_lengths_that_are_alike_show_no_lateness_and_leave_a_margin() -> None:
    tokens = np.full(100, 101)
    assert _pace(np.full(100, 2.0), tokens) == pytest.approx(PACE_MARGIN * 0.02)


@pytest.mark.parametrize("late", [0.0, 1.0, 3.0])
def test_what_runs_beside_is_counted_whenever_ends_are_logged(late: float) -> None:
    """Answers of two seconds: the second begins halfway through the first, the third after both."""
    first = [0.0, 1.0, 3.0]
    end = [at + 2.0 + late for at in first]
    block = timed([0.0] * 3, first, first, end, tokens=101, tolerance=0.1)
    columns, usable = _columns(block, 0)
    assert usable == len(columns) == 3
    assert columns[:, 1] == pytest.approx([0.5, 0.5, 0.0])


@given(seen=st.integers(0, 60), more=st.integers(0, 60), a=st.floats(0.5, 50), b=st.floats(0.5, 50))
def test_the_likelihood_is_beta_binomial(seen: int, more: int, a: float, b: float) -> None:
    expected = betabinom.logpmf(seen, seen + more, a, b)
    assert _of(seen, seen + more, (a, b)) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_a_long_log_counts_as_two_hundred() -> None:
    assert _of(500, 1000, (1.0, 1.0)) == pytest.approx(_of(100, 200, (1.0, 1.0)))


def starts(*, met: int = 200, joined: tuple[int, ...] = (), held: int = 0) -> Starts:
    counted = (*joined, *[0] * (MOST_SERVERS + 1 - len(joined)))
    return Starts(met, counted, counted[0], held, 0, 0, 0, 0, 0, 0)


@given(joins=st.integers(0, 200))
def test_joins_never_speak_against_continuous(joins: int) -> None:
    few = likelihoods(starts(joined=(joins,)), NOTHING_ENDED, 0.0, 1)
    more = likelihoods(starts(joined=(min(joins + 20, 200),)), NOTHING_ENDED, 0.0, 1)
    assert more["continuous"] >= few["continuous"] - 0.12  # of few joins nothing is made
    if joins >= 60:
        assert more["continuous"] > 0.99


@given(held=st.integers(0, 190))
def test_waits_speak_against_continuous(held: int) -> None:
    few = likelihoods(starts(held=held), NOTHING_ENDED, 0.0, None)
    more = likelihoods(starts(held=held + 10), NOTHING_ENDED, 0.0, None)
    assert more["continuous"] <= few["continuous"]
    if held > 10:
        assert few["continuous"] < 0.01


@given(joins=st.integers(100, 300))
def test_as_many_waits_as_joins_leave_it_open(joins: int) -> None:
    counted = starts(met=400, joined=(joins,), held=joins)
    found = likelihoods(counted, NOTHING_ENDED, 0.0, 1)
    assert max(found[kind] for kind in ("continuous", "serial", "static", "dynamic")) < 0.9


def test_more_waits_than_joins_are_never_continuous() -> None:
    counted = starts(met=700, joined=(289,), held=329)
    assert likelihoods(counted, NOTHING_ENDED, 0.0, 1)["continuous"] < 0.5


@pytest.mark.parametrize("joined", [(180,) * 4, (180,) * (MOST_SERVERS + 1)])
def test_however_many_run_at_once_they_may_be_servers_unless_they_slow_one_another(
    joined: tuple[int, ...],
) -> None:
    counted = starts(joined=joined)
    found = likelihoods(counted, NOTHING_ENDED, 0.0, None)
    assert found["several"] > 0.2
    assert likelihoods(counted, NOTHING_ENDED, 12.0, None)["continuous"] > 0.9
    assert likelihoods(counted, NOTHING_ENDED, 0.0, 1)["continuous"] > 0.99


@given(slower=st.floats(0, 40))
def test_slowing_speaks_as_much_for_what_is_not_explained(slower: float) -> None:
    counted = starts(joined=(150,), held=20)
    odds = [
        found["continuous"] / found["unexplained"]
        for found in (likelihoods(counted, NOTHING_ENDED, score, 1) for score in (0.0, slower))
    ]
    assert odds[1] == pytest.approx(odds[0], rel=1e-6)


def test_chance_ties_as_many_ends_as_are_expected() -> None:
    """Ends that come as a Poisson process of three a second, seen with a tolerance of 0.1 s."""
    rng = np.random.default_rng(4)
    n = 4000
    end = np.cumsum(rng.exponential(1 / 3, n)) + 100
    tokens = rng.integers(20, 400, n)
    arrival = end - 0.02 * tokens - rng.uniform(0, 5, n)
    found = count_ends(
        timed(
            arrival.tolist(),
            arrival.tolist(),
            (end - 0.02 * tokens).tolist(),
            end.tolist(),
            tokens=tokens.tolist(),
            tolerance=0.1,
        )
    )
    assert found.apart > 2000
    assert found.expected / found.apart == pytest.approx(-np.expm1(-0.3), rel=0.05)
    assert found.tied == pytest.approx(found.expected, abs=4 * np.sqrt(found.expected))


@pytest.mark.parametrize("clock_s", [1.0, 0.1, 0.01, 0.001])
def test_a_clocks_ticks_are_found(clock_s: float) -> None:
    stamps = np.random.default_rng(0).uniform(0, 1e5, 500)
    assert _resolution_s(np.floor(stamps / clock_s) * clock_s) == clock_s
    assert _resolution_s(stamps) < 1e-5
