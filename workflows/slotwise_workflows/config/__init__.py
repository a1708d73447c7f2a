"""The workload file: read, checked, explained, and turned into what the steps take."""

from slotwise_workflows.config.convert import (
    plain_values,
    resolved,
    schema,
    to_cost,
    to_costs,
    to_given,
    to_logs,
    to_memory,
    to_policies,
    to_prediction_errors,
    to_read_options,
    to_server,
    to_swept_memory,
    to_thinking,
    to_users,
)
from slotwise_workflows.config.load import (
    base_directory,
    check_workload,
    field_names,
    load_workload,
    where,
)
from slotwise_workflows.config.model import WorkloadFile
from slotwise_workflows.config.remarks import (
    broken_files,
    missing_logs,
    not_diagnosed,
    unlimited_memory,
    without_effect,
)

__all__ = [
    "WorkloadFile",
    "base_directory",
    "broken_files",
    "check_workload",
    "field_names",
    "load_workload",
    "missing_logs",
    "not_diagnosed",
    "plain_values",
    "resolved",
    "schema",
    "to_cost",
    "to_costs",
    "to_given",
    "to_logs",
    "to_memory",
    "to_policies",
    "to_prediction_errors",
    "to_read_options",
    "to_server",
    "to_swept_memory",
    "to_thinking",
    "to_users",
    "unlimited_memory",
    "where",
    "without_effect",
]
