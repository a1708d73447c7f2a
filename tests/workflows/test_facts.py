"""Facts read off a log: each on a log made by a server of which the fact is known."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from slotwise_sim import Continuous, Dynamic, PerToken, Policy, Static, Workload, simulate
from slotwise_sim.article import article_workload
from slotwise_workflows.facts import gather
from slotwise_workflows.given import Given
from slotwise_workflows.observe.batching import observe_batching
from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.traffic.model import Engine, SourceFile, Traffic, made_traffic


def served(policy: Policy, *, load: float, first_tokens: bool) -> Traffic:
    """The article's requests at 8 ms a token, logged by a server of eight slots."""
    workload = article_workload()
    workload = replace(workload, arrival_s=workload.arrival_s / load)
    outcome = simulate(workload, policy, PerToken(8.0), slots=8)
    columns = {"e2e_latency": outcome.end_s - outcome.arrival_s}
    if first_tokens:
        columns["gen_ai.response.time_to_first_chunk"] = outcome.first_token_s - outcome.arrival_s
    traffic = made_traffic(workload, format_id="made")
    return replace(
        traffic, table=traffic.table.with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    )


@pytest.mark.parametrize(
    "policy", [Static(), Dynamic(0.0), Dynamic(0.0, release="own"), Continuous()]
)
@pytest.mark.parametrize("load", [0.1, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("first_tokens", [True, False])
def test_the_pace_of_a_server_is_the_lower_envelope(
    policy: Policy, load: float, first_tokens: bool
) -> None:
    """The mean of latency / tokens of these logs is up to 900 ms; the server's pace is 8 ms."""
    pace = gather(served(policy, load=load, first_tokens=first_tokens), Given()).ms_per_token
    assert pace.value == pytest.approx(8.0, rel=0.25)
    assert pace.source == "estimated"
    assert pace.basis == ("decode_time" if first_tokens else "latency_envelope")
    assert pace.low <= pace.value <= pace.high


def test_a_cached_answer_does_not_set_the_pace() -> None:
    log = served(Continuous(), load=0.3, first_tokens=False)
    longest = int(log.table["gen_ai.usage.output_tokens"].arg_max() or 0)
    latency = log.table["e2e_latency"].to_list()
    latency[longest] = 0.004
    log = replace(log, table=log.table.with_columns(e2e_latency=pl.Series(latency)))
    assert gather(log, Given()).ms_per_token.value == pytest.approx(8.0)


def test_what_nobody_tells_is_a_labelled_range() -> None:
    facts = gather(made_traffic(article_workload(), format_id="made"), Given())
    assert facts.ms_per_token.source == "assumed"
    assert facts.ms_per_token.low < facts.ms_per_token.value < facts.ms_per_token.high
    assert facts.slots.source == "assumed"
    assert (facts.slots.low, facts.slots.value) == (4, 8)
    assert facts.replicas.value is None
    assert facts.serving.value == "unknown"


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        (Given(slots=3), "slots", 3),
        (Given(ms_per_token=7.5), "ms_per_token", 7.5),
        (Given(max_delay_ms=50.0), "max_delay_ms", 50.0),
    ],
)
def test_what_the_user_tells_has_no_range(given: Given, name: str, value: float) -> None:
    span = getattr(gather(served(Static(), load=1.0, first_tokens=True), given), name)
    assert (span.low, span.value, span.high) == (value, value, value)
    assert span.source == "given"


def test_describing_one_server_means_one_server() -> None:
    log = made_traffic(article_workload(), format_id="made")
    replicas = gather(log, Given(slots=8)).replicas
    assert (replicas.value, replicas.source) == (1, "assumed")
    assert gather(log, Given(slots=8, replicas=5)).replicas.value == 5


def test_requests_in_flight_bound_the_slots_where_a_queue_shows() -> None:
    """Eight slots at a load where requests wait: never more slots than requests at once."""
    log = served(Continuous(), load=0.4, first_tokens=False)
    start = log.table["start_time"].to_numpy() / 1e9
    end = start + log.table["e2e_latency"].to_numpy()
    most = max(int(((start <= t) & (end > t)).sum()) for t in start)
    facts = gather(log, Given())
    assert facts.in_flight is not None
    assert 0.75 * most <= facts.in_flight <= most  # but for the top hundredth of the time
    assert 8 <= facts.slots.high == facts.in_flight
    assert facts.slots.basis == "in_flight"
    assert facts.loop.value == "open"


def test_slots_that_stand_empty_are_not_ruled_out() -> None:
    """The same server nearly idle: that few requests came at once says nothing of its slots."""
    facts = gather(served(Continuous(), load=0.05, first_tokens=False), Given())
    assert facts.in_flight is not None
    assert facts.in_flight < 8
    assert facts.slots.high == 64
    assert facts.slots.basis == "assumed_range"


def test_requests_that_generate_at_once_hold_a_slot_each() -> None:
    """Twenty slots always busy and a queue before them: the log shows twenty first tokens out."""
    workload = article_workload(requests=3000)
    outcome = simulate(workload, Continuous(), PerToken(16.0), slots=20)
    made = made_traffic(workload, format_id="made")
    log = replace(
        made,
        table=made.table.with_columns(
            pl.Series("e2e_latency", outcome.end_s - outcome.arrival_s),
            pl.Series(
                "gen_ai.response.time_to_first_chunk", outcome.first_token_s - outcome.arrival_s
            ),
        ),
    )
    slots = gather(log, Given()).slots
    assert (slots.low, slots.value, slots.basis) == (20, 20, "decoding_at_once")
    assert slots.high >= 20


def in_a_loop(users: int, pause_s: float, requests: int = 400) -> Traffic:
    """Users who each ask again `pause_s` after their answer; 8 ms a token, a slot for each."""
    tokens = article_workload().output_tokens[:requests]
    free = [0.0] * users
    arrival, latency = [], []
    for length in tokens:
        now = heapq.heappop(free)
        arrival.append(now)
        latency.append(int(length) * 0.008)
        heapq.heappush(free, now + latency[-1] + pause_s)
    workload = Workload(np.array(arrival), tokens, np.zeros(requests, dtype=np.int64))
    made = made_traffic(workload, format_id="made")
    return replace(made, table=made.table.with_columns(e2e_latency=pl.Series(latency)))


@pytest.mark.parametrize("users", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("pause_s", [0.0, 0.05])
def test_callers_who_wait_for_answers_are_a_closed_loop(users: int, pause_s: float) -> None:
    facts = gather(in_a_loop(users, pause_s), Given())
    assert facts.loop.value == "closed"
    assert facts.in_flight == users
    assert facts.slots.high == users


def test_one_stray_overlap_does_not_open_a_loop() -> None:
    log = in_a_loop(8, 0.0)
    latency = log.table["e2e_latency"].to_list()
    latency[200] += 0.3
    log = replace(log, table=log.table.with_columns(e2e_latency=pl.Series(latency)))
    facts = gather(log, Given())
    assert (facts.loop.value, facts.in_flight) == ("closed", 8)


def test_a_gateway_that_holds_streams_back_does_not_set_the_pace() -> None:
    """Some answers arrive at once at their end: no server decodes a hundred tokens in 1 ms."""
    log = served(Continuous(), load=0.3, first_tokens=True)
    latency = log.table["e2e_latency"].to_numpy()
    ttft = log.table["gen_ai.response.time_to_first_chunk"].to_numpy().copy()
    ttft[::6] = latency[::6] - 0.001
    column = pl.Series("gen_ai.response.time_to_first_chunk", ttft)
    held_back = replace(log, table=log.table.with_columns(column))
    assert gather(held_back, Given()).ms_per_token.value == pytest.approx(8.0)


def test_the_wait_of_a_lone_request_bounds_the_delay() -> None:
    """A server that waits 50 ms for company: a lone request's first token tells 58 ms at most."""
    workload = article_workload()
    alone = replace(workload, arrival_s=np.arange(0.0, len(workload) * 20.0, 20.0))
    outcome = simulate(alone, Dynamic(50.0), PerToken(8.0), slots=8)
    made = made_traffic(alone, format_id="made")
    log = replace(
        made,
        table=made.table.with_columns(
            pl.Series("e2e_latency", outcome.end_s - outcome.arrival_s),
            pl.Series(
                "gen_ai.response.time_to_first_chunk", outcome.first_token_s - outcome.arrival_s
            ),
        ),
    )
    delay = gather(log, Given()).max_delay_ms
    assert (delay.low, delay.value, delay.basis) == (0.0, 0.0, "waiting_gap")
    assert delay.high == pytest.approx(58.0)
    assert gather(made, Given()).max_delay_ms.basis == "default"


def test_an_overloaded_queue_is_not_taken_for_a_closed_loop() -> None:
    facts = gather(served(Static(), load=1.0, first_tokens=False), Given())
    assert facts.loop.value == "open"


@pytest.mark.parametrize(
    ("span_s", "mode"), [(0.0, "offline"), (10.0, "offline"), (600.0, "online")]
)
def test_everything_at_once_is_a_job(span_s: float, mode: str) -> None:
    workload = article_workload()
    at = np.linspace(0, span_s, len(workload))
    log = made_traffic(replace(workload, arrival_s=at), format_id="made")
    assert gather(log, Given()).mode.value == mode


@pytest.mark.parametrize(
    ("model", "serving"),
    [
        ("gpt-4o", "managed_api"),
        ("gpt-3.5-turbo", "managed_api"),
        ("GPT-4", "managed_api"),
        ("ChatGPT", "managed_api"),
        ("o3-mini", "managed_api"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "managed_api"),
        ("vertex_ai/gemini-2.5-pro", "managed_api"),
        ("gpt-oss-120b", "unknown"),
        ("meta-llama/Llama-3.1-8B-Instruct", "unknown"),
        ("Qwen3-30B-A3B-Instruct-2507", "unknown"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "unknown"),
        ("google/gemma-3-27b-it", "unknown"),
        ("gpt2", "unknown"),
        ("command-r:35b", "unknown"),
        ("mistralai/Mistral-Large-Instruct-2407", "unknown"),
        ("xai-org/grok-2", "unknown"),
        ("gpt4all-j", "unknown"),
        ("TurkuNLP/gpt3-finnish-13B", "unknown"),
        ("claude2-alpaca-13b", "unknown"),
        ("gpt-4.1-nano", "managed_api"),
        ("gpt-5", "managed_api"),
        ("gpt-35-turbo", "managed_api"),
        ("o4-mini-2025-04-16", "managed_api"),
        ("amazon.nova-lite-v1:0", "managed_api"),
        ("gemini-2.0-flash", "managed_api"),
        ("gpt-j-6b", "unknown"),
    ],
)
def test_a_models_name_tells_who_can_run_it(model: str, serving: str) -> None:
    log = made_traffic(article_workload(), format_id="made")
    named = log.table.with_columns(pl.lit(model).alias("gen_ai.response.model"))
    assert gather(replace(log, table=named), Given()).serving.value == serving


def test_most_of_the_traffic_decides_who_runs_it() -> None:
    log = made_traffic(article_workload(), format_id="made")
    providers: list[Any] = ["openai"] * 200 + ["vllm"] * 400
    named = log.table.with_columns(pl.Series("gen_ai.provider.name", providers))
    facts = gather(replace(log, table=named), Given())
    assert facts.batches_already.value
    assert facts.serving.value == "self_hosted"


@pytest.mark.parametrize(
    ("policy", "batches"),
    [(Continuous(), True), (Dynamic(0.0, release="own"), False), (Static(), False)],
)
@pytest.mark.parametrize("load", [0.3, 1.0])
def test_the_logs_own_times_tell_whether_it_batches_continuously(
    policy: Policy, batches: bool, load: float
) -> None:
    facts = gather(served(policy, load=load, first_tokens=True), Given(replicas=1))
    assert facts.batches_already.value == batches
    assert (facts.batches_already.source, facts.batches_already.basis) == (
        "estimated",
        "log_timings",
    )
    assert facts.observed is not None
    assert (facts.observed.kind == "continuous") == batches


def test_an_engines_signature_tells_before_the_times_do() -> None:
    log = replace(served(Static(), load=1.0, first_tokens=True), engine="batches")
    facts = gather(log, Given(replicas=1))
    assert (facts.batches_already.value, facts.batches_already.basis) == (True, "engine_signature")


def test_an_api_that_batches_is_not_taken_for_a_server_of_ones_own() -> None:
    log = served(Continuous(), load=1.0, first_tokens=True)
    named = log.table.with_columns(pl.lit("gpt-4o").alias("gen_ai.response.model"))
    facts = gather(replace(log, table=named), Given(replicas=1))
    assert facts.batches_already.value
    assert facts.serving.value == "managed_api"


def test_the_one_file_of_an_engine_is_the_log_of_one_server() -> None:
    log = served(Continuous(), load=0.6, first_tokens=True)
    one, two = (SourceFile(name, "0" * 64, 1) for name in ("a.jsonl", "b.jsonl"))
    alone, untold = observe_batching(log, 1), observe_batching(log)
    assert alone != untold
    cases: tuple[tuple[Engine, tuple[SourceFile, ...], ObservedBatching], ...] = (
        ("batches", (one,), alone),
        ("batches", (one, two), untold),
        ("unknown", (one,), untold),
    )
    for engine, files, expected in cases:
        found = gather(replace(log, engine=engine, files=files), Given())
        assert found.observed == expected
    told = replace(log, engine="batches", files=(one,))
    assert gather(told, Given(replicas=2)).observed == observe_batching(told, 2)
