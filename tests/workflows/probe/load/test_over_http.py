"""The same stages over a real socket, in real time: what is sent, and that none of it is kept."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from slotwise_sim import Workload
from slotwise_workflows.probe.budget import Budget
from slotwise_workflows.probe.files import requests_jsonl
from slotwise_workflows.probe.load.cost import CostRun, run_cost
from slotwise_workflows.probe.load.cost_fit import fit_cost, server_of
from slotwise_workflows.probe.load.cost_plan import plan_cost
from slotwise_workflows.probe.load.generator import Client, sender
from slotwise_workflows.probe.load.model import Sent
from slotwise_workflows.probe.load.replay import replay_figures, run_replay
from slotwise_workflows.probe.load.replay_plan import plan_replay
from slotwise_workflows.probe.model import Baseline, Stage
from slotwise_workflows.probe.prompts import Scale
from slotwise_workflows.probe.wire.client import Connection, new_client
from slotwise_workflows.probe.wire.dialect import dialect_of
from slotwise_workflows.probe.wire.products import UNKNOWN
from slotwise_workflows.probe.wire.target import targets
from slotwise_workflows.traffic.model import made_traffic

KEY = "sk-very-secret-quux"


def over_http(url: str, stage: Stage, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with new_client(KEY) as http:
            connection = Connection(
                client=http,
                target=targets(url, "chat")[0],
                model="test-model",
                dialect=dialect_of(UNKNOWN),
                clock=time.perf_counter_ns,
                deadline=asyncio.get_running_loop().time() + 120,
            )
            return await work(Client(sender(connection, stage)))

    return asyncio.run(connected())


def test_a_cost_stage_and_a_replay(serve: Any) -> None:
    server = serve(step_ms=4.0, per_seq_ms=0.5, slots=4, faults={"key": KEY})
    baseline = Baseline(
        ttft_s=0.006, latency_s=0.2, output_tokens=32, seconds_per_token=0.005, streams=True
    )
    plan = plan_cost(
        batching="continuous",
        slots=4,
        baseline=baseline,
        rng=np.random.default_rng(1),
        budget=Budget(requests=80, output_tokens=900, seconds=100),
    )
    run: CostRun = over_http(
        server.url, "cost", lambda client: run_cost(client, plan, np.random.default_rng(2))
    )
    assert (run.unsent, len(run.samples)) == (0, plan.requests)
    assert all(sample.stage == "cost" and sample.answered for sample in run.samples)
    sent = [body["max_tokens"] for _, _, body in server.requests]
    assert sum(sent) == plan.output_tokens
    assert server.most <= 4
    prompts = [body["messages"][0]["content"] for _, _, body in server.requests]
    repeated = {prompt for prompt in prompts if prompts.count(prompt) > 1}
    assert [prompts.count(prompt) for prompt in repeated] == [4]  # the equal ones
    assert len({prompt[:8] for prompt in prompts}) == len(set(prompts))
    found = fit_cost(run, server_of("continuous", 4))
    assert (found.calibration is None) != (found.cost_unknown is None)

    log = made_traffic(
        Workload(0.02 * np.arange(10, dtype=np.float64), np.arange(3, 13), np.full(10, 50)),
        format_id="made",
    )
    again = plan_replay(log, rng=np.random.default_rng(1))
    replayed: Sent = over_http(
        server.url,
        "replay",
        lambda client: run_replay(client, again, Scale(), np.random.default_rng(3)),
    )
    assert [s.asked_tokens for s in replayed.samples] == list(range(3, 13))
    assert {s.stage for s in replayed.samples} == {"replay"}
    due_ns = [s.scheduled_ns for s in replayed.samples if s.scheduled_ns is not None]
    assert np.diff(due_ns).tolist() == [20_000_000] * 9
    assert all(s.sent_ns >= due for s, due in zip(replayed.samples, due_ns, strict=True))
    figures = replay_figures(replayed, again, calibration=None, server=None)

    kept = requests_jsonl([*run.samples, *replayed.samples]).decode() + repr((run, replayed))
    kept += found.model_dump_json() + figures.model_dump_json()
    for _, headers, body in server.requests:
        assert headers["authorization"] == f"Bearer {KEY}"
        assert body["messages"][0]["content"][:20] not in kept
    for secret in (KEY, "secret", "Bearer", "Count upwards"):
        assert secret not in kept
    assert all(json.loads(line)["name"] for line in requests_jsonl(run.samples).splitlines())
