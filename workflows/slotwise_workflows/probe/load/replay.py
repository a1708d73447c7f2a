"""Sends a log's own traffic again, and holds the simulator against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from slotwise_sim.metrics import percentile
from slotwise_sim.workload import Floats, Workload
from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.findings import ReplayErrors, ReplayFigures, ReplayTimes
from slotwise_workflows.probe.load.generator import Client, open_loop
from slotwise_workflows.probe.load.model import Planned, Sent
from slotwise_workflows.probe.load.replay_plan import ReplayPlan
from slotwise_workflows.probe.model import Sample
from slotwise_workflows.probe.prompts import Scale, prompt_of
from slotwise_workflows.sample_size import P95_REQUESTS

if TYPE_CHECKING:
    from slotwise_sim.replay import Server
    from slotwise_workflows.calibrate.file import CalibrationFile

MOST_FAILED = 20
"""Failures after which no more of a replay is sent."""


def requests_of(plan: ReplayPlan, scale: Scale, rng: np.random.Generator) -> list[Planned]:
    """The requests of a plan with generated prompts of their lengths.

    Args:
        plan: What is sent.
        scale: How many tokens a word is on the endpoint.
        rng: Of the prompts.
    """
    lengths = zip(
        plan.workload.output_tokens.tolist(), plan.workload.prompt_tokens.tolist(), strict=True
    )
    return [
        Planned(f"replay-{number}", output, prompt_of(scale.words(prompt), rng))
        for number, (output, prompt) in enumerate(lengths, start=1)
    ]


async def run_replay(
    client: Client, plan: ReplayPlan, scale: Scale, rng: np.random.Generator
) -> Sent:
    """Sends a plan by its own instants; it gives up after twenty failures.

    Args:
        client: How to send; its `send` stamps samples with the stage ``replay``.
        plan: What is sent.
        scale: How many tokens a word is on the endpoint.
        rng: Of the prompts.
    """
    requests = requests_of(plan, scale, rng)  # made before the start: it takes time
    stop_ns = client.clock() + round(plan.seconds * 1e9)
    client = replace(client, give_up_after=MOST_FAILED, stop_ns=stop_ns)
    return await open_loop(client, requests, plan.workload.arrival_s)


def replay_figures(
    sent: Sent,
    plan: ReplayPlan,
    *,
    calibration: CalibrationFile | None,
    server: Server | None,
) -> ReplayFigures:
    """Measured latencies against those of a simulation of the very requests that were answered.

    The simulated server gets each request when it was really sent; both latencies count from when
    it was due. Lengths are as the server counted them, else as they were asked for.

    Args:
        sent: What was sent and seen.
        plan: What was meant to be sent.
        calibration: The cost of an iteration and its overhead, or None.
        server: How it serves, or None where that is not known.

    Raises:
        EndpointError: Not one request was answered.
    """
    answered = [sample for sample in sent.samples if sample.answered]
    if not answered:
        faults = sorted({sample.fault for sample in sent.samples if sample.fault})
        raise EndpointError("the endpoint answered no request of the replay", why=", ".join(faults))
    zero_ns = min(min(s.sent_ns, _due_ns(s)) for s in answered)
    due_s, first_s, end_s = (
        np.array([(instant(s) - zero_ns) / 1e9 for s in answered])
        for instant in (_due_ns, _first_ns, _last_ns)
    )
    measured = _times(due_s, first_s, end_s)
    simulated, errors = None, None
    if calibration is not None and server is not None:
        first_too, end_too = _simulated(answered, zero_ns, calibration, server)
        simulated = _times(due_s, first_too, end_too)
        errors = _errors(simulated, measured, (end_too - due_s) / (end_s - due_s))
    return ReplayFigures(
        window=plan.window,
        of_requests=plan.of_requests,
        rate_scale=plan.rate_scale,
        length_scale=plan.length_scale,
        requests=len(sent.samples),
        unsent=sent.unsent,
        answered=len(answered),
        failed=len(sent.samples) - len(answered),
        cut_short=sum(_tokens(sample) < sample.asked_tokens for sample in answered),
        requests_per_s=_rate(plan.workload.arrival_s),
        prompts_known=plan.prompts_known,
        prompt_tokens_off=_prompts_off(sent.samples, plan),
        measured=measured,
        simulated=simulated,
        errors=errors,
        client=sent.client,
        start_uncertainty_s=sent.start_uncertainty_s,
    )


def _simulated(
    answered: Sequence[Sample], zero_ns: int, calibration: CalibrationFile, server: Server
) -> tuple[Floats, Floats]:
    """First tokens and ends by the clock of the measurement."""
    from slotwise_sim.policies import answers_together
    from slotwise_sim.replay import simulated

    workload = Workload(
        np.array([(sample.sent_ns - zero_ns) / 1e9 for sample in answered]),
        np.array([_tokens(sample) for sample in answered], dtype=np.int64),
        np.array([sample.prompt_tokens or 0 for sample in answered], dtype=np.int64),
    )
    overhead = calibration.terms.get("overhead_ms")
    overhead_ms = 0.0 if overhead is None else overhead.value
    outcome = simulated(calibration.cost, overhead_ms, workload, server)
    if answers_together(server.policy):  # no token is seen before the batch's end
        return outcome.end_s, outcome.end_s
    return outcome.first_token_s, outcome.end_s


def _times(due_s: Floats, first_s: Floats, end_s: Floats) -> ReplayTimes:
    latency_s, ttft_s = end_s - due_s, first_s - due_s
    enough = len(due_s) >= P95_REQUESTS
    return ReplayTimes(
        latency_mean=float(latency_s.mean()),
        latency_p50=percentile(latency_s, 50),
        latency_p95=percentile(latency_s, 95) if enough else None,
        ttft_mean=float(ttft_s.mean()),
        ttft_p95=percentile(ttft_s, 95) if enough else None,
        makespan=float(end_s.max() - due_s.min()),
    )


def _errors(simulated: ReplayTimes, measured: ReplayTimes, each: Floats) -> ReplayErrors:
    def off(name: str) -> float | None:
        says, seen = getattr(simulated, name), getattr(measured, name)
        return None if says is None or seen is None else says / seen - 1

    shares = {name: off(name) for name in ReplayTimes.model_fields}
    return ReplayErrors.model_validate({**shares, "each_p50": percentile(np.abs(each - 1), 50)})


def _rate(arrival_s: Floats) -> float | None:
    span_s = float(arrival_s[-1] - arrival_s[0])
    return (len(arrival_s) - 1) / span_s if span_s > 0 else None


def _prompts_off(samples: Sequence[Sample], plan: ReplayPlan) -> float | None:
    """Over the requests whose prompt the server counted."""
    wanted = {f"replay-{n}": int(p) for n, p in enumerate(plan.workload.prompt_tokens, start=1)}
    counted = {
        sample.name.rpartition("/")[2]: sample.prompt_tokens  # of a worker: worker-1/replay-1
        for sample in samples
        if sample.prompt_tokens is not None
    }
    total = sum(wanted[name] for name in counted)
    return sum(counted.values()) / total - 1 if total else None


def _tokens(sample: Sample) -> int:
    return sample.output_tokens or sample.asked_tokens


def _due_ns(sample: Sample) -> int:
    return sample.sent_ns if sample.scheduled_ns is None else sample.scheduled_ns


def _first_ns(sample: Sample) -> int:
    return sample.end_ns if sample.first_token_ns is None else sample.first_token_ns


def _last_ns(sample: Sample) -> int:
    return sample.end_ns if sample.last_token_ns is None else sample.last_token_ns
