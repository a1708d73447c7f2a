"""Capacity, the busiest hour and the pictures, against closed forms and counting."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slotwise_sim import Workload
from slotwise_sim.article import article_workload
from slotwise_sim.workload import all_at_once
from slotwise_workflows.compare.capacity import capacity, sustainable_per_s
from slotwise_workflows.compare.load import busiest_hour, shared_batches
from slotwise_workflows.compare.pictures import timeline, what_if
from slotwise_workflows.compare.server import Server, possible_servers, stated_server
from slotwise_workflows.facts import Facts, Range, gather
from slotwise_workflows.given import Given
from slotwise_workflows.traffic.model import made_traffic

ARTICLE = Server(slots=8, replicas=1, ms_per_token=8.0, max_delay_ms=0.0)


def facts(**given: Any) -> Facts:
    return gather(made_traffic(article_workload(), format_id="made"), Given(**given))


def described(**changes: Any) -> Facts:
    return facts(**({"slots": 8, "ms_per_token": 8.0, "replicas": 1, "mode": "online"} | changes))


def test_what_each_policy_can_sustain() -> None:
    """The article's lengths: continuous 5.1/s and static 1.8/s by its measured idle shares."""
    per_s = sustainable_per_s(article_workload().output_tokens, ARTICLE, 2.85)
    mean = float(article_workload().output_tokens.mean())
    assert per_s["continuous"] == pytest.approx(8 / (mean * 0.008))
    assert per_s["dynamic"] == pytest.approx(per_s["continuous"] / 2.85)
    assert per_s["serial"] == pytest.approx(per_s["continuous"] / 8)


def test_a_backlogged_server_reaches_what_it_can_sustain() -> None:
    rng = np.random.default_rng(5)
    tokens = rng.integers(40, 1000, 40_000)
    backlog = Workload(np.zeros(40_000), tokens, np.zeros(40_000, dtype=np.int64))
    found = capacity(tokens, described(), in_order=True, rng=rng)
    assert found is not None
    sustained = sustainable_per_s(tokens, ARTICLE, found.gain.estimate)
    for policy in ("dynamic", "continuous"):
        makespan = float(ARTICLE.run(backlog, policy).end_s.max())
        assert 40_000 / makespan == pytest.approx(sustained[policy], rel=0.01)


def test_the_gain_carries_the_assumed_slots() -> None:
    tokens = article_workload().output_tokens
    found = capacity(tokens, facts(), in_order=True, rng=np.random.default_rng(1))
    assert found is not None
    assert found.few.estimate < found.gain.estimate < found.many.estimate
    assert found.gain.low == min(found.few.low, found.gain.low)
    assert found.gain.high >= found.many.estimate


def test_replicas_form_batches_of_every_nth_request() -> None:
    """Short and long in turns: two servers behind round robin each see equal lengths."""
    tokens = np.tile([10, 500], 200)
    two = capacity(tokens, described(replicas=2), in_order=True, rng=np.random.default_rng(1))
    assert two is not None
    assert two.gain.estimate == pytest.approx(1.0, abs=0.06)  # but for the seam between the two
    assert two.bound.estimate == pytest.approx(1.95, abs=0.02)


def test_a_sample_smaller_than_a_batch_has_no_capacity() -> None:
    tokens = np.array([10, 20, 30])
    assert capacity(tokens, described(), in_order=True, rng=np.random.default_rng(1)) is None


def test_the_corners_of_what_is_assumed() -> None:
    found = list(possible_servers(facts()))
    assert {(s.slots, s.ms_per_token) for s in found} == {
        (slots, ms) for slots in (4, 64) for ms in (10.0, 50.0)
    }
    assert list(possible_servers(described())) == [stated_server(described())]


def busy(workload: Workload, known: Facts, **objectives: float) -> Any:
    return busiest_hour(workload, known, objectives, 0.2, np.random.default_rng(3))


def test_the_articles_hour_is_overloaded() -> None:
    hour = busy(article_workload(), described())
    assert hour.load.utilisation.estimate > 5
    assert hour.load.adopt_from_load == 1.0
    # the article's own ratio, 4.37, from first arrivals and a server that waits for full batches
    assert hour.latency_ratio.estimate == pytest.approx(4.37, abs=0.15)
    low, high = hour.latency_ratio.low, hour.latency_ratio.high
    assert low < hour.latency_ratio.estimate < high


def test_the_load_from_which_it_pays_is_found() -> None:
    slow = replace(article_workload(), arrival_s=article_workload().arrival_s * 60)
    found = busy(slow, described(ms_per_token=2.0)).load
    assert found.adopt_from_load > 1
    at = replace(slow, arrival_s=slow.arrival_s / (found.adopt_from_load * 1.02))
    assert busy(at, described(ms_per_token=2.0)).load.adopt_from_load == 1.0


def test_servers_are_counted_up_to_the_objective() -> None:
    known = described()
    hour = busy(article_workload(), known, latency=10.0)
    needed = hour.load.servers_for_objective
    reached = [
        np.quantile(
            (o := replace(ARTICLE, replicas=n).run(hour.workload, "continuous")).end_s
            - o.arrival_s,
            0.95,
        )
        for n in (needed - 1, needed)
    ]
    assert reached[0] > 10.0 >= reached[1] * 0.99
    assert busy(article_workload(), known, latency=0.01).load.servers_for_objective is None


def test_sharing_a_batch_needs_two_at_a_time() -> None:
    spaced = Workload(
        np.arange(0.0, 100_000.0, 1000.0), np.full(100, 100), np.zeros(100, dtype=np.int64)
    )
    assert shared_batches(spaced, described(), 10) == 0.0
    assert shared_batches(all_at_once(spaced), described(), 10) == 1.0
    # four arrive at once: the first is served alone, the other three share the next batch
    fours = replace(spaced, arrival_s=np.repeat(np.arange(25) * 1e6, 4))
    assert shared_batches(fours, described(), 1) in {0.75, 1.0}


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_picture_holds_all_slot_time_of_its_window(replicas: int) -> None:
    picture = timeline(article_workload(), replace(ARTICLE, replicas=replicas), assumed_pace=False)
    for policy, bars in (("static", picture.static), ("continuous", picture.continuous)):
        busy_s = sum(bar.own_end_s - bar.start_s for bar in bars)
        assert picture.idle_slot_s[policy] == pytest.approx(picture.slots * picture.span_s - busy_s)
        for slot in range(picture.slots):
            own = sorted((b.start_s, b.held_until_s) for b in bars if b.slot == slot)
            assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(own))
        assert max(bar.slot for bar in bars) < picture.slots
    assert picture.idle_slot_s["continuous"] < picture.idle_slot_s["static"]


def test_the_small_sweep_says_where_it_overloads() -> None:
    points = {(p.slots, p.load): p for p in what_if(article_workload(), ARTICLE, 12.0)}
    assert set(points) == {(s, load) for s in (4, 8, 16, 32) for load in (0.5, 1.0, 2.0)}
    here = points[8, 1.0]
    assert here.overloaded == {"dynamic": True, "continuous": True}
    assert not points[32, 1.0].overloaded["continuous"]
    assert here.latency_mean_s["continuous"] == pytest.approx(34.62, abs=0.01)
    unknown = what_if(all_at_once(article_workload()), ARTICLE, None)
    assert {p.load for p in unknown} == {0.0}
    assert all(not p.latency_mean_s and not p.overloaded for p in unknown)


def test_ranges_have_an_order() -> None:
    assert Range(1, 1, 1, "given", "given").exact
    assert not Range(1, 2, 3, "assumed", "assumed_range").exact
