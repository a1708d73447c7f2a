"""The workload file: read, checked, explained, and turned into what the steps take."""

from slotwise_workflows.config.convert import (
    missing_logs,
    plain_values,
    resolved,
    schema,
    to_branding,
    to_cost,
    to_given,
    to_logs,
    to_policies,
    to_read_options,
    to_server,
    without_effect,
)
from slotwise_workflows.config.load import check_workload, field_names, load_workload, where
from slotwise_workflows.config.model import WorkloadFile

__all__ = [
    "WorkloadFile",
    "check_workload",
    "field_names",
    "load_workload",
    "missing_logs",
    "plain_values",
    "resolved",
    "schema",
    "to_branding",
    "to_cost",
    "to_given",
    "to_logs",
    "to_policies",
    "to_read_options",
    "to_server",
    "where",
    "without_effect",
]
