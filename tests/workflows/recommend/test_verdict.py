"""The verdict table: the first row that applies, for any evidence at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_sim import Memory, Step
from slotwise_workflows.compare.load import Load
from slotwise_workflows.compare.sorting import Sorted
from slotwise_workflows.costs import StatedCost
from slotwise_workflows.costs.stated import Checked
from slotwise_workflows.facts import Facts, Known, Range
from slotwise_workflows.observe.record import ObservedBatching
from slotwise_workflows.recommend import codes
from slotwise_workflows.recommend.advice import _ACTION_NUMBERS, NEXT_ACTIONS
from slotwise_workflows.recommend.evidence import Evidence
from slotwise_workflows.recommend.recommendation import recommend
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.recommend.verdict import decide
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import LengthFigures, Source

T = Thresholds()


def estimate(low: float, high: float) -> Estimate:
    return Estimate(estimate=(low + high) / 2, low=low, high=high)


def facts(**changes: Any) -> Facts:
    known: dict[str, Any] = {
        "serving": Known("self_hosted", "given", "given"),
        "batches_already": Known(False, "assumed", "unknown"),
        "mode": Known("online", "given", "given"),
        "loop": Known("open", "estimated", "in_flight"),
        "in_flight": 3,
        "replicas": Known(1, "given", "given"),
        "slots": Range(8, 8, 8, "given", "given"),
        "ms_per_token": Range(10, 10, 10, "given", "given"),
        "max_delay_ms": Range(0, 0, 0, "assumed", "default"),
    }
    return Facts(**(known | changes))


def load(**changes: Any) -> Load:
    known: dict[str, Any] = {
        "waiting": estimate(0.3, 0.3),
        "requests": None,
        "rate_per_s": 2.0,
        "latency_ratio": estimate(1.4, 1.4),
        "replications": {},
        "overload": estimate(0.5, 0.5),
        "capacity_per_s": {"dynamic": 4.0, "continuous": 8.0},
        "latency_mean_s": {"dynamic": 5.0, "continuous": 2.0},
        "latency_p95_s": {"dynamic": 10.0, "continuous": 5.0},
        "ttft_p95_s": {"dynamic": 4.0, "continuous": 1.0},
        "adopt_from_load": 1.5,
        "servers_needed": {"dynamic": 2, "continuous": 1},
    }
    return Load(**(known | changes))


def evidence(**changes: Any) -> Evidence:
    known: dict[str, Any] = {
        "requests": 1000,
        "facts": facts(),
        "lengths": LengthFigures(mean=200, p50=150, p95=700, max=999, std=210, cv=1.05),
        "gain": estimate(2.0, 2.2),
        "gain_by_slots": {8: estimate(2.0, 2.2)},
        "by_lengths": estimate(2.0, 2.2),
        "by_padding": {True: 2.1, False: 2.1},
        "even": 1.0,
        "bound": estimate(2.0, 2.2),
        "overlapped": True,
        "shared": 0.9,
        "load": load(),
        "contradicted": None,
        "arrivals": None,
        "segments": {},
        "prefix_share": None,
        "prompt_mean": 500.0,
        "batch_tokens": 5600.0,
        "prompts_unknown": 0.0,
        "beyond_caps": 0,
        "flags": (),
        "truncated_share": 0.0,
        "bench": False,
        "verified": True,
        "objectives": {},
        "if_sorted": None,
    }
    told = known | changes
    if "by_lengths" not in changes and told["facts"].cost is None:
        told["by_lengths"] = told["gain"]  # at a fixed time per token lengths are all there is
    return Evidence(**told)


def offline() -> Facts:
    return facts(mode=Known("offline", "given", "given"))


def cost(kind: Literal["step", "preset", "calibration"] = "step") -> StatedCost:
    checked = {"preset": Checked("derived", 0.03), "calibration": Checked("fitted", 0.05, 80, 40)}
    return StatedCost(
        Step(base_ms=8.0), kind, "llama", "a paper", "", None, checked=checked.get(kind)
    )


def at_step_cost(
    kind: Literal["step", "preset", "calibration"] = "step", **changes: Any
) -> Evidence:
    return evidence(**({"facts": facts(cost=cost(kind))} | changes))


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        (evidence(requests=71), "insufficient_data", "too_few_requests"),
        (evidence(gain=None), "insufficient_data", "too_few_requests"),
        (
            evidence(facts=facts(serving=Known("managed_api", "given", "given"))),
            "not_yours",
            "managed_api",
        ),
        (
            evidence(facts=facts(batches_already=Known(True, "estimated", "engine_signature"))),
            "already",
            "batches_continuously",
        ),
        (evidence(gain=estimate(0.8, 0.99)), "no_gain", "slower"),
        (evidence(shared=0.049), "no_gain", "low_load"),
        (evidence(shared=0.05), "adopt", "gain_waiting"),
        (evidence(shared=0.0, facts=offline()), "adopt", "gain_offline"),
        (evidence(gain=estimate(1.0, 1.09)), "conditional", "waiting_only"),
        (evidence(gain=estimate(1.0, 1.09), load=None), "no_gain", "neighbours_alike"),
        (
            evidence(
                gain=estimate(1.0, 1.09),
                bound=estimate(1.0, 1.09),
                load=load(waiting=estimate(0.05, 0.3)),
            ),
            "no_gain",
            "even_lengths",
        ),
        (
            evidence(gain=estimate(1.0, 1.09), bound=estimate(1.0, 1.2), load=None),
            "no_gain",
            "even_lengths",
        ),
        (evidence(load=None), "adopt", "gain_lengths_only"),
        (evidence(load=load(overload=estimate(1.0, 1.2))), "adopt", "gain_overload"),
        (evidence(objectives={"latency": 9.0}), "adopt", "gain_objective"),
        (evidence(objectives={"ttft": 3.0}), "adopt", "gain_objective_ttft"),
        (evidence(load=load(waiting=estimate(0.19, 0.3))), "conditional", "from_load"),
        (
            evidence(gain=estimate(1.15, 1.5), gain_by_slots={8: estimate(1.15, 1.5)}),
            "insufficient_data",
            "interval_wide",
        ),
        (
            evidence(overlapped=False, facts=facts(loop=Known("closed", "estimated", "in_flight"))),
            "no_gain",
            "one_caller",
        ),
        (evidence(gain=estimate(1.15, 1.4)), "marginal", "marginal"),
        (at_step_cost(load=None), "adopt", "gain_at_cost"),
        (at_step_cost(gain=estimate(0.6, 0.9)), "no_gain", "slower"),
        (at_step_cost(gain=estimate(1.0, 1.09), load=None), "no_gain", "cost_takes_it"),
        (
            at_step_cost(gain=estimate(1.0, 1.09), by_lengths=estimate(1.0, 1.09), load=None),
            "no_gain",
            "neighbours_alike",
        ),
        (
            evidence(
                gain=estimate(1.05, 1.6),
                gain_by_slots={4: estimate(1.05, 1.1), 64: estimate(1.5, 1.6)},
                facts=facts(slots=Range(4, 8, 64, "assumed", "assumed_range")),
            ),
            "insufficient_data",
            "slots_decide",
        ),
    ],
)
def test_each_row(case: Evidence, verdict: str, reason: str) -> None:
    decision = decide(case, T)
    assert (decision.verdict, decision.reasons[0].code) == (verdict, reason)


@pytest.mark.parametrize(
    ("known", "reason", "action"),
    [
        (
            {"serving": Known("managed_api", "estimated", "model_name")},
            "managed_api",
            "use_provider_levers",
        ),
        (
            {"batches_already": Known(True, "estimated", "engine_signature")},
            "batches_continuously",
            "tune_engine",
        ),
    ],
)
def test_nobody_is_sent_to_collect_what_would_change_nothing(
    known: dict[str, Any], reason: str, action: str
) -> None:
    advice = recommend(evidence(requests=20, facts=facts(**known)), T)
    assert advice.verdict == "insufficient_data"
    assert reason in {own.code for own in advice.reasons}
    assert [own.code for own in advice.actions] == [action]


def test_every_action_knows_its_numbers() -> None:
    assert set(_ACTION_NUMBERS) == set(codes.ACTIONS)
    assert {code for found in NEXT_ACTIONS.values() for code in found} <= set(codes.ACTIONS)


def test_an_interval_of_everything_asks_for_batches_not_for_millions() -> None:
    gain = Estimate(estimate=5.0, low=1.0, high=300.0)
    many = facts(slots=Range(300, 300, 300, "given", "given"))
    case = evidence(requests=600, gain=gain, gain_by_slots={300: gain}, facts=many)
    assert decide(case, T).reasons[0].numbers["more_requests"] == 9 * 300 - 600


def test_an_objective_out_of_reach_still_adopts_and_counts_servers() -> None:
    case = evidence(objectives={"latency": 3.0}, load=load(servers_needed={"continuous": 4}))
    decision = decide(case, T)
    assert decision.verdict == "adopt"
    assert decision.reasons[1].code == "objective_out_of_reach"
    assert decision.reasons[1].numbers["servers"] == 4


def codes_of(case: Evidence) -> set[str]:
    return {limit.code for limit in recommend(case, T).limits}


@pytest.mark.parametrize(
    ("kind", "code", "sure"),
    [
        ("step", "cost_unchecked", "high"),
        ("calibration", "cost_calibrated", "high"),
        ("preset", "cost_of_preset", "medium"),
    ],
)
def test_a_step_cost_is_named_among_the_limits(
    kind: Literal["step", "preset", "calibration"], code: str, sure: str
) -> None:
    known = replace(offline(), cost=cost(kind), batches_already=Known(False, "given", "given"))
    case = at_step_cost(kind, facts=known)
    advice = recommend(case, T)
    assert codes_of(case) == {code}
    assert advice.confidence == sure


def test_a_fit_that_is_far_off_lowers_the_confidence() -> None:
    checked = Checked("fitted", 0.4, 80, reliable=False)
    known = replace(cost("calibration"), checked=checked)
    told = replace(offline(), cost=known, batches_already=Known(False, "given", "given"))
    advice = recommend(at_step_cost("calibration", facts=told), T)
    [limit] = advice.limits
    assert (limit.code, limit.numbers) == ("cost_unreliable", {"off": 0.4, "held_out": None})
    assert advice.confidence == "medium"


def test_padding_is_no_limit_where_nothing_is_batched_at_once() -> None:
    padded = {True: 3.0, False: 2.0}
    for batches, limits in ((False, {"padding_not_counted"}), (True, set())):
        told = replace(offline(), cost=cost(), batches_already=Known(batches, "given", "given"))
        case = at_step_cost(facts=told, by_padding=padded)
        assert codes_of(case) - {"cost_unchecked"} == limits


@pytest.mark.parametrize(
    ("fitted", "sure"),
    [((4, 7), "medium"), ((4, 8), "high"), ((8, 9), "high"), ((9, 64), "medium")],
)
def test_a_cost_fitted_at_other_batches_than_the_slots_is_a_limit(
    fitted: tuple[int, int], sure: str
) -> None:
    known = replace(cost("calibration"), fitted_seqs=fitted)
    told = replace(offline(), cost=known, batches_already=Known(False, "given", "given"))
    advice = recommend(at_step_cost(facts=told), T)
    assert advice.confidence == sure
    found = [limit.numbers for limit in advice.limits if limit.code == "cost_extrapolated"]
    expected = {"slots": 8, "low": fitted[0], "high": fitted[1]}
    assert found == ([expected] if sure == "medium" else [])


def test_a_step_cost_counts_prompts_and_the_batch() -> None:
    """What a time per token leaves out is no limit of a step cost; a prompt not known is."""
    left_out = {"prefill_not_counted", "constant_time_per_token"}
    assert left_out <= codes_of(evidence(prompt_mean=5000.0))
    assert not left_out & codes_of(at_step_cost(prompt_mean=5000.0))
    assert "prompts_unknown" in codes_of(at_step_cost(prompts_unknown=0.5))
    assert "prompts_unknown" not in codes_of(evidence(prompts_unknown=0.5))


def test_padding_is_a_limit_where_it_makes_another_figure() -> None:
    apart = {True: 3.0, False: 2.1}
    assert "padding_not_counted" in codes_of(at_step_cost(by_padding=apart))
    assert "padding_not_counted" not in codes_of(at_step_cost())
    for padded, expected in ((True, "padding_counted"), (False, None)):
        known = facts(cost=cost(), padding=Known(padded, "given", "given"))
        found = codes_of(at_step_cost(facts=known, by_padding=apart))
        assert found & {"padding_counted", "padding_not_counted"} == {expected} - {None}


def test_batches_that_memory_would_not_hold_are_named() -> None:
    known = facts(cost=cost(), memory=Memory(5000))
    assert "batches_exceed_memory" in codes_of(at_step_cost(facts=known, batch_tokens=5600.0))
    assert "batches_exceed_memory" not in codes_of(at_step_cost(facts=known, batch_tokens=4999.0))


def test_requests_that_outgrew_what_was_reserved_are_counted() -> None:
    known = facts(cost=cost(), memory=Memory(50_000, reserve="max_tokens"))
    limits = recommend(at_step_cost(facts=known, beyond_caps=3), T).limits
    (own,) = [limit for limit in limits if limit.code == "caps_exceeded"]
    assert own.numbers == {"requests": 3}
    assert "caps_exceeded" not in codes_of(at_step_cost(facts=known))


def test_the_facts_of_a_step_cost_take_the_place_of_a_time_per_token() -> None:
    known = facts(cost=cost("preset"), memory=Memory(5000))
    told = {fact.name: fact for fact in recommend(at_step_cost("preset", facts=known), T).facts}
    assert "ms_per_token" not in told
    assert told["cost"].value == "llama"
    assert told["cost"].detail == "a paper; "
    assert told["memory"].value == 5000
    assert (told["padding"].value, told["padding"].source) == (None, "assumed")
    fitted = recommend(at_step_cost("calibration"), T).facts
    assert next(fact for fact in fitted if fact.name == "cost").source == "estimated"
    assert {fact.name for fact in recommend(evidence(), T).facts} & {"cost", "padding"} == set()


@pytest.mark.parametrize(
    ("lengths", "weight"),
    [((1.0, 1.05), "decides"), ((2.5, 2.6), "some"), ((2.0, 2.2), "none")],
)
def test_the_weight_of_a_step_cost_is_what_it_changes(
    lengths: tuple[float, float], weight: str
) -> None:
    case = at_step_cost(by_lengths=estimate(*lengths), load=None)
    told = next(fact for fact in recommend(case, T).facts if fact.name == "cost")
    assert told.weight == weight


def test_the_variation_at_which_it_flips_counts_from_equal_lengths() -> None:
    """CV 1.05 gains 2.0 at the low end; equal lengths gain 0.8: 1.2 is a third of the way."""
    flip = recommend(at_step_cost(even=0.8), T).flip
    assert flip[0].numbers["cv"] == pytest.approx(1.05 / 3)
    assert recommend(at_step_cost(even=1.3), T).flip == ()  # no variation is beyond already


def test_sorting_says_what_it_gains() -> None:
    known = Sorted(perfect=1.9, guessed=1.4, off=1.65)
    advice = recommend(evidence(facts=offline(), if_sorted=known), T)
    told = next(own for own in advice.alternatives if own.code == "sort_by_length")
    assert told.numbers == {"perfect": 1.9, "guessed": 1.4, "off": 1.65, "refilled": 2.1}


def observed(kind: Any, **counts: Any) -> ObservedBatching:
    return ObservedBatching(kind=kind, **({"met": 90, "joined": [0] * 9} | counts))


@pytest.mark.parametrize(
    ("found", "batches", "codes_"),
    [
        (observed("continuous", joined=[70, *[3] * 8]), True, ["seen_joining"]),
        (observed("batch_at_once", held=40), False, ["seen_waiting"]),
        (
            observed("static", held=40, tied=30, apart=50, tied_by_chance=4.2),
            False,
            ["seen_waiting", "seen_together"],
        ),
        (observed("serial", waited=60), False, ["seen_one_by_one"]),
        (observed("serial", queued=60, paced=58), False, ["seen_one_by_one"]),
        (observed("undetermined", reason="ambiguous"), False, []),
        (observed("static", held=40), True, []),  # an engine's signature told otherwise
    ],
)
def test_what_a_logs_times_show_stands_beside_the_verdict(
    found: ObservedBatching, batches: bool, codes_: list[str]
) -> None:
    known = facts(batches_already=Known(batches, "estimated", "log_timings"), observed=found)
    advice = recommend(evidence(facts=known), T)
    shown = [reason for reason in advice.reasons if reason.code.startswith("seen_")]
    assert [reason.code for reason in shown] == codes_
    for reason in shown:
        assert set(reason.numbers) == set(codes.REASONS[reason.code])


def test_servers_that_would_explain_a_log_as_well_are_counted() -> None:
    found = observed("undetermined", reason="several_servers", joined=[70, 40, 12, *[1] * 6])
    advice = recommend(evidence(facts=facts(observed=found)), T)
    [limit] = [limit for limit in advice.limits if limit.code.startswith("batching_")]
    assert (limit.code, limit.numbers) == ("batching_several", {"servers": 4})


def test_what_may_be_there_already_is_not_to_be_adopted() -> None:
    found = observed("undetermined", reason="several_servers", joined=[70, 40, 12, *[1] * 6])
    advice = recommend(evidence(facts=facts(observed=found)), T)
    assert advice.verdict == "conditional"
    assert advice.reasons[0].code == "unless_already"
    assert advice.reasons[0].numbers == {"gain": 2.1, "servers": 4}
    assert advice.actions[0].code == "probe_endpoint"  # the number of servers is known here
    told = facts(observed=found, max_delay_ms=Range(50, 50, 50, "given", "given"))
    assert recommend(evidence(facts=told), T).verdict == "adopt"


@st.composite
def estimates(draw: st.DrawFn, low: float, high: float) -> Estimate:
    a, b, c = sorted(draw(st.floats(low, high)) for _ in range(3))
    return Estimate(low=a, estimate=b, high=c)


@st.composite
def any_evidence(draw: st.DrawFn) -> Evidence:
    slots = draw(
        st.sampled_from(
            [Range(8, 8, 8, "given", "given"), Range(4, 8, 64, "assumed", "assumed_range")]
        )
    )
    source = st.sampled_from(get_args(Source))
    known = facts(
        serving=Known(
            draw(st.sampled_from(["self_hosted", "managed_api", "unknown"])), draw(source), "given"
        ),
        batches_already=Known(draw(st.booleans()), draw(source), "unknown"),
        mode=Known(draw(st.sampled_from(["online", "offline", "unknown"])), draw(source), "given"),
        loop=Known(draw(st.sampled_from(["open", "closed", "unknown"])), draw(source), "unknown"),
        replicas=Known(draw(st.one_of(st.none(), st.integers(1, 9))), draw(source), "unknown"),
        slots=slots,
        padding=Known(draw(st.booleans()), draw(source), "default"),
        cost=draw(st.sampled_from([None, cost("step"), cost("preset"), cost("calibration")])),
        memory=draw(st.sampled_from([None, Memory(5000)])),
    )
    gains = st.one_of(st.none(), estimates(0.5, 5.0))
    loads = st.builds(
        load,
        waiting=estimates(-0.5, 1.0),
        overload=estimates(0.0, 3.0),
        adopt_from_load=st.floats(1, 100),
        servers_needed=st.fixed_dictionaries(
            {"continuous": st.one_of(st.none(), st.integers(1, 99))}
        ),
    )
    gain = draw(gains)
    return evidence(
        requests=draw(st.integers(1, 500)),
        facts=known,
        gain=gain,
        gain_by_slots={n: draw(estimates(0.5, 5.0)) for n in {4, 8, 64}} if gain else {},
        by_lengths=gain and draw(estimates(0.5, 5.0)),
        by_padding={pad: draw(st.floats(0.5, 5.0)) for pad in (True, False)} if gain else {},
        even=draw(st.floats(0.5, 2.0)),
        bound=gain and draw(estimates(0.5, 5.0)),
        overlapped=draw(st.one_of(st.none(), st.booleans())),
        shared=draw(st.one_of(st.none(), st.floats(0, 1))),
        load=draw(st.one_of(st.none(), loads)),
        objectives=draw(
            st.dictionaries(st.sampled_from(["latency", "ttft"]), st.floats(0.1, 30), max_size=2)
        ),
        truncated_share=draw(st.floats(0, 1)),
        bench=draw(st.booleans()),
        flags=draw(st.sampled_from([(), ("biased_missing:stream",), ("time_resolution:3s",)])),
    )


def by_the_page(e: Evidence) -> set[str]:
    """The verdicts of docs/background/verdict.md, written once more and by itself."""
    if e.requests < max(72, e.facts.slots.value) or e.gain is None:
        return {"insufficient_data"}
    if e.facts.serving.value == "managed_api":
        return {"not_yours"}
    if e.facts.batches_already.value:
        return {"already"}
    online = e.facts.mode.value != "offline"
    alone = e.facts.slots.high < 2 or (e.overlapped is False and e.facts.loop.value == "closed")
    if e.gain.high < 1.0 or alone or (online and e.shared is not None and e.shared < 0.05):
        return {"no_gain"}
    if e.gain.high < 1.1:
        falls = e.load is not None and e.load.waiting.low >= 0.1
        return {"conditional"} if falls else {"no_gain"}
    if e.gain.low >= 1.2:
        missed = e.load is not None and (
            e.load.latency_p95_s["dynamic"] > e.objectives.get("latency", 1e9)
            or e.load.ttft_p95_s["dynamic"] > e.objectives.get("ttft", 1e9)
        )
        now = (
            not online
            or e.load is None
            or missed
            or e.load.overload.low >= 1
            or e.load.waiting.low >= 0.2
        )
        return {"adopt"} if now else {"conditional"}
    return {"insufficient_data"} if e.gain.high - e.gain.low > 0.3 else {"marginal"}


@settings(max_examples=600)
@given(case=any_evidence())
def test_the_table_is_the_one_in_the_docs(case: Evidence) -> None:
    decision = decide(case, T)
    assert {decision.verdict} == by_the_page(case)
    for reason in decision.reasons:
        assert set(reason.numbers) == set(codes.REASONS[reason.code])


@settings(max_examples=200)
@given(case=any_evidence())
def test_every_recommendation_says_what_to_do_and_how_sure(case: Evidence) -> None:
    advice = recommend(case, T)
    assert advice.actions or advice.verdict == "insufficient_data"
    assert advice.reasons[1].code == "variation"
    assert advice.confidence in {"high", "medium", "low"}
    if case.bench and advice.verdict not in {"already", "not_yours"}:
        assert advice.confidence == "low"
    assert {fact.name for fact in advice.facts} <= set(codes.FACTS)


@settings(max_examples=200)
@given(case=any_evidence(), shift=st.floats(0.0, 2.0))
def test_more_gain_never_turns_a_yes_into_a_no(case: Evidence, shift: float) -> None:
    if case.gain is None or decide(case, T).verdict != "adopt":
        return
    more = Estimate(
        estimate=case.gain.estimate + shift, low=case.gain.low + shift, high=case.gain.high + shift
    )
    changed = evidence(
        **{name: getattr(case, name) for name in Evidence.__slots__} | {"gain": more}
    )
    assert decide(changed, T).verdict == "adopt"


@pytest.mark.parametrize(
    ("gain", "edge"),
    [
        # an adoption ends where the lower end of the gain passes 1.2
        (estimate(2.0, 2.2), 1.05 * 0.2 / 1.0),
        # a no ends where the upper end passes 1.1
        (estimate(1.0, 1.05), 1.05 * 0.1 / 0.05),
        # a marginal gain becomes a yes where the lower end passes 1.2
        (estimate(1.15, 1.3), 1.05 * 0.2 / 0.15),
    ],
)
def test_the_cv_at_which_the_answer_flips(gain: Estimate, edge: float) -> None:
    """Rescaling the spread at the same mean moves the gain along 1 + k (gain - 1)."""
    case = evidence(gain=gain, gain_by_slots={8: gain}, load=None)
    flip = next(reason for reason in recommend(case, T).flip if reason.code == "flip_cv")
    assert flip.numbers["cv"] == pytest.approx(edge)
    before = recommend(case, T).verdict
    kept = 1.01 if before == "adopt" else 0.99  # an adoption needs the spread, the others lack it
    for share in (0.99, 1.01):
        k = edge / 1.05 * share
        low, mid, high = (1 + k * (x - 1) for x in (gain.low, gain.estimate, gain.high))
        moved = Estimate(low=low, estimate=mid, high=high)
        found = decide(evidence(gain=moved, gain_by_slots={8: moved}, load=None), T).verdict
        assert (found == before) == (share == kept)


def test_equal_lengths_flip_at_the_cv_of_normal_lengths() -> None:
    equal = LengthFigures(mean=150, p50=150, p95=150, max=150, std=0, cv=0)
    advice = recommend(
        evidence(
            gain=estimate(1.0, 1.0), gain_by_slots={8: estimate(1.0, 1.0)}, lengths=equal, load=None
        ),
        T,
    )
    flip = next(reason for reason in advice.flip if reason.code == "flip_cv")
    # the longest of eight standard normals is 1.4236 on average (Teichroew, 1956)
    assert flip.numbers["cv"] == pytest.approx(0.1 / 1.4236, rel=0.01)
