"""From a log to a calibration, and what of a log cannot be fitted to."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from slotwise_sim import Continuous, Memory
from slotwise_sim.replay import Server
from slotwise_workflows.calibrate import timings
from slotwise_workflows.calibrate.file import CalibrationFile
from slotwise_workflows.calibrate.run import calibrate_run
from slotwise_workflows.calibrate.timings import timed_log, timings_of
from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic, write_parquet

Write = Callable[..., Path]
SERVER = Server(Continuous(), 64)
QUICK = {"per_kv_token_ms": 0.0}


def read(path: Path) -> Traffic:
    return read_traffic([str(path)], ReadOptions())


def test_a_log_is_fitted_and_says_how_well(measured_log: Write) -> None:
    found = calibrate_run(read(measured_log()), SERVER, given=QUICK)
    assert found.cost.base_ms == pytest.approx(20, rel=0.05)
    assert found.requests == 120
    assert found.measured_on is not None
    assert found.measured_on.startswith("2026-")
    assert found.files[0].name == "measured.csv"
    assert found.terms["per_kv_token_ms"].how == "given"
    assert found.hold_out is not None
    assert (found.hold_out.fitted, found.hold_out.judged) == (60, 60)
    assert abs(found.hold_out.errors.latency_mean) < 0.05
    assert found.preemptions == 0
    assert found.quality.startswith("fitted to the first 60 requests it is mean latency ")
    assert "120 requests of measured.csv, measured on 2026-" in found.source


def test_the_same_run_gives_the_same_calibration(measured_log: Write) -> None:
    traffic = read(measured_log())
    first, again = (calibrate_run(traffic, SERVER, given=QUICK) for _ in range(2))
    assert first == again


def test_requests_that_arrive_at_once_tell_how_long_the_server_was_busy(
    measured_log: Write,
) -> None:
    found = calibrate_run(read(measured_log(gap_s=0.001)), SERVER, given=QUICK)
    assert found.errors.busy is not None
    assert abs(found.errors.busy) < 0.02
    assert ", time busy " in found.quality


def test_arrivals_that_decide_how_long_a_run_was_are_not_counted_for_the_cost(
    measured_log: Write,
) -> None:
    found = calibrate_run(read(measured_log()), SERVER, given=QUICK)
    assert found.errors.busy is None
    assert "busy" not in found.quality


def test_preempted_requests_are_a_note(measured_log: Write) -> None:
    server = Server(Continuous(), 64, memory=Memory(3500))
    found = calibrate_run(read(measured_log(server=server)), server, given=QUICK)
    assert found.preemptions > 0
    told = f"intervals are too narrow: requests were preempted, {found.preemptions} times"
    assert any(told in note for note in found.notes)


def test_requests_without_timings_are_counted_and_told(measured_log: Write) -> None:
    found = calibrate_run(
        read(measured_log(without="ttft_s", rows_without=10)), SERVER, given=QUICK
    )
    assert found.requests == 110
    assert found.left_out == {"no_timings": 10}
    assert any("10 of 120 requests have no timings" in note for note in found.notes)


def test_prompts_that_nobody_logged_are_told(measured_log: Write) -> None:
    found = calibrate_run(read(measured_log(without="prompt_tokens")), SERVER, given=QUICK)
    assert found.terms["per_prefill_token_ms"].how == "not_identified"
    assert any("prompt lengths are not known" in note for note in found.notes)


def test_a_long_run_is_cut(measured_log: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timings, "MOST_REQUESTS", 50)
    found = timings_of(read(measured_log()))
    assert len(found.measured.workload) == 50
    assert found.left_out == {"beyond_the_most": 70}
    assert found.notes == ("fitted to the first 50 requests by arrival",)


@pytest.mark.parametrize("column", ["ttft_s", "latency_s"])
def test_a_log_without_timings_is_refused(measured_log: Write, column: str) -> None:
    with pytest.raises(InputError, match="no request has both a time to first token and") as caught:
        calibrate_run(read(measured_log(without=column)), SERVER)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_log_without_arrivals_is_refused(measured_log: Write) -> None:
    with pytest.raises(InputError, match="arrival times are not known"):
        calibrate_run(read(measured_log(without="timestamp")), SERVER)


def test_what_a_run_does_not_tell_is_refused_with_what_to_do(measured_log: Write) -> None:
    with pytest.raises(InputError, match="at least 20 requests") as caught:
        calibrate_run(read(measured_log(12)), SERVER)
    assert "or tell what you know with --fix TERM=MS" in str(caught.value)


def test_a_given_term_that_cannot_be_is_named(measured_log: Write) -> None:
    with pytest.raises(InputError, match="beside the given base_ms") as caught:
        calibrate_run(read(measured_log()), SERVER, given={"base_ms": 9e8})
    assert ". Correct or leave out --fix base_ms=9e+08. Measure" in str(caught.value)


def test_a_request_too_large_for_the_memory_is_named_by_its_line(measured_log: Write) -> None:
    server = Server(Continuous(), 64, memory=Memory(500))
    with pytest.raises(InputError, match=r"measured\.csv:\d+: a request can never run"):
        calibrate_run(read(measured_log()), server)


def test_half_a_run_may_tell_too_little(measured_log: Write) -> None:
    found = calibrate_run(read(measured_log(30)), SERVER, given={**QUICK, "per_seq_ms": 0.4})
    assert found.hold_out is None
    assert any("no hold-out" in note for note in found.notes)
    assert found.quality.endswith("no hold-out")


def test_the_server_is_told_as_it_was_simulated(measured_log: Write) -> None:
    server = Server(Continuous(max_batched_tokens=4096), 64, 1, Memory(90_000, 32))
    found = calibrate_run(read(measured_log()), server, given=QUICK)
    assert found.server.model_dump() == {
        "policy": "continuous",
        "release": None,
        "pad": None,
        "prefill": "mixed",
        "slots": 64,
        "replicas": 1,
        "max_batched_tokens": 4096,
        "kv_tokens": 90_000,
        "block_tokens": 32,
    }
    assert found.kv_tokens == 90_000


def test_directories_of_runs(measured_log: Write, tmp_path: Path) -> None:
    log = measured_log()
    assert timed_log(str(log)) == str(log)
    with pytest.raises(InputError, match="no measured run here"):
        timed_log(str(tmp_path))
    write_parquet(read(log), tmp_path / "traffic.parquet")
    assert timed_log(str(tmp_path)) == str(tmp_path / "traffic.parquet")
    (tmp_path / "probe.jsonl").touch()
    assert timed_log(str(tmp_path)) == str(tmp_path / "probe.jsonl")


def test_a_run_directory_is_fitted_like_its_log(measured_log: Write, tmp_path: Path) -> None:
    log = measured_log()
    write_parquet(read(log), tmp_path / "traffic.parquet")
    again = calibrate_run(read(tmp_path / "traffic.parquet"), SERVER, given=QUICK)
    found = calibrate_run(read(log), SERVER, given=QUICK)
    assert isinstance(again, CalibrationFile)
    assert again.cost == found.cost
