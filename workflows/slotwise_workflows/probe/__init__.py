"""Looks at a live endpoint from outside: does it batch, and how?"""

from slotwise_workflows.probe.files import write_probe
from slotwise_workflows.probe.model import Plan, ProbeResult, Sample
from slotwise_workflows.probe.plan import make_plan, plan_text
from slotwise_workflows.probe.run import probe
from slotwise_workflows.probe.wire.target import targets
from slotwise_workflows.probe.words import explain

__all__ = [
    "Plan",
    "ProbeResult",
    "Sample",
    "explain",
    "make_plan",
    "plan_text",
    "probe",
    "targets",
    "write_probe",
]
