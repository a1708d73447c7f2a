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
from slotwise_workflows.observe.starts import MOST_SERVERS, Starts, _batches, began_before
from slotwise_workflows.observe.timed import Timed, _resolution_s

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
