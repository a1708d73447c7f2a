from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import Continuous, PerToken, Workload, simulate
from slotwise_workflows.compare.enough import (
    MOST_SERVERS,
    band,
    fewest_servers,
    first,
    highest,
    lowest,
    meets,
)

edges = st.floats(0.01, 1)


@given(edges)
def test_the_highest_value_is_found_from_above(edge: float) -> None:
    found = highest(lambda value: value <= edge, 1.0)
    assert found <= edge
    assert found >= edge / 1.01


@given(edges, st.floats(1.11, 50))
def test_the_highest_of_a_band_is_found(edge: float, width: float) -> None:
    """As of a server that waits for full batches: too slow at low loads, too."""
    found = highest(lambda value: edge / width <= value <= edge, 1.0, closely=True)
    assert edge / 1.01 <= found <= edge


@given(edges, st.floats(1.5, 50))
def test_a_band_has_two_ends(edge: float, width: float) -> None:
    found = band(lambda value: edge / width <= value <= edge, 1.0)
    assert found.low is not None
    assert found.high is not None
    assert edge / 1.01 <= found.high <= edge
    assert edge / width <= found.low <= edge / width * 1.01


@given(edges)
def test_the_first_value_is_found_from_below(edge: float) -> None:
    """Though it does not hold at the top."""
    found = first(lambda value: edge <= value <= 2 * edge, 8.0)
    assert found is not None
    assert edge <= found <= edge * 1.01


@given(edges)
def test_the_lowest_value_is_found_from_above(edge: float) -> None:
    found = lowest(lambda value: value >= edge, 1.0)
    assert edge <= found <= edge * 1.01


def test_always_and_never() -> None:
    assert highest(lambda _: True, 3.0) == 3.0
    assert highest(lambda _: False, 3.0) == 0.0
    assert lowest(lambda _: True, 3.0) == 0.0
    assert band(lambda _: False, 3.0) == (None, None)
    assert band(lambda _: True, 3.0) == (0.0, 3.0)
    assert first(lambda _: False, 3.0) is None
    assert first(lambda _: True, 3.0) == 0.0


@given(st.integers(1, MOST_SERVERS), st.integers(1, MOST_SERVERS))
def test_the_fewest_servers(needed: int, carrying: int) -> None:
    asked: list[int] = []

    def enough(servers: int) -> bool:
        asked.append(servers)
        return servers >= needed

    assert fewest_servers(enough, carrying) == max(needed, carrying)
    assert len(asked) <= 25


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 20))
def test_a_band_of_servers_is_found(carrying: int, least: int, more: int) -> None:
    """More of them may be worse: batches no longer fill."""
    held = range(max(carrying, least), max(carrying, least) + least // 8 + more + 1)
    assert fewest_servers(lambda servers: servers in held, carrying, closely=True) == held[0]


def test_more_servers_than_there_could_be() -> None:
    assert fewest_servers(lambda _: False, 1) is None


@pytest.mark.parametrize(
    ("objectives", "met"),
    [({}, True), ({"latency": 2.0}, True), ({"latency": 1.9}, False), ({"ttft": 1.0}, False)],
)
def test_both_objectives_count(objectives: dict[str, float], met: bool) -> None:
    """Two of 1 s on one slot: the second waits a second, and for its first token 1.01 s."""
    two = Workload(np.zeros(2), np.full(2, 100), np.zeros(2, np.int64))
    outcome = simulate(two, Continuous(), PerToken(10.0), slots=1)
    assert meets(outcome, objectives) == met
