"""From a log to a calibration, and what of a log cannot be fitted to."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from slotwise_sim import Continuous, Dynamic, Memory
from slotwise_sim.replay import Server
from slotwise_workflows.calibrate import timings
from slotwise_workflows.calibrate.file import RELIABLE, CalibrationFile
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
    assert found.quality.startswith(
        "on the 60 requests that were held out of the fit: mean latency "
    )
    assert not any("relied" in note for note in found.notes)
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


def test_prompts_that_cannot_be_read_are_told_as_such(measured_log: Write) -> None:
    log = measured_log()
    rows = [line.split(",") for line in log.read_text().splitlines()]
    log.write_text("\n".join(",".join([*r[:3], r[3] if r is rows[0] else "x", r[4]]) for r in rows))
    notes = timings_of(read(log)).notes
    assert notes == (
        "measured.csv:2: its prompt tokens cannot be read, nor in 119 more",
        "prompt lengths are told, but cannot be read: what prefill costs is in the other terms",
    )


def test_requests_without_a_prompt_beside_others_are_told(measured_log: Write) -> None:
    found = timings_of(read(measured_log(without="prompt_tokens", rows_without=7)))
    assert found.left_out == {"no_prompt": 7}
    assert any("7 of 120 requests have no prompt length" in note for note in found.notes)


def test_what_reading_left_out_or_assumed_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{i},0.5,2,9,30" for i in range(30)] + ["40,0.5,2,9,abc"]
    head = "timestamp,ttft_s,latency_s,prompt_tokens,completion_tokens"
    log.write_text("\n".join([head, *rows]) + "\n")
    assert timings_of(read(log)).notes == (
        "1 of 31 rows of the log are left out: unparsable 1",
        "flags of the log: time_unit_assumed:s",
        "log.csv:32: its output tokens are no number",
    )


def test_first_tokens_at_or_after_the_end_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    head = "timestamp,ttft_s,latency_s,prompt_tokens,completion_tokens"
    log.write_text("\n".join([head, *(f"{i},3,2,9,30" for i in range(30))]) + "\n")
    with pytest.raises(
        InputError, match="of 30, 30 have a latency and 0 a time to first"
    ) as caught:
        timings_of(read(log))
    assert "first_token=COLUMN and end=COLUMN" in str(caught.value)


@pytest.mark.parametrize(("slots", "replicas"), [(4, 1), (2, 2)])
def test_more_at_once_than_slots_is_refused(measured_log: Write, slots: int, replicas: int) -> None:
    server = Server(Continuous(), slots, replicas)
    with pytest.raises(InputError, match="contradicts what is told of the server") as caught:
        calibrate_run(read(measured_log()), server, given=QUICK)
    assert f"{replicas} x {slots} slots are told" in str(caught.value)
    assert "Correct --slots or --replicas" in str(caught.value)


def test_a_fit_that_is_worthless_says_so(measured_log: Write) -> None:
    """Sixteen slots made requests wait; 400 would not have."""
    log = measured_log(gap_s=0.03, server=Server(Continuous(), 16))
    found = calibrate_run(read(log), Server(Continuous(), 400), given=QUICK)
    assert found.errors.ttft_mean < -RELIABLE
    assert found.quality.startswith("not to be relied on: mean latency -")
    assert " off on the requests it was fitted to; on the " in found.quality
    assert any(n.startswith("not to be relied on") and "--kv-tokens" in n for n in found.notes)


def test_times_in_another_unit_are_refused(measured_log: Write) -> None:
    log = measured_log()
    head, *rows = log.read_text().splitlines()
    first = float(rows[0].split(",")[0])

    def slower(row: str) -> str:
        start, *spans = (float(cell) for cell in row.split(",")[:3])
        cells = [first + 1e4 * (start - first), *(1e4 * span for span in spans)]
        return ",".join([*(f"{cell:.3f}" for cell in cells), *row.split(",")[3:]])

    log.write_text("\n".join([head, *map(slower, rows)]) + "\n")
    with pytest.raises(InputError, match="its times look like another unit") as caught:
        calibrate_run(read(log), SERVER, given=QUICK)
    assert "--time-unit" in str(caught.value)


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
    assert str(caught.value).endswith("Give a longer run")


def test_one_batch_size_is_refused_with_what_to_measure(measured_log: Write) -> None:
    with pytest.raises(InputError, match="all the same batch size") as caught:
        calibrate_run(read(measured_log(gap_s=1e4)), SERVER)
    assert "(1 sequence decoded in 90 % of the time)" in str(caught.value)
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
        "max_delay_ms": None,
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


def test_batches_that_start_short_are_told_as_dynamic(measured_log: Write) -> None:
    server = Server(Dynamic(50.0, release="own"), 64)
    found = calibrate_run(read(measured_log(server=server, gap_s=1.5)), server, given=QUICK)
    told = found.server
    assert (told.policy, told.max_delay_ms, told.release) == ("dynamic", 50.0, "own")


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
