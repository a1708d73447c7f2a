"""How a log's server batches, told from logs of servers of which it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from batching_from_logs import LATE, LENGTHS, POLICIES, Setting, any_setting, judged, logged
from slotwise_sim import Continuous, PerToken, Policy, Static, Workload, simulate
from slotwise_workflows.observe.batching import observe_batching
from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.traffic.model import Traffic, made_traffic

TTFT = "gen_ai.response.time_to_first_chunk"


def told(own: Setting, replicas: int | None = 1) -> ObservedBatching:
    return observe_batching(logged(own, np.random.default_rng(7)), replicas)


def log_of(
    policy: Policy, arrival_s: np.ndarray, tokens: np.ndarray, slots: int, *, ends: bool = False
) -> Traffic:
    """What one server of 20 ms a token logs, exactly."""
    n = len(tokens)
    workload = Workload(arrival_s, tokens.astype(np.int64), np.zeros(n, dtype=np.int64))
    outcome = simulate(workload, policy, PerToken(20.0), slots=slots)
    columns = {"e2e_latency": outcome.end_s - arrival_s}
    if not ends:
        columns[TTFT] = outcome.first_token_s - arrival_s
    made = made_traffic(workload, format_id="made")
    return replace(
        made, table=made.table.with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("slots", [2, 8, 32])
@pytest.mark.parametrize("load", [0.1, 0.6, 1.5])
def test_first_tokens_tell_every_policy_at_any_load(policy: str, slots: int, load: float) -> None:
    own = Setting(policy, slots, 1, load, 700, missing=0.02, clock_s=0.001)
    found = told(own)
    if own.policy.endswith("together"):  # there are none
        assert not found.first_tokens
        assert judged(own, found) in {"right", "open"}
    else:
        assert judged(own, found) == "right"
        assert found.reason == ""


@pytest.mark.parametrize("policy", ["static, released together", "greedy, released together"])
@pytest.mark.parametrize("slots", [8, 32])
@pytest.mark.parametrize("load", [0.3, 0.9, 1.5])
def test_unlike_answers_that_end_together_tell_batches(
    policy: str, slots: int, load: float
) -> None:
    found = told(Setting(policy, slots, 1, load, 700, first_tokens=False))
    assert found.kind in {"batch_at_once", "static", "dynamic"}
    assert found.tied > 3 * found.tied_by_chance


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_told_wrong_whatever_the_log(seed: int) -> None:
    """Fifteen settings of each seed; the page of the figures has a thousand."""
    rng = np.random.default_rng(seed)
    for _ in range(15):
        own = any_setting(rng)
        log = logged(own, rng)
        for replicas in (own.servers, None):
            assert judged(own, observe_batching(log, replicas)) != "wrong", own


@pytest.mark.parametrize("servers", [2, 4])
def test_several_servers_are_not_taken_for_one_that_refills(servers: int) -> None:
    for policy in POLICIES:
        slots = 1 if policy == "continuous" else 4
        found = told(Setting(policy, slots, servers, 0.6, 700), None)
        assert found.kind != "continuous", policy
    serial = told(Setting("continuous", 1, servers, 0.6, 700), None)
    assert serial.reason == "several_servers"


def test_few_slots_of_an_engine_that_nothing_slows_need_the_number_of_servers() -> None:
    own = Setting("continuous", 4, 1, 0.6, 700, step=False)
    assert told(own, None).reason == "several_servers"
    assert told(own, 1).kind == "continuous"


def test_many_slots_that_slow_nobody_need_the_number_of_servers() -> None:
    own = Setting("continuous", 32, 1, 0.6, 700, step=False)
    assert told(own, None).reason == "several_servers"
    assert told(own, 1).kind == "continuous"


@pytest.mark.parametrize("servers", [9, 16, 24])
@pytest.mark.parametrize("late", LATE)
def test_fleets_are_not_taken_for_one_engine(servers: int, late: str) -> None:
    for policy in POLICIES:
        slots = 1 if policy == "continuous" else 4
        found = told(Setting(policy, slots, servers, 0.8, 1200, late=late), None)
        assert found.kind != "continuous", policy
        assert found.slowing < 3


@pytest.mark.parametrize("late_s", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("first_tokens", [True, False])
def test_answers_all_alike_and_all_as_late_leave_it_open(late_s: float, first_tokens: bool) -> None:
    own = Setting("continuous", 1, 1, 0.6, 700, lengths="equal", first_tokens=first_tokens)
    log = logged(own, np.random.default_rng(0))
    late = log.table.with_columns(pl.col("e2e_latency") + late_s)
    assert observe_batching(replace(log, table=late), 1).kind in {"serial", "undetermined"}


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_ends_that_are_logged_late_make_nothing_continuous(
    late: str, lengths: str, load: float
) -> None:
    for policy, slots in (("continuous", 1), ("greedy", 8), ("static", 8)):
        for replicas in (1, None):
            own = Setting(policy, slots, 1, load, 700, lengths=lengths, late=late)
            assert judged(own, told(own, replicas)) != "wrong", own
    serial = told(Setting("continuous", 1, 1, load, 700, late=late))
    assert serial.kind in {"serial", "not_continuous"}
    for slots in (8, 32):
        own = Setting("continuous", slots, 1, load, 700, lengths=lengths, late=late)
        assert told(own).kind == "continuous"


def test_requests_that_slow_one_another_down_share_an_engine() -> None:
    own = Setting("continuous", 4, 1, 0.3, 700)
    found = told(own, None)
    assert found.kind == "continuous"
    assert found.slowing > 5


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "continuous"])
@pytest.mark.parametrize("load", [0.1, 0.3, 0.9])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_engines_apart_slow_nobody_down(policy: str, load: float, missing: float) -> None:
    """Though their own batches are slower the fuller they are, and all are full at once."""
    own = Setting(policy, 2, 4, load, 1500, lengths="equal", missing=missing, scatter_s=0.05)
    assert told(own, None).slowing < 3


@pytest.mark.parametrize("first_tokens", [True, False])
def test_one_slot_is_serial_whatever_fills_it(first_tokens: bool) -> None:
    found = told(Setting("continuous", 1, 1, 0.9, 700, first_tokens=first_tokens))
    assert found.kind == "serial"


def test_static_is_told_from_dynamic_by_batches_that_wait_until_they_are_full() -> None:
    static = told(Setting("static", 4, 1, 0.3, 1000))
    assert static.likelihood["static"] > 0.9 > 0.1 > static.likelihood["dynamic"]
    assert told(Setting("within 0.5 s", 4, 1, 0.3, 1000)).kind == "dynamic"


def test_equal_lengths_sent_at_once_are_the_same_either_way() -> None:
    arrival, tokens = np.zeros(96), np.full(96, 150)
    for policy in (Continuous(), Static("own")):
        found = observe_batching(log_of(policy, arrival, tokens, 8), 1)
        assert (found.kind, found.reason) == ("undetermined", "ambiguous")


@pytest.mark.parametrize("ends", [True, False])
def test_a_client_that_sends_batches_proves_nothing(ends: bool) -> None:
    """It sends eight, waits for all, sends the next: the server refills, and never needs to."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(20, 400, 320)
    longest = tokens.reshape(-1, 8).max(axis=1)
    sent = np.append(0.0, np.cumsum(longest * 0.02 + 0.05)[:-1])
    found = observe_batching(log_of(Continuous(), np.repeat(sent, 8), tokens, 8, ends=ends), 1)
    assert found.kind == "undetermined"
    assert found.joined[0] == found.held == found.tied == 0


def test_one_user_at_a_time_shows_nothing() -> None:
    tokens = np.full(100, 50)
    found = observe_batching(log_of(Continuous(), np.arange(100) * 2.0, tokens, 8), 1)
    assert (found.kind, found.reason) == ("undetermined", "never_overlaps")


def test_ties_of_a_coarse_clock_are_no_batches() -> None:
    """Whole seconds make ends fall together; so many are expected."""
    own = Setting("continuous", 8, 1, 0.6, 2000, clock_s=1.0, first_tokens=False)
    found = told(own)
    assert found.tied > 0
    assert found.tied == pytest.approx(found.tied_by_chance, rel=0.25)
    assert found.kind in {"continuous", "undetermined"}


def test_a_gateways_cache_leaves_it_open() -> None:
    """Its answers come beside the server's batches, as if they had joined them."""
    log = logged(Setting("static", 16, 1, 0.9, 800), np.random.default_rng(2))
    cached = np.random.default_rng(3).random(len(log)) < 0.05
    columns = {
        "e2e_latency": np.where(cached, 0.03, log.table["e2e_latency"].to_numpy()),
        TTFT: np.where(cached, 0.02, log.table[TTFT].to_numpy()),
    }
    log = replace(
        log, table=log.table.with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    )
    assert observe_batching(log, 1).kind != "continuous"


def test_a_log_without_times_says_so() -> None:
    log = logged(Setting("static", 8, 1, 0.5, 200), np.random.default_rng(0))
    assert observe_batching(replace(log, clock=None)).reason == "no_times"
    bare = log.table.with_columns(e2e_latency=pl.lit(None, dtype=pl.Float64))
    assert observe_batching(replace(log, table=bare)).reason == "no_times"
    few = replace(log, table=log.table.head(71))
    assert observe_batching(few).reason == "too_few_requests"


def test_a_clock_coarser_than_the_answers_says_so() -> None:
    log = logged(Setting("continuous", 4, 1, 0.6, 500, clock_s=1.0), np.random.default_rng(0))
    assert observe_batching(log, 1).reason in {"", "clock_coarse"}
    short = logged(
        Setting("continuous", 4, 1, 0.6, 500, clock_s=1.0, lengths="uniform"),
        np.random.default_rng(0),
    )
    assert observe_batching(short, 1).tolerance_s >= 2.1


def test_the_order_of_the_rows_does_not_matter() -> None:
    log = logged(Setting("continuous", 8, 1, 0.6, 700), np.random.default_rng(0))
    shuffled = replace(log, table=log.table.sample(fraction=1.0, shuffle=True, seed=1))
    assert observe_batching(shuffled, 1) == observe_batching(log, 1)


def test_a_long_log_is_looked_at_in_part() -> None:
    log = logged(Setting("continuous", 8, 1, 0.6, 60_000), np.random.default_rng(0))
    found = observe_batching(log, 1)
    assert found.kind == "continuous"
    assert found.met <= 20_000


def test_likelihoods_sum_to_one() -> None:
    for replicas in (None, 1, 3, 12):
        found = told(Setting("continuous", 8, 2, 0.6, 300), replicas)
        assert sum(found.likelihood.values()) == pytest.approx(1.0)
        assert (found.likelihood["several"] == 0) == (replicas is not None)


def test_more_servers_than_are_counted_leave_it_open() -> None:
    assert told(Setting("continuous", 32, 12, 0.6, 2000), 12).kind == "undetermined"
