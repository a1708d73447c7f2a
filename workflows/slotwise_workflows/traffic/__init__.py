"""A log in, `Traffic` out."""

from slotwise_workflows.traffic.model import CANONICAL, SourceFile, Traffic
from slotwise_workflows.traffic.parquet import write_parquet
from slotwise_workflows.traffic.read import ReadOptions, read_traffic

__all__ = ["CANONICAL", "ReadOptions", "SourceFile", "Traffic", "read_traffic", "write_parquet"]
