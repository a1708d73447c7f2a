"""What the log says by itself, before anything is simulated."""

from slotwise_workflows.measure.inspection import inspect

__all__ = ["inspect"]
