"""A grid of slots and loads, replayed under every policy on one machine or on a Ray cluster."""

from slotwise_workflows.sweep.points import Point, points
from slotwise_workflows.sweep.run import Engine, Sweep, choose_engine, report, sweep
from slotwise_workflows.sweep.table import SweepReport, parquet

__all__ = [
    "Engine",
    "Point",
    "Sweep",
    "SweepReport",
    "choose_engine",
    "parquet",
    "points",
    "report",
    "sweep",
]
