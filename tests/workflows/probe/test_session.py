"""All stages in one session: what is spent, kept and concluded."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slotwise_sim import Workload
from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.given import Given
from slotwise_workflows.probe import (
    ProbeResult,
    Replayed,
    Wanted,
    complete,
    figures_of,
    look_and_measure,
    make_plan,
    read_probe,
    session,
    with_probe,
    write_probe,
)
from slotwise_workflows.probe.stages.batching import find_out
from slotwise_workflows.traffic.model import made_traffic

Serve = Callable[..., Any]
STEP_MS = 4.0


def log(n: int = 40) -> Workload:
    rng = np.random.default_rng(7)
    arrival_s = np.cumsum(rng.exponential(0.05, n))
    return Workload(arrival_s, rng.integers(4, 30, n), rng.integers(5, 40, n))


@pytest.fixture(scope="module")
def looked(serve_once: Serve) -> tuple[ProbeResult, Any]:
    """One look with every stage, at a server that lets requests join."""
    server = serve_once(slots=4, step_ms=STEP_MS, per_seq_ms=0.5)
    traffic = made_traffic(log(), format_id="made")
    plan = make_plan(trials=1, max_requests=200, max_tokens=6000, long_s=0.6, seconds=120)
    wanted = Wanted(like=traffic, replay=Replayed(traffic, first=20))
    return look_and_measure(server.url, plan, wanted, seed=3), server


def test_no_more_is_sent_than_was_agreed_to(looked: tuple[ProbeResult, Any]) -> None:
    found, server = looked
    asked = [int(str(body["max_tokens"])) for _, _, body in server.requests]
    assert found.requests_sent == len(asked) == len(found.samples)
    assert found.requests_sent <= found.plan.requests == 200
    assert sum(asked) <= found.plan.output_tokens == 6000
    assert sorted(asked) == sorted(sample.asked_tokens for sample in found.samples)


def test_a_replay_sends_the_log_and_holds_the_simulation_against_it(
    looked: tuple[ProbeResult, Any],
) -> None:
    found, _ = looked
    assert found.replay is not None
    assert (found.replay.requests, found.replay.failed) == (20, 0)
    sent = [sample for sample in found.samples if sample.stage == "replay"]
    lengths = [sample.asked_tokens for sample in sent if sample.name.startswith("replay")]
    assert sorted(lengths) == sorted(log().output_tokens[:20].tolist())
    told = found.cost is not None and found.cost.calibration is not None
    assert (found.replay.simulated is not None) == told


def test_the_cost_is_measured_where_the_batching_is_known(looked: tuple[ProbeResult, Any]) -> None:
    found, _ = looked
    codes = {remark.code for remark in found.remarks}
    if found.batching == "undetermined":  # a busy machine
        assert found.cost is None
        assert "cost_needs_batching" in codes
    else:
        assert found.cost is not None
        assert (found.cost.calibration is None) == (found.cost.cost_unknown is not None)


def test_what_was_written_is_read_again(looked: tuple[ProbeResult, Any], tmp_path: Path) -> None:
    found, _ = looked
    calibrated = found.cost is not None and found.cost.calibration is not None
    names = [path.name for path in write_probe(found, tmp_path)]
    expected = ["probe.jsonl", *(["calibration.json"] if calibrated else []), "probe.json"]
    assert names == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(expected)
    assert read_probe(tmp_path) == read_probe(tmp_path / "probe.json") == found


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "no such file"),
        ("{", "is not JSON"),
        ("[]", "is not a probe"),
        ('{"schema": "slotwise/result/v1"}', "is not a probe"),
        ('{"schema": "slotwise/probe/v1", "url": 1}', "is wrong"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_probe_is_told(tmp_path: Path, content: str | None, what: str) -> None:
    if content is not None:
        (tmp_path / "probe.json").write_text(content)
    with pytest.raises(InputError) as error:
        read_probe(tmp_path)
    assert what in error.value.what
    assert error.value.where == str(tmp_path / "probe.json")


def test_what_is_told_wins_over_what_was_found(looked: tuple[ProbeResult, Any]) -> None:
    found, _ = looked
    waits = found.model_copy(
        update={
            "batching": "dynamic",
            "confidence": "high",
            "gather_s": (0.02, 0.04),
            "release": "own",
        }
    )
    assert with_probe(Given(), waits).max_delay_ms == pytest.approx(30.0)
    assert with_probe(Given(), waits).release == "own"
    told = Given(max_delay_ms=5.0, ms_per_token=7.0, release="batch")
    both = with_probe(told, waits)
    assert (both.max_delay_ms, both.ms_per_token, both.release) == (5.0, 7.0, "batch")
    assert both.cost is None
    assert both.probe == figures_of(waits)
    open_end = waits.model_copy(update={"gather_s": (0.02, None)})
    assert with_probe(Given(), open_end).max_delay_ms == pytest.approx(20.0)
    static = waits.model_copy(update={"batching": "static"})
    assert with_probe(Given(), static).max_delay_ms is None


def test_without_a_budget_for_it_the_cost_is_left_out(serve: Serve) -> None:
    server = serve(slots=4, step_ms=STEP_MS)
    plan = make_plan(trials=1, max_requests=12, max_tokens=1500, long_s=0.5, seconds=60)
    found = look_and_measure(server.url, plan, Wanted())
    assert found.requests_sent <= 12
    assert found.cost is None
    codes = {remark.code for remark in found.remarks}
    assert codes & {"cost_needs_batching", "cost_needs_budget"}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"first": 30, "length_scale": 1e6}, UsageError),
        ({"rate_scale": -1.0}, UsageError),
        ({"rate_scale": float("nan")}, UsageError),
        ({"busiest_s": 0.0}, UsageError),
        ({"first": 3, "busiest_s": 1.0}, UsageError),
    ],
)
def test_a_replay_that_cannot_be_is_told_before_anything_is_sent(
    serve: Serve, asked: dict[str, Any], error: type[Exception]
) -> None:
    server = serve(slots=4, step_ms=STEP_MS)
    replay = Replayed(made_traffic(log(), format_id="made"), **asked)
    with pytest.raises(error):
        look_and_measure(server.url, make_plan(trials=1), Wanted(cost=False, replay=replay))
    assert server.requests == []


def test_a_replay_that_no_longer_fits_leaves_what_was_found(serve: Serve) -> None:
    server = serve(slots=4, step_ms=STEP_MS)
    traffic = made_traffic(log(), format_id="made")
    plan = make_plan(trials=1, max_requests=24, max_tokens=1500, long_s=0.5, seconds=60)
    wanted = Wanted(cost=False, replay=Replayed(traffic, first=20))
    found = look_and_measure(server.url, plan, wanted)
    assert found.replay is None
    assert "replay_failed" in {remark.code for remark in found.remarks}
    assert found.requests_sent == len(server.requests) <= 24


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """How the server batches is known, whatever a busy machine makes of the tests."""

    async def known_batching(*words: Any) -> ProbeResult:
        found = await find_out(*words)
        four = {"batching": "continuous", "confidence": "high", "slots": 4, "slots_at_least": 4}
        return found.model_copy(update=four)

    monkeypatch.setattr(session, "find_out", known_batching)


SMALL = make_plan(trials=1, max_requests=160, max_tokens=5000, long_s=0.4, seconds=120)


@pytest.mark.usefixtures("known")
def test_the_cost_is_found_over_a_socket_and_predicts(serve: Serve) -> None:
    server = serve(slots=4, step_ms=STEP_MS, per_seq_ms=0.5)
    traffic = made_traffic(log(), format_id="made")
    wanted = Wanted(like=traffic, replay=Replayed(traffic, first=20))
    found = look_and_measure(server.url, SMALL, wanted, seed=4)
    assert found.cost is not None
    assert found.cost.calibration is not None, found.cost.cost_unknown
    assert found.replay is not None
    assert found.replay.simulated is not None
    figures = figures_of(found)
    assert figures.prediction is not None
    assert figures.prediction.simulated.keys() == figures.prediction.measured.keys()
    assert figures.cost_errors.keys() == {"latency_mean", "latency_p95", "ttft_mean"}


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("stage", ["cost", "replay"])
def test_ctrl_c_in_a_later_stage_keeps_what_was_measured(serve: Serve, stage: str) -> None:
    server = serve(slots=4, step_ms=STEP_MS)
    traffic = made_traffic(log(), format_id="made")
    wanted = Wanted(cost=stage == "cost", replay=Replayed(traffic, first=20))
    first_stage = len(look_and_measure(server.url, SMALL, Wanted(cost=False), seed=4).samples)

    def interrupt(done: int, _most: int) -> None:
        if done == first_stage + 6:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = look_and_measure(server.url, SMALL, wanted, seed=4, on_progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (found.interrupted, found.stopped_by) == (True, "user")
    assert found.batching == "continuous"
    assert (found.cost, found.replay) == (None, None)
    assert {"baseline", stage} <= {sample.stage for sample in found.samples}
    assert found.requests_sent >= len(found.samples)


@pytest.mark.usefixtures("known")
def test_ctrl_c_while_the_cost_is_fitted_keeps_what_was_measured(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_words: Any, **_named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(complete, "fit_cost", interrupted)
    server = serve(slots=4, step_ms=STEP_MS)
    found = look_and_measure(server.url, SMALL, Wanted(), seed=4)
    assert (found.cost, found.stopped_by) == (None, "user")
    assert "cost" in {sample.stage for sample in found.samples}
    assert found.requests_sent == len(server.requests)


@pytest.mark.usefixtures("known")
def test_sizing_the_prompts_of_a_replay_counts(serve: Serve) -> None:
    """Without a cost stage two requests are sent to learn how long a word is."""
    server = serve(slots=4, step_ms=STEP_MS)
    traffic = made_traffic(log(), format_id="made")
    plan = make_plan(trials=1, max_requests=60, max_tokens=5000, long_s=0.4, seconds=60)
    found = look_and_measure(server.url, plan, Wanted(cost=False, replay=Replayed(traffic)))
    assert found.replay is not None
    assert found.requests_sent == len(server.requests) <= 60
    assert sum(sample.asked_tokens for sample in found.samples) <= 5000


@pytest.mark.ray
@pytest.mark.usefixtures("known")
def test_several_processes_send_a_replay(serve: Serve) -> None:
    server = serve(slots=4, step_ms=STEP_MS)
    traffic = made_traffic(log(), format_id="made")
    wanted = Wanted(cost=False, replay=Replayed(traffic, first=20, workers=2))
    found = look_and_measure(server.url, SMALL, wanted)
    assert found.replay is not None
    assert (found.replay.answered, found.replay.failed) == (20, 0)
    assert found.replay.prompt_tokens_off is not None
    names = {sample.name.partition("/")[0] for sample in found.samples if sample.stage == "replay"}
    assert {"worker-1", "worker-2"} <= names
    assert found.requests_sent == len(server.requests) == len(found.samples)


@pytest.mark.ray
@pytest.mark.usefixtures("known")
def test_ctrl_c_while_several_processes_send_keeps_what_was_answered(serve: Serve) -> None:
    server = serve(slots=4, step_ms=STEP_MS)
    slow = Workload(0.3 * np.arange(20, dtype=np.float64), np.full(20, 8), np.full(20, 20))
    replay = Replayed(made_traffic(slow, format_id="made"), first=20, workers=2)
    first_stage = len(look_and_measure(server.url, SMALL, Wanted(cost=False), seed=4).samples)
    already = len(server.requests)

    def interrupt() -> None:
        until = time.monotonic() + 120
        while len(server.requests) < already + first_stage + 8 and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pressing = threading.Thread(target=interrupt)
    try:
        pressing.start()
        found = look_and_measure(server.url, SMALL, Wanted(cost=False, replay=replay), seed=4)
    finally:
        signal.signal(signal.SIGINT, before)
        pressing.join()
    assert (found.stopped_by, found.replay) == ("user", None)
    assert found.batching == "continuous"
    kept = [sample for sample in found.samples if sample.name.startswith("worker-")]
    assert kept
    assert all(sample.answered and sample.scheduled_ns is not None for sample in kept)
    assert len(found.samples) <= found.requests_sent <= len(server.requests) - already


def test_what_is_doubtful_is_shown_and_does_not_count(looked: tuple[ProbeResult, Any]) -> None:
    doubtful = looked[0].model_copy(
        update={"batching": "dynamic", "confidence": "low", "gather_s": (0.02, 0.04)}
    )
    assert with_probe(Given(), doubtful) == Given(probe=figures_of(doubtful))


def test_a_calibration_of_ones_own_stays(looked: tuple[ProbeResult, Any], tmp_path: Path) -> None:
    found = looked[0].model_copy(update={"cost": None})
    (tmp_path / "calibration.json").write_text("{}")
    write_probe(found, tmp_path)
    assert (tmp_path / "calibration.json").read_text() == "{}"
    (tmp_path / "probe.json").write_text(json.dumps({"cost": {"calibration": {}}}))
    write_probe(found, tmp_path)
    assert not (tmp_path / "calibration.json").exists()
