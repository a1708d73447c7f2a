"""What a log says by itself, against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim.workload import Workload
from slotwise_workflows.measure.arrivals import arrival_figures, busiest_window, within
from slotwise_workflows.measure.inspection import inspect
from slotwise_workflows.measure.lengths import histogram, length_figures
from slotwise_workflows.measure.prefixes import repeated_prefix_share
from slotwise_workflows.measure.segments import segmentations
from slotwise_workflows.traffic.model import CANONICAL, Traffic, made_traffic


def workload(arrival_s: list[float], tokens: list[int]) -> Workload:
    return Workload(
        np.array(arrival_s, dtype=float),
        np.array(tokens, dtype=np.int64),
        np.zeros(len(tokens), dtype=np.int64),
    )


def log(arrival_s: list[float], tokens: list[int], **columns: list[object]) -> Traffic:
    made = made_traffic(workload(arrival_s, tokens), format_id="made")
    named = {name.replace("__", "."): values for name, values in columns.items()}
    added = [
        pl.Series(name, values, dtype=CANONICAL.get(name, pl.String()))
        for name, values in named.items()
    ]
    return replace(made, table=made.table.with_columns(added))


def test_the_figures_of_a_sample() -> None:
    figures = length_figures(np.array([10, 20, 30, 100]))
    assert figures.mean == 40
    assert figures.p50 == 25
    assert figures.p95 == pytest.approx(89.5)  # 30 + 0.85 * 70
    assert figures.std == pytest.approx((900 + 400 + 100 + 3600) ** 0.5 / 3**0.5)
    assert figures.cv == pytest.approx((5000 / 3) ** 0.5 / 40)


def test_one_request_has_no_spread() -> None:
    figures = length_figures(np.array([10]))
    assert (figures.std, figures.cv, figures.p95) == (None, None, 10)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=300))
def test_a_histogram_counts_every_request_once(tokens: list[int]) -> None:
    bars = histogram(np.array(tokens))
    assert sum(bars.counts) == len(tokens)
    assert len(bars.counts) <= 40
    for position, count in enumerate(bars.counts):
        low = bars.start + position * bars.width
        assert count == sum(low <= t < low + bars.width for t in tokens)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=40),
    st.integers(1, 30),
)
def test_the_busiest_window_asks_for_most_tokens(
    requests: list[tuple[int, int]], span: int
) -> None:
    arrival = [float(a) for a, _ in requests]
    asked = workload(arrival, [t for _, t in requests])
    window = busiest_window(asked, float(span))
    if max(arrival) - min(arrival) <= span:
        assert within(asked, window).output_tokens.sum() == asked.output_tokens.sum()
        return
    best = max(sum(t for a, t in requests if start <= a < start + span) for start in set(arrival))
    start = min(arrival) + window.start_s
    assert sum(t for a, t in requests if start <= a < start + span) == best


def test_arrivals_over_time() -> None:
    figures = arrival_figures(log([0.0, 10.0, 20.0, 60.0], [1, 1, 1, 1]))
    assert figures is not None
    assert figures.span_s == 60
    assert figures.rate_per_s == pytest.approx(3 / 60)
    assert sum(figures.rate_by_bin) * figures.bin_s == pytest.approx(4)
    assert figures.gap_cv == pytest.approx(np.std([10, 10, 40], ddof=1) / 20)


def test_a_coarse_clock_says_nothing_about_bursts() -> None:
    coarse = replace(log([0.0, 0.0, 3.0, 3.0], [1, 1, 1, 1]), flags=("time_resolution:3s",))
    figures = arrival_figures(coarse)
    assert figures is not None
    assert figures.gap_cv is None


@pytest.mark.parametrize("unknown", [True, False])
def test_no_figures_without_arrivals_or_with_one(unknown: bool) -> None:
    single = log([5.0], [10]) if not unknown else replace(log([0, 1], [1, 2]), clock=None)
    assert arrival_figures(single) is None


def test_a_route_that_makes_all_the_variation() -> None:
    routes: list[object] = ["short", "long"] * 20
    split = replace(log(list(range(40)), [10, 500] * 20, route=routes), segments=("route",))
    found = segmentations(split, np.random.default_rng(0))["route"]
    assert found.between_share == 1.0
    assert list(found.values) == ["long", "short"]
    assert found.values["long"].token_share == pytest.approx(500 / 510)
    assert found.values["long"].gain_bound["8"].estimate == 1.0
    assert found.others == 0


def test_a_route_that_makes_none_of_it() -> None:
    routes: list[object] = ["a", "a", "b", "b"] * 10
    split = replace(log(list(range(40)), [10, 500] * 20, route=routes), segments=("route",))
    found = segmentations(split, np.random.default_rng(0))["route"]
    assert found.between_share == pytest.approx(0.0)


def test_repeated_prefix_blocks_are_counted_in_order_of_arrival() -> None:
    blocks: list[object] = [[1, 2, 9], [1, 2, 3], [1, 5]]
    traffic = log([2.0, 0.0, 1.0], [1, 1, 1], prefix_hash_ids=blocks)
    # in order: [1 2 3] new, [1 5] repeats 1, [1 2 9] repeats 1 2: three of eight
    assert repeated_prefix_share(traffic) == pytest.approx(3 / 8)


def test_cached_tokens_stand_in_for_blocks() -> None:
    traffic = log(
        [0.0, 1.0],
        [1, 1],
        gen_ai__usage__input_tokens=[100, 300],
        gen_ai__usage__cache_read__input_tokens=[0, 100],
    )
    assert repeated_prefix_share(traffic) == pytest.approx(0.25)
    assert repeated_prefix_share(log([0.0], [1])) is None


def test_an_inspection_accounts_for_the_log() -> None:
    traffic = log([1.5, 0.5, 2.5], [10, 20, 30], e2e_latency=[1.0, None, 3.0])
    traffic = replace(traffic, rows=5, excluded={"failed": 2}, flags=("reordered",))
    found = inspect(traffic)
    assert found.rows == found.requests + sum(found.excluded.values())
    assert found.arrival is not None
    assert (found.arrival.first, found.arrival.last) == (0.5, 2.5)
    assert found.latency_s is not None
    assert (found.latency_s.n, found.latency_s.mean) == (2, 2.0)
    assert found.ttft_s is None
    # pairs of 10 20 30: longest 20, 30, 30
    assert found.gain_bound["2"].estimate == pytest.approx((80 / 3) / 20)
    assert "4" not in found.gain_bound
