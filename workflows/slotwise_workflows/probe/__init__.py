"""Looks at a live endpoint from outside: does it batch, how, and what does an iteration cost?

From top to bottom: what is `wanted`, within which `plan`; a `session` of one of the `stages` after
the other, by the tests of `batching` and by `load`, over the `wire`; `complete` makes the result, a
`model` that `files` keep and of which a diagnosis uses the `figures`.
"""

from slotwise_workflows.probe.announce import plan_text
from slotwise_workflows.probe.figures import figures_of, read_probe, with_probe
from slotwise_workflows.probe.files import write_probe
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample
from slotwise_workflows.probe.plan import make_plan
from slotwise_workflows.probe.session import look_and_measure
from slotwise_workflows.probe.stages.replay import check_replay
from slotwise_workflows.probe.wanted import Replayed, Wanted
from slotwise_workflows.probe.wire.target import check_model, targets

__all__ = [
    "Plan",
    "ProbeResult",
    "Replayed",
    "Sample",
    "Wanted",
    "check_model",
    "check_replay",
    "figures_of",
    "look_and_measure",
    "make_plan",
    "plan_text",
    "read_probe",
    "targets",
    "with_probe",
    "write_probe",
]
