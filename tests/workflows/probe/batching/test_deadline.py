"""The time of a plan: nothing is sent that it has no room for, and nothing outlasts it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
import pytest

from slotwise_workflows.probe.batching.look import Found, look
from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.plan import make_plan
from slotwise_workflows.probe.stages import batching
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wire.preflight import Preflight
from virtual_probe import Endpoint, Front
from virtual_time import in_virtual_time

SERVERS = [
    Endpoint({"batching": "continuous", "slots": 4, "step_ms": 20}),
    Endpoint({"batching": "static", "slots": 4, "step_ms": 20}),
    Endpoint({"batching": "serial", "slots": 1, "step_ms": 20, "prefill_ms": 1500}),
]


async def looked(endpoint: Endpoint, seconds: float) -> tuple[float, bool, Front, Found]:
    """Seconds taken and whether the plan was carried out."""
    front = Front(endpoint)
    found = Found(await front.ask(stage="baseline", name="baseline", trial=0, tokens=32))
    begin = asyncio.get_running_loop().time()
    front.deadline = begin + seconds
    plan = make_plan(trials=2, long_s=1.0, seconds=max(seconds, 1.0))
    done = await look(front.ask, plan, found, deadline=front.deadline)
    front.stop()
    return asyncio.get_running_loop().time() - begin, done, front, found


@pytest.mark.parametrize("endpoint", SERVERS)
@pytest.mark.parametrize("seconds", [0.2, 1.0, 2.6, 4.0, 6.0, 9.0, 14.0])
def test_a_deadline_is_never_exceeded(endpoint: Endpoint, seconds: float) -> None:
    took, done, _, _ = in_virtual_time(lambda: looked(endpoint, seconds))
    assert took <= seconds + 1e-6
    assert took < seconds or not done


def test_nothing_is_sent_after_a_trial_that_ended_late() -> None:
    """Its last answer came as the time was up: it counts, and is the last."""

    async def probed() -> tuple[list[int], bool, Found]:
        front = Front(SERVERS[0])
        found = Found(await front.ask(stage="baseline", name="baseline", trial=0, tokens=32))
        deadline = asyncio.get_running_loop().time() + 2.6
        counted: list[int] = []

        async def late_answers(**asked: object) -> object:
            counted.append(int(asyncio.get_running_loop().time() >= deadline))
            answer = await front.ask(**asked)  # type: ignore[arg-type]
            if asked["name"] == "long":
                left_s = deadline - asyncio.get_running_loop().time()
                await asyncio.sleep(left_s)
            return answer

        plan = make_plan(trials=2, long_s=1.0, seconds=2.6)
        done = await look(late_answers, plan, found, deadline=deadline)  # type: ignore[arg-type]
        front.stop()
        return counted, done, found

    counted, done, found = in_virtual_time(probed)
    assert [trial.stage for trial in found.trials] == ["group"]
    assert sum(counted) == 0
    assert not done


def test_a_pause_longer_than_the_time_left_is_not_begun() -> None:
    """With 1.5 s to the first token a pause takes 3 s; 0.2 s are left."""
    took, done, front, found = in_virtual_time(lambda: looked(SERVERS[2], 0.2))
    assert (took, done, front.sent) == (0.0, False, 1)
    assert found.requests == 3  # the first, and what it could have taken


def test_its_requests_end_with_its_own_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost stage may follow: then the connection's own deadline is that of both."""

    @dataclass(frozen=True)
    class Known:
        deadline: float

    seen: list[float] = []

    async def ask(connection: Known, **_asked: object) -> Sample:
        seen.append(connection.deadline)
        raise asyncio.CancelledError

    async def main() -> None:
        first = await Front(SERVERS[0]).ask(stage="baseline", name="b", trial=0, tokens=32)
        ready = Preflight(Known(420.0), None, first, 1)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        with pytest.raises(asyncio.CancelledError):
            await batching.find_out(ready, make_plan(), Tally(), rng, 300.0)

    monkeypatch.setattr(batching, "ask", ask)
    in_virtual_time(main)
    assert seen == [300.0]
