"""What several trials say together."""

from __future__ import annotations

from typing import Any

import pytest

from slotwise_workflows.probe.batching.conclude import conclude, telling
from slotwise_workflows.probe.model import Alone, Baseline, Evidence
from slotwise_workflows.result import Reason

BASELINE = Baseline(
    ttft_s=0.02, latency_s=0.64, output_tokens=32, seconds_per_token=0.02, streams=True
)
QUIET = Alone(
    requests=4,
    ttft_s=0.02,
    ttft_min_s=0.02,
    ttft_max_s=0.02,
    latency_min_s=0.3,
    noise_s=0,
    seconds_per_token=0.02,
    step_s=0.02,
    seconds_per_token_min=0.02,
    seconds_per_token_max=0.02,
    wait_s=0,
    varies=False,
)
BUSY = QUIET.model_copy(update={"varies": True, "wait_s": 2.0})


def trial(stage: str, batching: str, code: str, **changes: Any) -> Evidence:
    values = {"stage": stage, "trial": 1, "batching": batching, "reason": Reason(code=code)}
    return Evidence.model_validate({**values, **changes})


JOINED = trial("group", "continuous", "joined_at_once", together=7)
FEW = trial("group", "continuous", "few_slots", together=4, slots=4)
REFILLED = trial("refill", "continuous", "refilled", together=4, slots=4)
STATIC = trial("group", "static", "ran_as_a_group", clusters=[1, 4, 2], slots=4, release="own")
RUNG = trial("slots", "static", "began_together", clusters=[1, 4, 3], slots=4, gather_s=(0, 0.005))
GATHERED = trial(
    "slots", "dynamic", "began_with_later_ones", clusters=[3, 4, 1], gather_s=(0.02, 0.05)
)
SERIAL = trial("group", "serial", "ran_by_turn", slots=1)
ALL = trial("slots", "undetermined", "nobody_waited", together=32)
SIXTEEN = trial("slots", "undetermined", "nobody_waited", together=16)
QUEUE = trial("slots", "continuous", "refilled", together=12, slots=12)
REPLICAS = trial("group", "undetermined", "replicas", together=3)
MIXED = trial("refill", "undetermined", "replicas", together=8)
LATE = trial("group", "undetermined", "joined_late")
LIMITED = trial("slots", "undetermined", "rate_limited")


@pytest.mark.parametrize(
    ("trials", "alone", "batching", "confidence", "code"),
    [
        ([JOINED], QUIET, "continuous", "low", "joined_at_once"),
        ([JOINED, JOINED, ALL], QUIET, "continuous", "high", "joined_at_once"),
        ([JOINED, JOINED, ALL], BUSY, "continuous", "medium", "joined_at_once"),
        ([JOINED, QUEUE, REFILLED, JOINED], QUIET, "continuous", "high", "joined_at_once"),
        ([JOINED, QUEUE, REFILLED], QUIET, "continuous", "medium", "joined_at_once"),
        ([JOINED, QUEUE, REFILLED, JOINED, MIXED], QUIET, "continuous", "low", "joined_at_once"),
        # as many idle servers as ran at once would have done as well
        ([JOINED, JOINED], QUIET, "continuous", "low", "joined_at_once"),
        ([JOINED, LIMITED, JOINED], QUIET, "continuous", "low", "joined_at_once"),
        ([JOINED, SIXTEEN, JOINED], QUIET, "continuous", "low", "joined_at_once"),
        ([JOINED, QUEUE, JOINED, QUEUE], QUIET, "continuous", "low", "joined_at_once"),
        ([JOINED, STATIC], QUIET, "undetermined", "low", "trials_differ"),
        ([JOINED, STATIC], BUSY, "undetermined", "low", "busy"),
        ([JOINED, MIXED, JOINED], BUSY, "continuous", "low", "joined_at_once"),
        ([LATE, REFILLED, JOINED], QUIET, "continuous", "low", "joined_at_once"),
        ([LATE, LATE], QUIET, "undetermined", "low", "joined_late"),
        ([FEW, MIXED, FEW], QUIET, "undetermined", "low", "replicas"),
        ([JOINED, REPLICAS], QUIET, "undetermined", "low", "replicas"),
        ([FEW, FEW], QUIET, "undetermined", "low", "some_joined"),
        ([FEW, REFILLED], QUIET, "continuous", "medium", "few_slots"),
        ([FEW, REFILLED, FEW, REFILLED], QUIET, "continuous", "high", "few_slots"),
        ([FEW, REFILLED, FEW, REFILLED], BUSY, "undetermined", "low", "busy"),
        ([STATIC, RUNG, STATIC, RUNG], QUIET, "static", "high", "ran_as_a_group"),
        ([STATIC, STATIC], QUIET, "static", "low", "ran_as_a_group"),
        ([STATIC, GATHERED, STATIC, GATHERED], QUIET, "dynamic", "high", "began_with_later_ones"),
        ([STATIC, GATHERED, STATIC, RUNG], QUIET, "undetermined", "low", "gathering_unclear"),
        ([SERIAL, SERIAL], BUSY, "undetermined", "low", "busy"),
        ([], QUIET, "undetermined", "low", "too_little_done"),
    ],
)
def test_only_what_all_say(
    trials: list[Evidence], alone: Alone, batching: str, confidence: str, code: str
) -> None:
    found = conclude(trials, BASELINE, alone)
    assert (found.batching, found.confidence, found.reason.code) == (batching, confidence, code)


def test_slots_are_exact_where_two_saw_the_same_and_none_saw_more() -> None:
    assert conclude([STATIC, RUNG], BASELINE, QUIET).slots == 4
    assert conclude([STATIC], BASELINE, QUIET).slots is None
    more = RUNG.model_copy(update={"clusters": [1, 6, 1], "slots": 6})
    assert conclude([STATIC, RUNG, more], BASELINE, QUIET).slots is None
    assert conclude([STATIC, RUNG], BASELINE, BUSY).slots is None
    assert conclude([SERIAL, SERIAL], BASELINE, QUIET).slots == 1
    assert conclude([JOINED, JOINED, ALL], BASELINE, QUIET).slots_at_least == 32


def test_a_full_batch_does_not_bound_how_long_it_waits() -> None:
    full = GATHERED.model_copy(update={"clusters": [4, 4]})
    assert conclude([STATIC, full, full], BASELINE, QUIET).gather_s == (0.02, None)
    assert conclude([STATIC, GATHERED, GATHERED], BASELINE, QUIET).gather_s == (0.02, 0.05)


def test_ends_alone_are_a_step_lower() -> None:
    whole = BASELINE.model_copy(update={"streams": False})
    found = conclude([STATIC, RUNG, STATIC, RUNG], whole, QUIET)
    assert (found.batching, found.confidence) == ("static", "medium")
    assert [remark.code for remark in found.remarks] == ["streaming_off"]


def test_joins_by_ends_alone_do_not_rule_out_a_fleet() -> None:
    """How many ran at once is not seen, and no slots are known to send a refill test to."""
    whole = BASELINE.model_copy(update={"streams": False})
    joined, queue = (
        one.model_copy(update={"together": 1, "slots": None}) for one in (JOINED, QUEUE)
    )
    found = conclude([joined, queue, joined], whole, QUIET)
    assert (found.batching, found.confidence) == ("continuous", "low")


def test_pacing_leaves_it_open() -> None:
    found = conclude([JOINED, JOINED], BASELINE, QUIET, paced=Reason(code="paced"))
    assert (found.batching, found.reason.code) == ("undetermined", "paced")


def test_the_picture_is_of_a_group_test() -> None:
    """Its first request is the long one that the title speaks of; a refill test's is a plug."""
    for stages, expected in (
        ([FEW, ALL, REFILLED], 1),
        ([REFILLED, RUNG, FEW], 3),
        ([RUNG, STATIC, RUNG], 2),
        ([], 0),
    ):
        trials = [t.model_copy(update={"trial": i}) for i, t in enumerate(stages, 1)]
        end = conclude(trials, BASELINE, QUIET)
        assert telling(trials, end) == expected
