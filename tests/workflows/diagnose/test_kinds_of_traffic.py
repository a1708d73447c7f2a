"""Each kind of traffic as a small made-up log, with the verdict it must get."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slotwise_sim import Continuous, Dynamic, PerToken, Workload, simulate
from slotwise_workflows.given import Given
from slotwise_workflows.result import Diagnosis, Reason, Result
from slotwise_workflows.traffic.model import Traffic

Make = Callable[..., Traffic]
Ask = Callable[..., Result]
Rng = np.random.Generator

EIGHT_SLOTS = Given(slots=8, ms_per_token=10.0, replicas=1, mode="online")


def poisson(rng: Rng, rate: float, n: int) -> NDArray[np.float64]:
    return np.cumsum(rng.exponential(1 / rate, n))


def varied(rng: Rng, n: int) -> NDArray[np.int64]:
    """Lengths like the article's: most short, some long."""
    long = rng.random(n) < 0.15
    return np.where(long, rng.integers(400, 1000, n), rng.integers(40, 200, n))


def codes(reasons: list[Reason]) -> set[str]:
    return {reason.code for reason in reasons}


def deciding(diagnosis: Diagnosis) -> tuple[str, str]:
    return diagnosis.verdict, diagnosis.reasons[0].code


def test_a_tiny_sample_decides_nothing(make: Make, ask: Ask, rng: Rng) -> None:
    result = ask(make(poisson(rng, 1, 71), varied(rng, 71)), EIGHT_SLOTS)
    assert deciding(result) == ("insufficient_data", "too_few_requests")
    assert result.reasons[0].numbers == {"requests": 71, "needed": 72}
    assert result.actions[0].numbers["more_requests"] == 1


def test_one_request_is_an_answer_too(make: Make, ask: Ask) -> None:
    result = ask(make([0.0], [10]))
    assert result.verdict == "insufficient_data"
    assert result.gain is None
    assert result.output_tokens.std is None


@pytest.mark.parametrize(
    ("columns", "traffic"),
    [
        ({"gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4.1"}, {}),
        ({"gen_ai.request.model": "openai/gpt-4o-mini"}, {}),
        ({"gen_ai.request.model": "ChatGPT"}, {}),
        ({"gen_ai.request.model": "claude-sonnet-4-5"}, {}),
        ({"gen_ai.provider.name": "bedrock"}, {}),
        ({}, {"managed": True}),
    ],
)
def test_an_api_customer_cannot_buy_batching(
    make: Make, ask: Ask, rng: Rng, columns: dict[str, object], traffic: dict[str, object]
) -> None:
    log = make(poisson(rng, 1, 200), varied(rng, 200), columns=columns, **traffic)
    result = ask(log)
    assert deciding(result) == ("not_yours", "managed_api")
    assert "batch_api" in codes(result.alternatives)


@pytest.mark.parametrize("model", ["gpt-oss-120b", "openai/gpt-oss-20b", "meta-llama/Llama-3.1-8B"])
def test_open_models_are_not_taken_for_an_api(make: Make, ask: Ask, rng: Rng, model: str) -> None:
    log = make(poisson(rng, 1, 200), varied(rng, 200), columns={"gen_ai.request.model": model})
    assert ask(log).verdict != "not_yours"


def test_the_user_knows_better_who_runs_the_server(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(None, varied(rng, 200), columns={"gen_ai.request.model": "gpt-4o"})
    assert ask(log, Given(serving="self_hosted")).verdict == "adopt"


@pytest.mark.parametrize(
    ("columns", "traffic"),
    [({}, {"engine": "batches"}), ({"gen_ai.provider.name": "hosted_vllm"}, {})],
)
def test_an_engine_that_batches_is_never_told_to_adopt(
    make: Make, ask: Ask, rng: Rng, columns: dict[str, object], traffic: dict[str, object]
) -> None:
    log = make(poisson(rng, 5, 400), varied(rng, 400), columns=columns, **traffic)
    assert deciding(ask(log)) == ("already", "batches_continuously")


def test_a_log_whose_times_show_refilling_is_never_told_to_adopt(
    make: Make, ask: Ask, rng: Rng
) -> None:
    """Where the number of servers is told; else a fleet of many would have logged the same."""
    arrival, tokens = poisson(rng, 5, 400), varied(rng, 400)
    columns = {
        "e2e_latency": (0.02 * tokens).tolist(),
        "gen_ai.response.time_to_first_chunk": 0.02,
    }
    log = make(arrival, tokens, columns=columns)
    assert "batching_several" in {limit.code for limit in ask(log).limits}
    assert deciding(ask(log)) == ("conditional", "unless_already")
    result = ask(log, Given(replicas=1))
    assert deciding(result) == ("already", "batches_continuously")
    assert [reason.code for reason in result.reasons][-1] == "seen_joining"
    assert result.batching is not None
    assert result.batching.kind == "continuous"
    assert "batching_unknown" not in {limit.code for limit in result.limits}
    assert result.confidence == "medium"


def test_a_few_slots_leave_it_to_the_number_of_servers(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = varied(rng, 400)
    arrival = poisson(rng, 1.5 / (0.02 * float(np.mean(tokens))), 400)
    columns = {
        "e2e_latency": (0.02 * tokens).tolist(),
        "gen_ai.response.time_to_first_chunk": 0.02,
    }
    log = make(arrival, tokens, columns=columns)
    [limit] = [own for own in ask(log).limits if own.code == "batching_several"]
    assert 2 <= int(limit.numbers["servers"] or 0) <= 8
    assert deciding(ask(log, Given(replicas=1))) == ("already", "batches_continuously")


def test_two_constant_models_are_no_variation(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = np.where(np.arange(400) % 2 == 0, 10, 500)
    models = ["small" if t == 10 else "large" for t in tokens]
    result = ask(make(poisson(rng, 4, 400), tokens, columns={"gen_ai.request.model": models}))
    assert [own.model for own in result.models] == ["large", "small"]
    assert all(deciding(own) == ("no_gain", "even_lengths") for own in result.models)
    assert result.verdict == "no_gain"
    apart = next(reason for reason in result.reasons if reason.code == "models_apart")
    # E[max of 8] / E[X] of 200 tens and 200 five-hundreds, drawn without replacement
    assert apart.numbers["pooled_gain"] == pytest.approx(1.955, abs=0.003)
    assert apart.numbers["gain"] == 1.0


def test_each_model_gets_its_own_verdict(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = np.where(np.arange(600) % 2 == 0, varied(rng, 600), 150)
    models = ["chat" if k % 2 == 0 else "classify" for k in range(600)]
    result = ask(make(poisson(rng, 4, 600), tokens, columns={"gen_ai.request.model": models}))
    assert {own.model: own.verdict for own in result.models} == {
        "chat": "adopt",
        "classify": "no_gain",
    }


def test_lengths_that_drift_gain_nothing_in_order(make: Make, ask: Ask) -> None:
    arrival = np.arange(0, 7200, 1.0)
    tokens = np.where(arrival < 3600, 10, 500)
    result = ask(make(arrival, tokens))
    assert deciding(result) == ("no_gain", "neighbours_alike")
    assert result.gain is not None
    assert result.gain.estimate == pytest.approx(1.0, abs=0.02)
    assert result.gain_bound["8"].estimate == pytest.approx(1.95, abs=0.01)
    assert result.drift == pytest.approx(0.95, abs=0.03)
    assert "lengths_drift" in codes(result.limits)


def test_the_busiest_hour_decides_not_the_quiet_day(make: Make, ask: Ask, rng: Rng) -> None:
    quiet = np.sort(rng.uniform(0, 86_400, 2000))
    peak = 40_000 + np.sort(rng.uniform(0, 3600, 12_000))
    arrival = np.sort(np.concatenate((quiet, peak)))
    result = ask(make(arrival, varied(rng, len(arrival))), EIGHT_SLOTS)
    assert deciding(result) == ("adopt", "gain_overload")
    assert result.arrivals is not None
    assert result.arrivals.busiest_start_s == pytest.approx(40_000 - quiet[0], abs=120)
    assert result.utilisation["dynamic"] > 1
    assert "short_window" not in codes(result.limits)


def test_unknown_replicas_allow_no_claim_about_waiting(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(poisson(rng, 5, 3000), varied(rng, 3000))
    result = ask(log)
    assert deciding(result) == ("adopt", "gain_lengths_only")
    assert result.waiting is None
    assert result.replay == "backlog"
    assert "replicas_unknown" in codes(result.limits)
    told = ask(log, Given(slots=8, ms_per_token=10.0, replicas=1))
    assert told.waiting is not None
    assert told.replay == "arrivals"


def test_a_closed_loop_hides_the_load(make: Make, ask: Ask, rng: Rng) -> None:
    """Twelve users who each ask again at once: the log's rate is what the server let through."""
    tokens = varied(rng, 600)
    free = [0.0] * 12
    arrival, latency = [], []
    for length in tokens:
        now = heapq.heappop(free)
        arrival.append(now)
        latency.append(length * 0.01)
        heapq.heappush(free, now + length * 0.01)
    result = ask(make(arrival, tokens, columns={"e2e_latency": latency}), EIGHT_SLOTS)
    assert deciding(result) == ("adopt", "gain_lengths_only")
    assert result.waiting is None
    limit = next(reason for reason in result.limits if reason.code == "closed_loop")
    assert limit.numbers == {"in_flight": 12}


@pytest.mark.parametrize("slots", [1, 3, 128, 256, 300])
def test_any_number_of_slots_ends_with_a_picture(
    make: Make, ask: Ask, rng: Rng, slots: int
) -> None:
    log = make(poisson(rng, 10, 2000), varied(rng, 2000))
    result = ask(log, Given(slots=slots, ms_per_token=20, replicas=1))
    assert result.timeline is not None
    assert result.timeline.drawn_slots == min(slots, 32)
    bars = result.timeline.static + result.timeline.continuous
    assert 0 < len(bars) <= 480
    assert max(bar.slot for bar in bars) < result.timeline.drawn_slots
    assert str(slots) in result.gain_bound


def test_a_server_that_answers_sooner_is_not_the_one_described(
    make: Make, ask: Ask, rng: Rng
) -> None:
    """The log's users wait 3 s; batches of eight would be overloaded and keep them for minutes."""
    tokens = varied(rng, 3000)
    log = make(poisson(rng, 6, 3000), tokens, columns={"e2e_latency": list(tokens * 0.012 + 0.3)})
    result = ask(log, Given(slots=8, ms_per_token=12, replicas=1, latency_p95_s=20))
    assert result.waiting is None
    assert result.reasons[0].code == "gain_lengths_only"
    assert result.confidence == "low"
    limit = result.limits[0]
    assert limit.code == "replay_contradicted"
    assert limit.numbers["measured"] == pytest.approx(float((tokens * 0.012 + 0.3).mean()))


def test_a_log_as_fast_as_refilling_is_not_of_a_batch_at_once_server(
    make: Make, ask: Ask, rng: Rng
) -> None:
    """A continuous server's own log: the wait that batches would add was never there."""
    arrival, tokens = poisson(rng, 1.0, 2000), varied(rng, 2000)
    workload = Workload(arrival, tokens.astype(np.int64), np.zeros(2000, dtype=np.int64))
    logged = simulate(workload, Continuous(), PerToken(10.0), slots=8)
    log = make(arrival, tokens, columns={"e2e_latency": list(logged.end_s - logged.arrival_s)})
    result = ask(log, EIGHT_SLOTS)
    assert result.waiting is None
    assert result.limits[0].code == "replay_contradicted"


def test_one_slot_forms_no_batches(make: Make, ask: Ask, rng: Rng) -> None:
    result = ask(
        make(poisson(rng, 10, 2000), varied(rng, 2000)),
        Given(slots=1, ms_per_token=10, replicas=1),
    )
    assert deciding(result) == ("no_gain", "one_slot")
    assert [action.code for action in result.actions] == ["more_slots"]


@pytest.mark.parametrize(("delay", "offered"), [(0.0, False), (500.0, True), (None, True)])
def test_a_delay_that_is_in_force_is_not_the_next_step(
    make: Make, ask: Ask, rng: Rng, delay: float | None, offered: bool
) -> None:
    log = make(poisson(rng, 1 / 3600, 300), varied(rng, 300))
    result = ask(log, Given(slots=8, ms_per_token=10, replicas=1, max_delay_ms=delay))
    assert deciding(result) == ("no_gain", "low_load")
    assert ("set_max_delay" in codes(result.actions)) == offered


def test_a_log_of_the_server_described_is_not_contradicted(make: Make, ask: Ask, rng: Rng) -> None:
    arrival, tokens = poisson(rng, 2, 2000), varied(rng, 2000)
    workload = Workload(arrival, tokens.astype(np.int64), np.zeros(2000, dtype=np.int64))
    logged = simulate(workload, Dynamic(0.0), PerToken(10.0), slots=8)
    log = make(arrival, tokens, columns={"e2e_latency": list(logged.end_s - logged.arrival_s)})
    result = ask(log, EIGHT_SLOTS)
    assert result.waiting is not None
    assert "replay_contradicted" not in codes(result.limits)


def test_a_quiet_day_does_not_contradict_its_busiest_hour(make: Make, ask: Ask, rng: Rng) -> None:
    """The server described wrote this log; users wait long in one hour and hardly in the rest."""
    quiet = np.sort(rng.uniform(0, 86_400, 14_000))
    peak = 40_000 + np.sort(rng.uniform(0, 3600, 9000))
    arrival = np.sort(np.concatenate((quiet, peak)))
    tokens = varied(rng, len(arrival))
    workload = Workload(arrival, tokens.astype(np.int64), np.zeros(len(arrival), dtype=np.int64))
    logged = simulate(workload, Dynamic(0.0), PerToken(10.0), slots=8)
    log = make(arrival, tokens, columns={"e2e_latency": list(logged.end_s - logged.arrival_s)})
    result = ask(log, EIGHT_SLOTS)
    assert "replay_contradicted" not in codes(result.limits)
    assert deciding(result) == ("adopt", "gain_overload")


def test_without_an_order_batches_are_drawn_at_random(make: Make, ask: Ask) -> None:
    """A table sorted by length has no arrivals; its neighbours say nothing about batches."""
    result = ask(make(None, np.sort(np.tile([40, 80, 120, 900], 200))), Given(slots=8))
    assert result.gain is not None
    batches = result.policies["dynamic"].makespan_s / result.policies["continuous"].makespan_s
    assert batches == pytest.approx(result.gain.estimate, rel=0.1)


def test_one_caller_at_a_time_has_nothing_to_batch(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = varied(rng, 300)
    latency = tokens * 0.02
    arrival = np.concatenate(([0.0], np.cumsum(latency)[:-1]))
    result = ask(make(arrival, tokens, columns={"e2e_latency": list(latency)}))
    assert deciding(result) == ("no_gain", "one_caller")


def test_bursts_do_not_make_the_busiest_hour_busier_than_it_is(
    make: Make, ask: Ask, rng: Rng
) -> None:
    """Forty requests within five seconds, every two hours: 40 an hour at most."""
    arrival = np.concatenate([k * 7200 + np.sort(rng.uniform(0, 5, 40)) for k in range(12)])
    result = ask(make(arrival, varied(rng, 480)), EIGHT_SLOTS)
    assert result.arrivals is not None
    assert result.arrivals.busiest_rate_per_s == pytest.approx(40 / 3600)
    assert result.utilisation["dynamic"] == pytest.approx(
        result.arrivals.busiest_rate_per_s / result.capacity_per_s["dynamic"]
    )


def test_many_models_are_not_all_studied(make: Make, ask: Ask, rng: Rng) -> None:
    models = [f"m{k % 150}" for k in range(600)]
    result = ask(make(None, varied(rng, 600), columns={"gen_ai.request.model": models}))
    assert (len(result.models), result.other_models) == (20, 130)


def test_a_price_counts_the_servers_of_the_busiest_hour(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(poisson(rng, 12, 6000), varied(rng, 6000))
    result = ask(log, Given(slots=8, ms_per_token=8, replicas=1, gpu_hour_price=300.0))
    needed = result.servers_needed
    assert result.money["servers_now"] == needed["dynamic"]
    assert result.money["servers_after"] == needed["continuous"] == 3
    assert result.money["hour_saved"] == (result.money["servers_now"] - 3) * 300.0


def test_more_slots_than_requests_ask_for_a_batch_of_them(make: Make, ask: Ask, rng: Rng) -> None:
    result = ask(make(None, varied(rng, 600)), Given(slots=1000))
    assert deciding(result) == ("insufficient_data", "too_few_requests")
    assert result.reasons[0].numbers["needed"] == 1000
    assert result.actions[0].numbers["more_requests"] == 400


def test_a_job_is_decided_on_its_length_alone(make: Make, ask: Ask, rng: Rng) -> None:
    result = ask(make(None, varied(rng, 500), offline=True))
    assert deciding(result) == ("adopt", "gain_offline")
    assert "sort_by_length" in codes(result.alternatives)
    at_once = ask(make(np.linspace(0, 2, 500), varied(rng, 500)))
    assert deciding(at_once) == ("adopt", "gain_offline")


def test_a_cap_is_stated_as_a_lower_bound(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = np.minimum(varied(rng, 600), 256)
    log = make(None, tokens, columns={"truncated": [bool(t == 256) for t in tokens]})
    result = ask(log)
    limit = next(reason for reason in result.limits if reason.code == "truncated")
    assert limit.numbers["share"] == pytest.approx(float((tokens == 256).mean()))
    assert "truncated_outputs" in codes(result.alternatives)


def test_a_request_an_hour_shares_no_batch(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(poisson(rng, 1 / 3600, 300), varied(rng, 300))
    for given in (Given(), EIGHT_SLOTS):
        result = ask(log, given)
        assert deciding(result) == ("no_gain", "low_load")
        assert result.actions[0].code == "set_max_delay"


def test_even_lengths_under_load_gain_only_waiting(make: Make, ask: Ask, rng: Rng) -> None:
    """Joining at once saves the wait for the running batch even where capacity gains nothing."""
    log = make(poisson(rng, 4, 4000), np.full(4000, 150))
    result = ask(log, EIGHT_SLOTS)
    assert deciding(result) == ("conditional", "waiting_only")
    assert result.gain is not None
    assert result.gain.high < 1.1


def test_a_gain_without_load_waits_for_the_load(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(poisson(rng, 0.05, 1500), varied(rng, 1500))
    result = ask(log, EIGHT_SLOTS)
    assert deciding(result) == ("conditional", "from_load")
    numbers: Any = result.reasons[0].numbers
    assert numbers["load"] > 1
    flip = next(reason for reason in result.flip if reason.code == "flip_load")
    assert flip.numbers["rate"] == numbers["rate"]


def test_a_missed_objective_adopts_and_counts_servers(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(poisson(rng, 2.0, 3000), varied(rng, 3000))
    easy = ask(log, Given(slots=8, ms_per_token=10, replicas=1, latency_p95_s=12))
    assert deciding(easy) == ("adopt", "gain_objective")
    busy = make(poisson(rng, 12.0, 6000), varied(rng, 6000))
    hard = ask(busy, Given(slots=8, ms_per_token=10, replicas=1, latency_p95_s=12))
    needed = next(r for r in hard.reasons if r.code == "objective_out_of_reach")
    # 12 requests/s of 196 tokens at 10 ms fill 23.5 slots: three servers of eight just keep up
    assert needed.numbers["servers"] in {3, 4}


def test_little_variation_is_marginal(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(None, rng.integers(176, 250, 20_000))
    result = ask(log, Given(slots=8))
    assert deciding(result) == ("marginal", "marginal")


def test_the_number_of_slots_can_decide(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = np.where(rng.random(20_000) < 0.02, 400, 200)
    result = ask(make(None, tokens))
    assert deciding(result) == ("insufficient_data", "slots_decide")
    assert result.actions[0].code == "give_slots"


def test_a_wide_interval_asks_for_more_requests(make: Make, ask: Ask) -> None:
    """A few long answers among equal ones: yes or no hangs on which of them were seen."""
    tokens = np.full(100, 150)
    tokens[[17, 54]] = 400
    result = ask(make(None, tokens), Given(slots=8))
    assert deciding(result) == ("insufficient_data", "interval_wide")
    numbers: Any = result.reasons[0].numbers
    width = numbers["high"] - numbers["low"]  # one number of slots: all of it is sampling
    # an interval narrows with the square root of the sample
    assert numbers["more_requests"] == math.ceil(100 * ((width / 0.3) ** 2 - 1))
    assert result.actions[0].numbers == {"more_requests": numbers["more_requests"]}


def test_the_same_seed_gives_the_same_result(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(poisson(rng, 2, 500), varied(rng, 500))
    first, second = (ask(log, EIGHT_SLOTS, seed=7) for _ in range(2))
    assert first.model_dump_json() == second.model_dump_json()


def test_every_record_survives_json(make: Make, ask: Ask, rng: Rng) -> None:
    result = ask(make(poisson(rng, 2, 300), varied(rng, 300)), EIGHT_SLOTS)
    assert Result.model_validate_json(result.model_dump_json(by_alias=True)) == result
