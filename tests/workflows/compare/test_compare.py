"""Capacity, the busiest hour and the pictures, against closed forms and counting."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slotwise_sim import PerToken, Workload
from slotwise_sim.article import article_workload
from slotwise_sim.metrics import percentile
from slotwise_sim.workload import Ints, all_at_once
from slotwise_workflows.compare.capacity import Capacity, capacity, capacity_per_s
from slotwise_workflows.compare.load import Load, busiest_hour, shared_batches
from slotwise_workflows.compare.pictures import timeline
from slotwise_workflows.compare.server import Server, possible_servers, stated_server
from slotwise_workflows.compare.sustained import MOST_SIMULATED
from slotwise_workflows.compare.what_if import what_if
from slotwise_workflows.facts import Facts, Range, gather
from slotwise_workflows.given import Given
from slotwise_workflows.traffic.model import made_traffic

ARTICLE = Server(slots=8, replicas=1, cost=PerToken(8.0), max_delay_ms=0.0)


def facts(**given: Any) -> Facts:
    return gather(made_traffic(article_workload(), format_id="made"), Given(**given))


def described(**changes: Any) -> Facts:
    return facts(**({"slots": 8, "ms_per_token": 8.0, "replicas": 1, "mode": "online"} | changes))


def stated(known: Facts) -> Server:
    return stated_server(known, Given())


def waiting(tokens: Ints) -> Workload:
    return Workload(np.zeros(len(tokens)), tokens, np.zeros(len(tokens), dtype=np.int64))


def found(tokens: Ints, known: Facts, seed: int = 1) -> Capacity | None:
    rng = np.random.default_rng(seed)
    return capacity(waiting(tokens), stated(known), known, in_order=True, rng=rng)


def test_what_each_policy_can_sustain() -> None:
    """The article's lengths: continuous 5.1/s and static 1.8/s by its measured idle shares."""
    per_s = capacity_per_s(article_workload(), ARTICLE, 2.85)
    mean = float(article_workload().output_tokens.mean())
    assert per_s["continuous"] == pytest.approx(8 / (mean * 0.008))
    assert per_s["dynamic"] == pytest.approx(per_s["continuous"] / 2.85)
    assert per_s["serial"] == pytest.approx(per_s["continuous"] / 8)


def test_a_backlogged_server_reaches_what_it_can_sustain() -> None:
    rng = np.random.default_rng(5)
    tokens = rng.integers(40, 1000, 40_000)
    backlog = waiting(tokens)
    own = found(tokens, described())
    assert own is not None
    sustained = capacity_per_s(backlog, ARTICLE, own.gain.estimate)
    for policy in ("dynamic", "continuous"):
        makespan = float(ARTICLE.run(backlog, policy).end_s.max())
        assert 40_000 / makespan == pytest.approx(sustained[policy], rel=0.01)


def test_the_gain_carries_the_assumed_slots() -> None:
    own = found(article_workload().output_tokens, facts())
    assert own is not None
    few, eight, many = (own.by_slots[slots] for slots in (4, 8, 64))
    assert few.estimate < eight.estimate == own.gain.estimate < many.estimate
    assert own.gain.low == few.low
    assert own.gain.high == many.high


def test_replicas_form_batches_of_every_nth_request() -> None:
    """Short and long in turns: two servers behind round robin each see equal lengths."""
    tokens = np.tile([10, 500], 200)
    two = found(tokens, described(replicas=2))
    assert two is not None
    assert two.gain.estimate == pytest.approx(1.0, abs=0.06)  # but for the seam between the two
    assert two.bound.estimate == pytest.approx(1.95, abs=0.02)


def test_a_sample_smaller_than_a_batch_has_no_capacity() -> None:
    assert found(np.array([10, 20, 30]), described()) is None


def test_the_corners_of_what_is_assumed() -> None:
    corners = list(possible_servers(stated(facts()), facts()))
    assert {(s.slots, s.cost) for s in corners} == {
        (slots, PerToken(ms)) for slots in (4, 64) for ms in (10.0, 50.0)
    }
    assert list(possible_servers(stated(described()), described())) == [stated(described())]


def busy(workload: Workload, known: Facts, **objectives: float) -> Load:
    rng = np.random.default_rng(3)
    server = stated(known)
    own = capacity(all_at_once(workload), server, known, in_order=True, rng=rng)
    assert own is not None
    return busiest_hour(workload, server, known, own.by_slots, objectives, 0.2, rng)


def test_the_articles_hour_is_overloaded() -> None:
    hour = busy(article_workload(), described())
    assert hour.overload.estimate > 5
    assert hour.adopt_from_load == 1.0
    # the article's own ratio, 4.37, from first arrivals and a server that waits for full batches
    ratio = hour.latency_ratio
    assert ratio.estimate == pytest.approx(4.37, abs=0.15)
    assert ratio.low < ratio.estimate < ratio.high
    assert hour.waiting.estimate == pytest.approx(1 - 1 / ratio.estimate)


def test_the_spread_over_replications_is_that_of_fresh_traffic() -> None:
    """20,000 fresh traces of the article: idle 63.2-67.6 % and 0.9-4.6 %, makespans 2.64-3.01."""
    spread = busy(article_workload(), described(max_delay_ms=math.inf)).replications
    idle, refilled = spread["idle_share.dynamic"], spread["idle_share.continuous"]
    assert idle.low == pytest.approx(0.632, abs=0.02)
    assert idle.high == pytest.approx(0.676, abs=0.02)
    assert refilled.high == pytest.approx(0.046, abs=0.015)
    makespan = spread["makespan_ratio"]
    assert makespan.estimate == pytest.approx(326.4 / 120.3, rel=1e-3)
    assert makespan.low == pytest.approx(2.635, abs=0.15)
    assert makespan.high == pytest.approx(3.006, abs=0.15)
    p95 = spread["latency_p95_s.continuous"]
    assert p95.estimate == pytest.approx(60.26, abs=0.01)
    assert p95.low < p95.estimate < p95.high


def test_an_hour_of_long_answers_weighs_more_than_the_day() -> None:
    """Five hours at one request a second: 20 tokens each, but 200 in the third hour."""
    arrival = np.arange(18_000.0)
    tokens = np.where((arrival >= 7200) & (arrival < 10_800), 200, 20)
    day = Workload(arrival, tokens, np.zeros(18_000, dtype=np.int64))
    hour = busy(day, described(ms_per_token=10.0))
    assert len(hour.requests) == 3600
    assert hour.rate_per_s == pytest.approx(1.0, rel=1e-3)
    assert hour.requests.output_tokens.mean() == 200
    # equal lengths within the hour: 1/s of 2 s each on eight slots
    assert hour.rate_per_s / hour.capacity_per_s["continuous"] == pytest.approx(0.25, rel=1e-3)
    gain = hour.capacity_per_s["continuous"] / hour.capacity_per_s["dynamic"]
    assert hour.overload.estimate == pytest.approx(0.25 * gain, rel=1e-3)


def test_the_load_from_which_it_pays_is_found() -> None:
    slow = replace(article_workload(), arrival_s=article_workload().arrival_s * 60)
    hour = busy(slow, described(ms_per_token=2.0))
    assert hour.adopt_from_load > 1
    at = replace(slow, arrival_s=slow.arrival_s / (hour.adopt_from_load * 1.02))
    assert busy(at, described(ms_per_token=2.0)).adopt_from_load == 1.0


def p95(policy: str, workload: Workload, replicas: int) -> float:
    outcome = replace(ARTICLE, replicas=replicas).run(workload, policy)
    return percentile(outcome.end_s - outcome.arrival_s, 95)


def test_servers_are_counted_up_to_the_objective() -> None:
    hour = busy(article_workload(), described(), latency=6.5)
    carrying = busy(article_workload(), described()).servers_needed
    for policy in ("dynamic", "continuous"):
        needed = hour.servers_needed[policy]
        assert needed is not None
        assert p95(policy, hour.requests, needed) <= 6.5
        assert needed == carrying[policy] or p95(policy, hour.requests, needed - 1) > 6.5
    assert busy(article_workload(), described(), latency=0.01).servers_needed["continuous"] is None


def test_without_an_objective_servers_carry_the_load() -> None:
    """11.07/s of 1.5685 s each are 2.17 servers of eight slots."""
    hour = busy(article_workload(), described())
    assert hour.servers_needed["continuous"] == 3
    assert hour.servers_needed["dynamic"] == math.floor(hour.overload.estimate) + 1


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
    article = article_workload()
    points = {(p.slots, p.load): p for p in what_if(all_at_once(article), article, ARTICLE, 12.0)}
    assert set(points) == {(s, load) for s in (4, 8, 16, 32) for load in (0.5, 1.0, 2.0)}
    here = points[8, 1.0]
    assert here.overloaded == {"dynamic": True, "continuous": True}
    assert not points[32, 1.0].overloaded["continuous"]
    assert here.latency_mean_s["continuous"] == pytest.approx(34.62, abs=0.01)
    unknown = what_if(all_at_once(article), all_at_once(article), ARTICLE, None)
    assert {p.load for p in unknown} == {0.0}
    assert all(not p.latency_mean_s and not p.overloaded for p in unknown)


@pytest.mark.parametrize("replicas", [1, 3])
def test_at_todays_slots_the_small_sweep_gains_what_the_log_does(replicas: int) -> None:
    """Also of a log that a step cost would cut: a time per token needs no simulation."""
    n = MOST_SIMULATED + 50_000
    tokens = np.where(np.arange(n) < n // 2, 100, np.random.default_rng(2).integers(1, 400, n))
    known = described(replicas=replicas)
    own, log = found(tokens, known), waiting(tokens)
    assert own is not None
    points = what_if(log, waiting(tokens[:1000]), stated(known), None)
    here = next(point for point in points if point.slots == 8)
    assert here.gain == pytest.approx(own.gain.estimate, rel=1e-12)


def test_ranges_have_an_order() -> None:
    assert Range(1, 1, 1, "given", "given").exact
    assert not Range(1, 2, 3, "assumed", "assumed_range").exact
