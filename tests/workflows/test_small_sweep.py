"""The sweep that a diagnosis runs by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slotwise_sim import PerToken, Workload
from slotwise_workflows.compare.server import Server
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.small_sweep import MOST_REQUESTS, REPLICATIONS, SEARCHES, small_sweep

SERVER = Server(slots=4, replicas=1, cost=PerToken(10.0), max_delay_ms=0.0)


def traffic(n: int) -> Workload:
    rng = np.random.default_rng(2)
    return Workload(
        np.cumsum(rng.exponential(1.0, n)), rng.integers(1, 300, n), np.zeros(n, np.int64)
    )


def swept(workload: Workload, *, timed: bool = True, slots: int = 4) -> list[tuple[object, ...]]:
    found = small_sweep(
        workload,
        replace(SERVER, slots=slots),
        timed=timed,
        objectives={},
        thresholds=Thresholds(),
        seed=3,
    )
    assert found is not None
    return [
        (own.point.search, own.point.setting.slots, own.point.setting.load,
         own.point.setting.length_cv)
        for own in found.done
    ]  # fmt: skip


def test_what_is_varied_around_today() -> None:
    points = swept(traffic(300))
    assert {slots for search, slots, _, _ in points if not search} == {2, 4, 8, 16}
    assert {load for search, _, load, _ in points if not search} == {0.5, 1.0, 2.0}
    assert {slots for search, slots, _, _ in points if search} == {4}
    assert {cv for search, _, _, cv in points if search} == {None, 0.0, 0.5, 1.0, 1.5, 2.0}
    assert len(points) == 4 * 3 * REPLICATIONS + 6 * SEARCHES


def test_without_times_it_is_an_offline_job() -> None:
    points = swept(traffic(300), timed=False)
    assert {load for search, _, load, _ in points if not search} == {None}


def test_lengths_that_cannot_vary_so_much_are_not_asked_to() -> None:
    even = replace(traffic(300), output_tokens=np.full(300, 100))
    assert {cv for search, _, _, cv in swept(even) if search} == {None, 0.0}


def test_of_much_traffic_the_earliest_is_swept() -> None:
    backwards = traffic(MOST_REQUESTS + 500)
    backwards = Workload(
        backwards.arrival_s[::-1], backwards.output_tokens[::-1], backwards.prompt_tokens[::-1]
    )
    found = small_sweep(
        backwards, SERVER, timed=True, objectives={}, thresholds=Thresholds(), seed=3
    )
    assert found is not None
    kept = found.scenario.workload
    assert len(kept) == MOST_REQUESTS
    assert kept.arrival_s.max() == np.sort(backwards.arrival_s)[MOST_REQUESTS - 1]


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_requests_for_a_batch(n: int) -> None:
    found = small_sweep(
        traffic(n), SERVER, timed=True, objectives={}, thresholds=Thresholds(), seed=3
    )
    assert found is None
