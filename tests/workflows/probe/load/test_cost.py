from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.findings import CostFinding
from slotwise_workflows.probe.load.cost import CostRun, measure_scale, prompt_factor, run_cost
from slotwise_workflows.probe.load.cost_fit import fit_cost, prefix_cache, server_of
from slotwise_workflows.probe.load.cost_plan import (
    EQUAL_PAIRS,
    CostPlan,
    article_lengths,
    most_users,
    plan_cost,
)
from slotwise_workflows.probe.model import Baseline, Batching
from slotwise_workflows.probe.prompts import SIZING_WORDS, Scale, prompt_of, scale_of
from slotwise_workflows.traffic.probe_log import EQUAL

NETWORK_MS = 2.0
FAST = Baseline(ttft_s=0.024, latency_s=0.7, output_tokens=32, seconds_per_token=0.02, streams=True)


def plan_of(
    batching: Batching = "continuous",
    slots: int = 8,
    seed: int = 1,
    *,
    step_ms: float = 20.0,
    **how: Any,
) -> CostPlan:
    baseline = FAST.model_copy(update={"seconds_per_token": step_ms / 1000})
    return plan_cost(
        batching=batching, slots=slots, baseline=baseline, rng=np.random.default_rng(seed), **how
    )


@pytest.fixture(scope="session")
def cost_of(bench: Any) -> Callable[..., tuple[CostRun, CostFinding]]:
    """Runs the cost stage on an engine; gives what it saw and found."""

    def run(
        engine: Any, batching: Batching, slots: int, *, step_ms: float = 20.0, **endpoint: Any
    ) -> Any:
        plan = plan_of(batching, slots, step_ms=step_ms)
        there = bench.endpoint(engine, bench.server.Job, network_ms=NETWORK_MS, **endpoint)
        seen = bench.run(there, lambda client: run_cost(client, plan, np.random.default_rng(2)))
        return seen, fit_cost(seen, server_of(batching, slots, release="own"))

    return run


@pytest.mark.parametrize("jitter", [0.0, 0.2])
@pytest.mark.parametrize("base_ms", [5.0, 40.0])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_the_cost_of_an_engine_is_found(
    bench: Any, cost_of: Any, base_ms: float, share: float, jitter: float
) -> None:
    """Each term within its interval, widened by what the page on intervals says they lack; and
    what counts in the end, an iteration of any size, within 1 %, 2 % where steps vary by 20 %."""
    truth = {"base_ms": base_ms, "per_seq_ms": share * base_ms}
    engine = bench.costly(*truth.values(), 0.002 * base_ms, slots=8, jitter=jitter, seed=1)
    _, found = cost_of(engine, "continuous", 8, step_ms=sum(truth.values()))
    assert found.cost_unknown is None
    assert found.calibration is not None
    for name, value in truth.items():
        term = found.calibration.terms[name]
        wider = 0.5 * (term.high - term.low) + 0.005 * base_ms
        assert term.low - wider <= value <= term.high + wider
    cost = found.calibration.cost
    for batch in (1, 3, 8):
        one_ms = cost.base_ms + cost.per_seq_ms * batch
        true_ms = truth["base_ms"] + truth["per_seq_ms"] * batch
        assert one_ms == pytest.approx(true_ms, rel=0.02 if jitter else 0.01)
    if not jitter:
        prefill = found.calibration.terms["per_prefill_token_ms"]
        assert prefill.value == pytest.approx(0.002 * base_ms, rel=0.25)
        assert found.calibration.hold_out is not None
        assert abs(found.calibration.hold_out.errors.latency_mean) < 0.015
    assert found.prompt_scale_measured
    assert found.prefix_cache is not None
    assert found.prefix_cache.ttft_ratio == pytest.approx(1, abs=1e-9 + 1.5 * jitter)


@pytest.mark.parametrize(
    ("batching", "slots"), [("continuous", 8), ("static", 8), ("static", 2), ("serial", 1)]
)
def test_every_policy_of_the_test_server_is_fitted(
    bench: Any, cost_of: Any, batching: Batching, slots: int
) -> None:
    kind = "static" if batching == "serial" else batching
    engine = bench.server.Engine(bench.server.Policy(kind, slots, "own", 20.0, 1.0))
    _, found = cost_of(engine, batching, slots)
    assert found.calibration is not None
    cost = found.calibration.cost
    for batch in (1, slots):
        assert cost.base_ms + cost.per_seq_ms * batch == pytest.approx(
            20 + batch if slots > 1 else 21, rel=0.005
        )
    server = found.calibration.server
    assert server.policy == {"static": "dynamic"}.get(batching, "continuous")
    assert server.slots == slots
    how = found.calibration.terms["per_seq_ms"].how
    assert how == ("given" if slots == 1 else "fitted")


def test_a_run_repeats(bench: Any, cost_of: Any) -> None:
    one, other = (cost_of(bench.costly(20.0, 1.0, 0.05), "continuous", 4) for _ in range(2))
    assert one[0].samples == other[0].samples
    assert one[1] == other[1]


def test_equal_prompts_are_seen_to_be_cached(bench: Any, cost_of: Any) -> None:
    class Caching(bench.costly):  # type: ignore[misc]
        """Prefills no prompt of the wanted length but every other one, as of equal ones."""

        pairs = 0

        def submit(self, job: Any) -> None:
            if job.tokens == 8 and job.prompt == 512:
                self.pairs += 1
                if self.pairs % 2 == 0 and self.pairs > 2:
                    job.prompt = 0
            super().submit(job)

    seen, found = cost_of(Caching(20.0, 1.0, 0.05), "continuous", 4)
    cache = found.prefix_cache
    assert cache is not None
    assert (cache.requests, cache.prompt_tokens) == (2 * EQUAL_PAIRS, 512)
    alone_ms = 20 + 2 * NETWORK_MS
    assert cache.ttft_ratio == pytest.approx(alone_ms / (alone_ms + 512 * 0.05), abs=0.001)
    equal = sum(sample.name == EQUAL for sample in seen.samples)
    assert found.calibration is not None
    assert found.calibration.requests == len(seen.samples) - equal
    assert prefix_cache([s for s in seen.samples if s.name != EQUAL]) is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"release": "batch"}, "tokens_not_seen"),
        ({"fault": "rate_limited"}, "rate_limited"),
        ({"fault": "server_error"}, "requests_failed"),
    ],
)
def test_that_no_cost_is_found_is_told(
    bench: Any, cost_of: Any, changes: dict[str, str], code: str
) -> None:
    fault = changes.get("fault")
    policy = bench.server.Policy("static", 8, changes.get("release", "own"), 20.0, 1.0)
    seen, found = cost_of(
        bench.server.Engine(policy), "static", 8, fault=lambda n: fault if n > 3 else None
    )
    assert found.calibration is None
    assert found.cost_unknown is not None
    assert found.cost_unknown.code == code
    assert found.cost_unknown.detail
    if fault is not None:
        assert found.failed == 3
        assert found.unsent == plan_of("static", 8).requests - len(seen.samples) > 0


def test_a_server_without_usage_is_told(bench: Any, cost_of: Any) -> None:
    seen, _ = cost_of(bench.costly(20.0), "continuous", 2, words=False)
    assert not seen.scale.measured
    uncounted = [sample.model_copy(update={"output_tokens": None}) for sample in seen.samples]
    blind = CostRun(uncounted, seen.scale, 1.0, seen.client, 0)
    found = fit_cost(blind, server_of("continuous", 2))
    assert found.cost_unknown is not None
    assert found.cost_unknown.code == "tokens_not_counted"


def test_what_the_requests_do_not_tell_is_told(bench: Any, cost_of: Any) -> None:
    seen, _ = cost_of(bench.costly(20.0, 1.0), "continuous", 2)
    few = CostRun(seen.samples[:12], seen.scale, 1.0, seen.client, 0)
    found = fit_cost(few, server_of("continuous", 2))
    assert found.cost_unknown is not None
    assert found.cost_unknown.code == "not_identified"
    assert "at least 20 requests" in found.cost_unknown.detail


def test_a_policy_that_was_not_found_cannot_be_simulated() -> None:
    with pytest.raises(ValueError, match="not known"):
        server_of("undetermined", 4)


def test_prompts_that_would_take_all_the_time_are_shortened(bench: Any, cost_of: Any) -> None:
    """At 5 ms a prompt token: by the factor that leaves prefill a third of the stage's time."""
    seen, found = cost_of(bench.costly(20.0, 1.0, 5.0), "continuous", 4)
    plan = plan_of("continuous", 4)
    factor = plan.seconds / 3 / (plan.prompt_tokens * 0.005)
    assert factor < 0.5
    assert seen.prompt_factor == found.prompt_factor == pytest.approx(factor)
    assert found.calibration is not None
    prefill = found.calibration.terms["per_prefill_token_ms"]
    assert prefill.value == pytest.approx(5.0, rel=0.05)
    longest = max(sample.prompt_tokens or 0 for sample in seen.samples)
    assert longest == pytest.approx(factor * plan.equal_prompt_tokens, abs=2)
    quick, _ = cost_of(bench.costly(20.0, 1.0, 0.05), "continuous", 4)
    assert quick.prompt_factor == 1
    assert prompt_factor(seen.samples[:1], plan) == 1
    assert prompt_factor(seen.samples[1::-1], plan) == 1


# --- the plan ------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    batching=st.sampled_from(["continuous", "static", "serial"]),
    slots=st.integers(1, 300),
    requests=st.integers(1, 600),
    tokens=st.integers(1, 60_000),
    seconds=st.floats(1, 1000),
    per_token_s=st.floats(1e-4, 1),
    context=st.none() | st.integers(64, 4096),
    seed=st.integers(0, 99),
)
def test_no_budget_is_exceeded(
    batching: Batching,
    slots: int,
    requests: int,
    tokens: int,
    seconds: float,
    per_token_s: float,
    context: int | None,
    seed: int,
) -> None:
    baseline = FAST.model_copy(update={"seconds_per_token": per_token_s})
    budget = Budget(requests=requests, output_tokens=tokens, seconds=seconds)
    try:
        plan = plan_cost(
            batching=batching,
            slots=slots,
            baseline=baseline,
            rng=np.random.default_rng(seed),
            budget=budget,
            context_tokens=context,
        )
    except UsageError:
        return
    fixed = len(SIZING_WORDS) + 2 * EQUAL_PAIRS
    sent = [
        (o, p) for r in plan.rungs for o, p in zip(r.output_tokens, r.prompt_tokens, strict=True)
    ]
    assert fixed + len(sent) == plan.requests <= requests
    assert sum(output for output, _ in sent) < plan.output_tokens <= tokens
    assert plan.estimated_s <= seconds * 1.000001
    users = [rung.users for rung in plan.rungs]
    assert users == users[::-1]
    assert max(users) <= most_users(batching, slots)
    assert set(users) >= ({1, 2} if slots > 1 else {1})
    assert min(output for output, _ in sent) >= 1
    if context is not None:
        assert max(output + prompt for output, prompt in sent) <= context
    for rung in plan.rungs:
        assert len(rung.output_tokens) == len(rung.think_s) >= 2 * rung.users


@pytest.mark.parametrize("budget", [{"requests": 15}, {"output_tokens": 300}, {"seconds": 1.0}])
def test_a_budget_for_nothing_is_refused(budget: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="too small"):
        plan_of(budget=Budget(**budget))


def test_the_order_is_drawn_and_lengths_are_the_clients_own() -> None:
    orders = {tuple(rung.users for rung in plan_of(seed=seed).rungs) for seed in range(20)}
    assert len(orders) > 5
    own = plan_of(lengths=np.array([30, 90]), budget=Budget(seconds=1000))
    assert {tokens for rung in own.rungs for tokens in rung.output_tokens} == {30, 90}
    assert own.length_scale == 1
    assert plan_of() == plan_of()
    assert plan_of(seed=1) != plan_of(seed=2)


def test_lengths_where_none_are_known() -> None:
    lengths = article_lengths(40_000, np.random.default_rng(1))
    long = lengths >= 400
    assert set(lengths[~long]) == set(range(40, 200))
    assert (lengths[long].min(), lengths[long].max()) == (400, 999)
    assert long.mean() == pytest.approx(0.15, abs=0.01)


def test_tokens_of_a_word_are_measured(bench: Any) -> None:
    """The bench counts a token a word and ten more."""
    there = bench.endpoint(bench.costly(), bench.server.Job)
    sent, scale = bench.run(there, lambda client: measure_scale(client, np.random.default_rng(1)))
    assert len(sent.samples) == 2
    assert scale.measured
    assert scale.per_word == 1
    prompt = prompt_of(scale.words(200), np.random.default_rng(1))
    assert 10 + len(prompt.split()) == 200
    told = sent.samples[0].prompt_tokens
    same = [sample.model_copy(update={"prompt_tokens": told}) for sample in sent.samples]
    for untold in (same, sent.samples[:1], []):
        assert scale_of(untold) == Scale()
