"""What iterations cost, with where the figures come from: stated, published or calibrated."""

from slotwise_workflows.costs.presets import Preset, all_presets, find_preset
from slotwise_workflows.costs.record import CostRecord
from slotwise_workflows.costs.stated import StatedCost

__all__ = ["CostRecord", "Preset", "StatedCost", "all_presets", "find_preset"]
