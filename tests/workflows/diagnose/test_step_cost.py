"""Diagnoses under a step cost: what it says, what it refuses, and that it can say no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slotwise_sim import Continuous, Memory, Step
from slotwise_sim.workload import Ints
from slotwise_workflows.costs import find_preset
from slotwise_workflows.costs.stated import by_the_user
from slotwise_workflows.errors import ConfigError, InputError
from slotwise_workflows.given import Given
from slotwise_workflows.result import Reason, Result
from slotwise_workflows.traffic.model import Traffic

Make = Callable[..., Traffic]
Ask = Callable[..., Result]
Rng = np.random.Generator

LLAMA = find_preset("llama-3.1-8b-a100").stated()
JOB = Given(slots=8, mode="offline", cost=LLAMA)


def varied(rng: Rng, n: int) -> Ints:
    return np.maximum(1, np.rint(rng.lognormal(5, 0.8, n))).astype(np.int64)


def prompts(values: Ints) -> dict[str, Any]:
    return {"gen_ai.usage.input_tokens": values.tolist()}


def deciding(result: Result) -> tuple[str, str]:
    return result.verdict, result.reasons[0].code


def codes(reasons: list[Reason]) -> set[str]:
    return {reason.code for reason in reasons}


def test_a_job_at_a_preset_with_memory(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(None, varied(rng, 800), columns=prompts(rng.integers(100, 900, 800)))
    result = ask(log, replace(JOB, memory=Memory(60_000)))
    assert deciding(result) == ("adopt", "gain_offline")
    assert result.ms_per_token is None
    assert result.cost is not None
    assert (result.cost.kind, result.cost.name) == ("preset", "llama-3.1-8b-a100")
    assert isinstance(result.cost.values, Step)
    assert result.cost.values.base_ms == pytest.approx(11.564)
    assert result.memory == Memory(60_000)
    assert result.attribution is not None
    assert result.gain is not None
    assert result.attribution.order == pytest.approx(result.gain.estimate, rel=0.05)
    assert result.attribution.total > result.attribution.order  # memory for far more than eight
    assert result.idle_at_full["dynamic"].estimate > 0.3
    assert "cost_of_preset" in codes(result.limits)
    assert "constant_time_per_token" not in codes(result.limits)
    assert Result.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_a_time_per_token_has_no_cost_and_no_split(make: Make, ask: Ask, rng: Rng) -> None:
    given = Given(slots=8, mode="offline", ms_per_token=8.0, memory=Memory(60_000))
    result = ask(make(None, varied(rng, 300)), given)
    assert (result.cost, result.memory, result.attribution) == (None, None, None)
    assert result.gain is not None
    assert result.idle_at_full["dynamic"].estimate == 1 - 1 / result.gain.estimate
    assert result.idle_at_full["continuous"].high == 0


@pytest.mark.parametrize("cost", [{"cost": LLAMA}, {"ms_per_token": 8.0}])
def test_without_an_order_the_small_sweep_draws_batches_too(
    make: Make, ask: Ask, rng: Rng, cost: dict[str, Any]
) -> None:
    """A table sorted by length: its neighbours say nothing about batches."""
    result = ask(make(None, np.sort(varied(rng, 800))), Given(slots=8, mode="offline", **cost))
    here = next(point for point in result.what_if if point.slots == 8)
    assert result.gain is not None
    assert here.gain == pytest.approx(result.gain.estimate, rel=0.1)


def test_users_wait_at_the_pace_of_the_batch(make: Make, ask: Ask, rng: Rng) -> None:
    arrival = np.cumsum(rng.exponential(0.5, 2000))
    log = make(arrival, varied(rng, 2000), columns=prompts(rng.integers(100, 900, 2000)))
    result = ask(log, Given(slots=8, replicas=1, mode="online", cost=LLAMA))
    assert result.verdict == "adopt"
    assert result.waiting is not None
    utilisation = result.utilisation
    assert utilisation["continuous"] < utilisation["dynamic"]
    assert utilisation["dynamic"] / utilisation["continuous"] == pytest.approx(
        result.gain.estimate if result.gain else 0
    )


def test_without_arrivals_the_gain_is_at_this_cost(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(None, varied(rng, 800), columns=prompts(rng.integers(100, 900, 800)))
    assert deciding(ask(log, Given(slots=8, cost=LLAMA))) == ("adopt", "gain_at_cost")


def test_no_is_an_answer_where_refilling_is_slower(make: Make, ask: Ask, rng: Rng) -> None:
    """Every admission stops what decodes; nearly equal lengths do not make up for it."""
    log = make(None, rng.integers(95, 106, 1500), columns=prompts(np.full(1500, 100)))
    cost = by_the_user(Step(base_ms=10.0, prefill_base_ms=200.0), "step")
    apart = Given(slots=8, cost=cost, continuous=Continuous(prefill="separate"))
    result = ask(log, apart)
    assert deciding(result) == ("no_gain", "slower")
    assert result.gain is not None
    assert result.gain.high < 1
    assert result.attribution is not None
    assert result.attribution.order < 1
    assert "cost_unchecked" in codes(result.limits)


def test_long_prompts_take_the_gain_back_and_are_counted(make: Make, ask: Ask, rng: Rng) -> None:
    """Lengths alone would gain; but nearly all the time goes into prompts, whatever the order."""
    log = make(None, rng.integers(1, 20, 1500), columns=prompts(np.full(1500, 6000)))
    result = ask(log, JOB)
    assert deciding(result) == ("no_gain", "cost_takes_it")
    assert result.reasons[0].numbers["by_lengths"] == pytest.approx(
        result.gain_bound["8"].estimate, rel=0.05
    )
    assert "prefill_not_counted" not in codes(result.limits)
    assert result.confidence == "medium"


def test_prompts_that_are_not_known_are_a_limit(make: Make, ask: Ask, rng: Rng) -> None:
    half: list[int | None] = [500, None] * 400
    log = make(None, varied(rng, 800), columns={"gen_ai.usage.input_tokens": half})
    limit = next(own for own in ask(log, JOB).limits if own.code == "prompts_unknown")
    assert limit.numbers["share"] == 0.5
    fixed = ask(log, Given(slots=8, mode="offline", ms_per_token=8.0))
    assert "prompts_unknown" not in codes(fixed.limits)


def test_cached_prompts_cost_no_prefill(make: Make, ask: Ask, rng: Rng) -> None:
    tokens, long = varied(rng, 800), np.full(800, 4000)
    told = prompts(long)
    cached = told | {"gen_ai.usage.cache_read.input_tokens": [3900] * 800}
    cold, warm = (ask(make(None, tokens, columns=columns), JOB) for columns in (told, cached))
    assert warm.capacity_per_s["continuous"] > 1.5 * cold.capacity_per_s["continuous"]


def test_a_request_larger_than_the_memory_is_named(make: Make, ask: Ask, rng: Rng) -> None:
    columns = prompts(np.array([100] * 99 + [9000])) | {
        "source": [f"log.jsonl:{line}" for line in range(1, 101)]
    }
    log = make(None, varied(rng, 100), columns=columns)
    with pytest.raises(InputError, match=r"^log\.jsonl:100: .*can never run") as caught:
        ask(log, replace(JOB, memory=Memory(5000)))
    assert caught.value.exit_code == 3


def test_caps_that_are_to_be_reserved_must_be_known(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(None, varied(rng, 100), columns=prompts(np.full(100, 50)))
    whole = replace(JOB, memory=Memory(50_000, reserve="max_tokens"))
    said = "server.memory.reserve max_tokens needs the max_tokens of every request: 100 of 100 rows"
    with pytest.raises(InputError, match=f"^{said}"):
        ask(log, whole)
    with pytest.raises(InputError, match=rf"^w\.yaml:6: {said}"):
        ask(log, replace(whole, memory_at="w.yaml:6"))


def test_requests_that_outgrew_their_caps_are_a_limit(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = varied(rng, 400)
    columns = prompts(np.full(400, 50)) | {"gen_ai.request.max_tokens": [200] * 400}
    result = ask(
        make(None, tokens, columns=columns),
        replace(JOB, memory=Memory(50_000, reserve="max_tokens")),
    )
    limit = next(own for own in result.limits if own.code == "caps_exceeded")
    assert limit.numbers == {"requests": int((tokens > 200).sum())}
    paged = ask(make(None, tokens, columns=columns), replace(JOB, memory=Memory(50_000)))
    assert "caps_exceeded" not in codes(paged.limits)


def test_requests_that_take_no_time_are_refused(make: Make, ask: Ask) -> None:
    log = make(None, np.full(100, 1), columns=prompts(np.full(100, 50)))
    nothing = by_the_user(Step(base_ms=1.0, prefill_base_ms=0.0), "step")
    with pytest.raises(ConfigError, match="makes no request take any time"):
        ask(log, Given(slots=8, cost=nothing))


def test_the_variation_at_which_it_flips_is_where_it_flips(make: Make, ask: Ask, rng: Rng) -> None:
    """The same log with its spread scaled to that coefficient of variation gains as much as told.

    The gain moves along a straight line only about so: within 0.05 of the threshold.
    """
    tokens, told = varied(rng, 4000), prompts(rng.integers(100, 900, 4000))
    result = ask(make(None, tokens, columns=told), JOB)
    flip = next(own for own in result.flip if own.code == "flip_cv").numbers["cv"]
    assert isinstance(flip, float)
    scale = flip / (tokens.std(ddof=1) / tokens.mean())
    scaled = np.maximum(1, np.rint(tokens.mean() + scale * (tokens - tokens.mean())))
    at_the_flip = ask(make(None, scaled.astype(np.int64), columns=told), JOB)
    assert at_the_flip.gain is not None
    assert at_the_flip.gain.low == pytest.approx(1.2, abs=0.05)


def test_each_model_has_a_split_of_its_own(make: Make, ask: Ask, rng: Rng) -> None:
    tokens = np.concatenate([np.full(800, 200), varied(rng, 400)])
    columns = prompts(np.full(1200, 300)) | {"gen_ai.request.model": ["a"] * 800 + ["b"] * 400}
    result = ask(make(None, tokens, columns=columns), JOB)
    orders = [own.attribution.order for own in result.models if own.attribution is not None]
    assert len(orders) == 2
    assert min(orders) == pytest.approx(1.0, abs=0.02)
    assert max(orders) > 1.5


def test_the_same_seed_gives_the_same_result(make: Make, ask: Ask, rng: Rng) -> None:
    log = make(None, varied(rng, 300), columns=prompts(np.full(300, 300)))
    first, second = (ask(log, JOB, seed=7) for _ in range(2))
    assert first.model_dump_json() == second.model_dump_json()
