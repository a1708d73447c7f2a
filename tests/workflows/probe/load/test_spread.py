from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import UsageError
from slotwise_workflows.probe.load.client_report import client_report
from slotwise_workflows.probe.load.model import Planned, Schedule, Sent
from slotwise_workflows.probe.load.spread import (
    _heard,
    merged,
    split,
)
from slotwise_workflows.probe.load.worker import Job, send_share
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wire.dialect import dialect_of
from slotwise_workflows.probe.wire.products import UNKNOWN
from slotwise_workflows.probe.wire.target import targets

KEY = "sk-very-secret-quux"

PROGRAM = """
import asyncio, json, signal, sys, time
import numpy as np
from slotwise_workflows.errors import SlotwiseError
from slotwise_workflows.probe.load.model import Planned, Schedule
from slotwise_workflows.probe.load.spread import spread_load
from slotwise_workflows.probe.wire.client import Connection, new_client
from slotwise_workflows.probe.wire.dialect import dialect_of
from slotwise_workflows.probe.wire.products import UNKNOWN
from slotwise_workflows.probe.wire.target import targets

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits none
given = json.load(sys.stdin)
if __name__ == "__main__":
    target = targets(given["url"], "chat")[0]
    dialect, clock = dialect_of(UNKNOWN), time.perf_counter_ns
    connection = Connection(new_client(None), target, "m", dialect, clock, 0.0)
    requests = [Planned(f"r{n}", 2 + n, f"{n} words") for n in range(given["requests"])]
    at_s = given["every_s"] * np.arange(len(requests))
    at_s[len(at_s) - given.get("late", 0):] += 3600
    load = Schedule(requests, at_s)
    found = {}

    def on_seen(requests, samples):
        found["seen"] = requests, [sample.name for sample in samples]

    try:
        sent = spread_load(
            load, connection, stage="replay", workers=2, seconds=60.0,
            key_variable=given["key_variable"], on_seen=on_seen,
        )
        found |= {
            "samples": [sample.model_dump() for sample in sent.samples],
            "client": sent.client.model_dump(),
            "unsent": sent.unsent,
            "uncertainty_s": sent.start_uncertainty_s,
        }
    except SlotwiseError as error:
        found["error"] = str(error)
    except KeyboardInterrupt:
        found["interrupted"] = True
    asyncio.run(connection.client.aclose())
    print(json.dumps(found))
"""


def run_program(
    given: dict[str, Any], *, ctrl_c_when: Callable[[], bool] | None = None, **environment: str
) -> dict[str, Any]:
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SLOTWISE_API_KEY")
    plain = {name: value for name, value in os.environ.items() if name.upper() not in names}
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**plain, **environment},
        start_new_session=True,
    ) as running:
        assert running.stdin is not None
        running.stdin.write(json.dumps(given))
        running.stdin.close()
        running.stdin = None
        if ctrl_c_when is not None:
            last = time.monotonic() + 120
            while not ctrl_c_when():
                assert time.monotonic() < last, "it did not come to that"
                time.sleep(0.02)
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does: every process gets it
        out, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (0, "")
    assert KEY not in out
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.ray
def test_two_processes_send_one_load(serve: Any) -> None:
    """Turn by turn: what reaches the server comes in the order of the one schedule."""
    server = serve(step_ms=2.0, slots=16, faults={"key": KEY})
    given = {"url": server.url, "requests": 12, "every_s": 0.25, "key_variable": "QUUX_KEY"}
    found = run_program(given, QUUX_KEY=KEY)
    assert [body["max_tokens"] for _, _, body in server.requests] == list(range(2, 14))
    by_schedule = found["samples"]
    assert [s["name"] for s in by_schedule] == [f"worker-{1 + n % 2}/r{n}" for n in range(12)]
    assert all(s["fault"] is None and s["stage"] == "replay" for s in by_schedule)
    steps = np.diff([s["scheduled_ns"] for s in by_schedule])
    assert np.abs(steps - 250_000_000).max() <= 1
    for sample in by_schedule:
        assert sample["scheduled_ns"] <= sample["sent_ns"] < sample["end_ns"]
    assert found["unsent"] == 0
    assert found["client"]["requests"] == 12
    assert found["uncertainty_s"] >= 0


@pytest.mark.ray
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_ctrl_c_keeps_what_was_answered(serve: Any) -> None:
    """The last requests are due in an hour; what lies before is handed over at once."""
    server = serve(step_ms=2.0, slots=16)
    given = {"url": server.url, "requests": 12, "every_s": 0.1, "key_variable": None}
    given["late"] = 4
    found = run_program(given, ctrl_c_when=lambda: len(server.requests) >= 8)
    assert found["interrupted"]
    requests, names = found["seen"]
    assert requests == len(server.requests) == 8
    by_turns = {f"worker-{1 + n % 2}/r{n}" for n in range(8)}
    assert set(names) <= by_turns
    assert len(names) >= 6  # but for those that were just under way


@pytest.mark.ray
def test_a_worker_without_the_key_says_so(serve: Any) -> None:
    server = serve(step_ms=2.0)
    given = {"url": server.url, "requests": 4, "every_s": 0.0, "key_variable": "QUUX_KEY"}
    found = run_program(given)
    assert "QUUX_KEY is not set where a worker runs" in found["error"]
    assert server.requests == []


def test_a_share_is_sent_by_a_process_of_its_own_clock(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Ray: what a worker does, in this process."""
    server = serve(step_ms=2.0, faults={"key": KEY})
    monkeypatch.setenv("QUUX_KEY", KEY)
    settings = {
        "target": targets(server.url, "chat")[0],
        "model": "m",
        "dialect": dialect_of(UNKNOWN),
    }
    load = Schedule([Planned("r", 3, "words")] * 4, np.array([0.0, 0.01, 0.02, 0.03]))
    job = Job(load, settings, "replay", "QUUX_KEY", 10, None, 30.0)
    assert KEY not in repr(job)
    assert "words" not in repr(job)
    start_ns, tally = time.perf_counter_ns() + 50_000_000, Tally()
    sent = asyncio.run(send_share(job, start_ns, tally))
    assert (tally.requests, len(tally.samples)) == (4, 4)
    assert [s.scheduled_ns for s in sent.samples] == [start_ns + n * 10_000_000 for n in range(4)]
    assert all(s.answered for s in sent.samples)
    monkeypatch.delenv("QUUX_KEY")
    with pytest.raises(UsageError, match="QUUX_KEY is not set"):
        asyncio.run(send_share(job, start_ns, tally))


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_a_schedule_is_dealt_out_in_turn(at: list[float], workers: int) -> None:
    requests = [Planned(f"r{n}", 1, "p") for n in range(len(at))]
    shares = split(Schedule(requests, np.array(at)), workers)
    assert len(shares) == min(workers, len(at))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    dealt = []
    for share in shares:
        assert (np.diff(share.at_s) >= 0).all()
        dealt += [(r.name, float(s)) for r, s in zip(share.requests, share.at_s, strict=True)]
    assert sorted(dealt) == sorted((r.name, s) for r, s in zip(requests, at, strict=True))


def test_what_several_saw_is_told_as_one() -> None:
    def part(lags_s: list[float], most: int, unsent: int) -> Sent:
        lags_ns = [round(lag * 1e9) for lag in lags_s]
        report = client_report(
            delays_ns=[0],
            lags_ns=lags_ns,
            wall_ns=1,
            busy_ns=0,
            most_in_flight=most,
            held_back=0,
        )
        return Sent([], report, unsent)

    whole = merged([part([0.0], 3, 0), part([0.5], 4, 2)], lost=5, uncertainty_s=0.25)
    assert (whole.unsent, whole.start_uncertainty_s) == (7, 0.25)
    assert whole.client.most_in_flight == 7
    assert whole.client.bottleneck == ["loop_lag", "worker_lost"]
    assert merged([part([0.0], 3, 0)]).client.bottleneck == []


def test_all_workers_have_until_the_same_instant() -> None:
    """The first two are lost; the time for them is spent once, and the third one is heard."""
    own = Sent([], client_report(
        delays_ns=[], lags_ns=[], wall_ns=1, busy_ns=0, most_in_flight=0, held_back=0
    ), 0)  # fmt: skip
    waited: list[float] = []

    class Lost(Exception):  # noqa: N818 - as Ray names its own
        pass

    class Ray:
        class exceptions:  # noqa: N801 - a module of Ray's
            RayActorError = Lost

        @staticmethod
        def wait(running: list[str], *, num_returns: int, timeout: float) -> Any:
            waited.append(timeout)
            assert num_returns == len(running)
            return ["died", "sent"], ["silent"]

        @staticmethod
        def get(reference: str) -> tuple[Sent, int]:
            assert reference != "silent", "it would be waited for without end"
            if reference == "died":
                raise Lost
            return own, 7

    assert _heard(Ray, ["silent", "died", "sent"], 7, 30.0) == [None, None, own]
    assert waited == [30.0]
