from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.announce import plan_text
from slotwise_workflows.probe.budget import for_looking
from slotwise_workflows.probe.model import Baseline
from slotwise_workflows.probe.plan import (
    BASELINE_TOKENS,
    SHORTS,
    make_plan,
    size_trial,
    sizes_for,
)
from slotwise_workflows.probe.wire.preflight import TRIES


@given(
    st.integers(1, 9),
    st.integers(1, 100),
    st.integers(1, 20_000),
    st.floats(1e-4, 60),
    st.floats(1e-6, 5),
    st.booleans(),
)
def test_no_plan_is_exceeded(
    trials: int, requests: int, tokens: int, ttft_s: float, per_token_s: float, streams: bool
) -> None:
    try:
        plan = make_plan(trials=trials, max_requests=requests, max_tokens=tokens)
    except UsageError:
        return
    baseline = Baseline(
        ttft_s=ttft_s,
        latency_s=ttft_s,
        output_tokens=None,
        seconds_per_token=per_token_s,
        streams=streams,
    )
    sizes = size_trial(plan, baseline)
    assert plan.trials * sizes.total + TRIES * BASELINE_TOKENS <= plan.output_tokens
    assert plan.output_tokens <= tokens
    assert TRIES + plan.trials * (1 + len(sizes.shorts)) <= plan.requests == requests


@given(st.integers(48, 100_000))
def test_the_shorts_are_short_and_all_different(long: int) -> None:
    shorts = sizes_for(long).shorts
    assert len(set(shorts)) == len(shorts) == SHORTS
    assert min(shorts) >= round(long / 8)
    assert max(shorts) <= long / 4 + 1
    assert list(shorts) not in (sorted(shorts), sorted(shorts, reverse=True))


def test_the_long_request_lasts_as_planned() -> None:
    plan = make_plan(trials=1, max_tokens=200_000, long_s=4)
    fast = Baseline(
        ttft_s=0.01, latency_s=0.3, output_tokens=32, seconds_per_token=0.02, streams=True
    )
    assert size_trial(plan, fast).long == 200
    slow_to_begin = fast.model_copy(update={"ttft_s": 1.0})
    assert size_trial(plan, slow_to_begin).long == 52 / 0.02
    # A third of the time at most: by turn, what is behind it takes as long again.
    hurried = plan.model_copy(update={"seconds": 30})
    assert size_trial(hurried, slow_to_begin).long == round(0.33 * 30 / 0.02)


@pytest.mark.parametrize("limits", [{"max_requests": 9}, {"max_tokens": 100}])
def test_too_little_for_a_trial(limits: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="too few"):
        make_plan(trials=1, **limits)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), float("-inf")])
def test_a_time_without_end_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="--max-seconds is no finite number"):
        make_plan(seconds=seconds)


def test_the_plan_is_told() -> None:
    plan = make_plan()
    text = "\n".join(plan_text(plan, url="http://h/v1", api="chat", model="m", has_key=True))
    assert str(plan.requests) in text
    assert str(plan.output_tokens) in text
    assert "unencrypted" in text
    for url in ("https://h/v1", "http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]/"):
        assert "unencrypted" not in "".join(
            plan_text(plan, url=url, api="chat", model=None, has_key=True)
        )


def told(**limits: int) -> str:
    plan = make_plan(**limits)
    return "\n".join(
        plan_text(plan, url="http://h", api="chat", model=None, has_key=False, cost=True)
    )


def test_without_a_stage_to_follow_how_it_batches_may_take_all() -> None:
    """Of 200 requests 128 are for that where a cost stage follows; both are told as they are."""
    plan = make_plan(max_requests=200)
    assert for_looking(plan, alone=False).requests == 128
    assert for_looking(plan, alone=True) == plan
    # 3 to begin with, one more alone, 8 x 7 of the group tests: 60 or 132 of 56 that rungs take.
    many = make_plan(trials=12, max_requests=200)
    shown: dict[str, Any] = {"url": "http://h", "api": "chat", "model": None, "has_key": False}
    assert "up to 16 at once" in "".join(plan_text(many, **shown, cost=True))
    assert "up to 16 at once" in "".join(plan_text(many, **shown, replay="a log"))
    assert "up to 32 at once" in "".join(plan_text(many, **shown))


def test_only_what_the_limits_leave_room_for_is_told() -> None:
    usual = told()
    assert "2 times a long one" in usual
    assert "up to 32 at once" in usual
    assert "users at once" in usual
    few = told(max_requests=12)
    assert "once a long one" in few
    assert "nothing to count its slots" in few
    assert "nothing to see what an iteration costs" in few
    assert "at once" not in few
    # 3 to begin with, one more alone and 7 of the group test: 8 more are the first rung.
    assert "up to 8 at once, to count" in told(max_requests=19, trials=1)
    assert "nothing to count" in told(max_requests=18, trials=1)
    # Requests enough, but no tokens for the answers of a rung.
    assert "nothing to count its slots" in told(max_tokens=600)
