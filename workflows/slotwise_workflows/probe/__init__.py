"""Looks at a live endpoint from outside: does it batch, how, and what does an iteration cost?"""

from slotwise_workflows.probe.announce import plan_text
from slotwise_workflows.probe.figures import figures_of, read_probe, with_probe
from slotwise_workflows.probe.files import write_probe
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample
from slotwise_workflows.probe.plan import make_plan
from slotwise_workflows.probe.run import probe
from slotwise_workflows.probe.session import Replayed, Wanted, check_replay, look_and_measure
from slotwise_workflows.probe.wire.target import targets

__all__ = [
    "Plan",
    "ProbeResult",
    "Replayed",
    "Sample",
    "Wanted",
    "check_replay",
    "figures_of",
    "look_and_measure",
    "make_plan",
    "plan_text",
    "probe",
    "read_probe",
    "targets",
    "with_probe",
    "write_probe",
]
