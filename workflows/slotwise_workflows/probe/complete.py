"""From what the stages saw to the result: the cost is fitted, the replay held against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slotwise_workflows.errors import EndpointError
from slotwise_workflows.probe.findings import CostFinding, ReplayFigures
from slotwise_workflows.probe.load.cost import CostRun
from slotwise_workflows.probe.load.cost_fit import fit_cost, server_of
from slotwise_workflows.probe.load.replay import replay_figures
from slotwise_workflows.probe.model import Plan, ProbeResult, Stopped
from slotwise_workflows.probe.stages.replay import ReplayRun, ToSpread, replay_failed
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.result import Reason

if TYPE_CHECKING:
    from slotwise_sim.replay import Server


@dataclass(frozen=True, slots=True)
class Seen:
    """What the stages saw, as far as they came.

    Attributes:
        found: How the endpoint batches, and what that took.
        cost: What the cost stage saw, or why it sent nothing; None where it was not asked for.
        replay: The replay, likewise; or what other processes are still to send.
        tally: Of all stages together.
        late: Whether the plan's time was up.
        interrupted: Whether Ctrl-C ended it.
    """

    found: ProbeResult
    cost: CostRun | Reason | None
    replay: ReplayRun | ToSpread | Reason | None
    tally: Tally
    late: bool
    interrupted: bool


def completed(seen: Seen, plan: Plan) -> ProbeResult:
    """The whole result; Ctrl-C while it is computed leaves what was measured.

    Args:
        seen: What the stages saw.
        plan: Of all of them.
    """
    cost, replay, interrupted = None, None, seen.interrupted
    try:
        server = _server(seen.found)
        cost = _fitted(seen, server)
        replay = _compared(seen, cost, server)
    except KeyboardInterrupt:
        cost, replay, interrupted = None, None, True
    later = seen.tally.samples[len(seen.found.samples) :]
    samples = [*seen.found.samples, *later]
    late = seen.late or any(sample.fault == "timeout" for sample in later)
    stopped: Stopped | None = "max_seconds" if late else seen.found.stopped_by
    if interrupted:
        stopped = "user"
    why_not = [own for own in (seen.cost, seen.replay, replay) if isinstance(own, Reason)]
    return seen.found.model_copy(
        update={
            "plan": plan,
            "remarks": [*seen.found.remarks, *why_not],
            "cost": cost,
            "replay": None if isinstance(replay, Reason) else replay,
            "samples": samples,
            "requests_sent": seen.tally.requests,
            "output_tokens": sum(sample.output_tokens or 0 for sample in samples),
            "interrupted": stopped is not None,
            "stopped_by": stopped,
        }
    )


def _server(found: ProbeResult) -> Server | None:
    """The server that was found, as it is simulated; None where it was not."""
    if found.batching == "undetermined":
        return None
    return server_of(
        found.batching,
        found.slots or found.slots_at_least,
        release=found.release,
        max_delay_ms=found.delay_ms or 0.0,
    )


def _fitted(seen: Seen, server: Server | None) -> CostFinding | None:
    if not isinstance(seen.cost, CostRun) or server is None:
        return None
    return fit_cost(seen.cost, server, others=seen.found.samples)


def _compared(
    seen: Seen, cost: CostFinding | None, server: Server | None
) -> ReplayFigures | Reason | None:
    """The replay against a simulation at that cost."""
    if not isinstance(seen.replay, ReplayRun):
        return None
    calibration = None if cost is None else cost.calibration
    sent, plan = seen.replay.sent, seen.replay.plan
    try:
        return replay_figures(sent, plan, calibration=calibration, server=server)
    except EndpointError as error:
        return replay_failed(error)
