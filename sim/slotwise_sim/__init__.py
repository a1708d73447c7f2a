"""What would happen? Arrays in, arrays out.

The few names everybody needs are here; the rest is in modules of its own:

- ``lengths``: how output lengths vary, and what that is worth.
- ``metrics``: the figures of an outcome, and its slots for a picture.
- ``synthetic``, ``article``: made traffic; ``variation``: the same with lengths spread anew.
- ``replicate``, ``bootstrap``: how sure a figure is.

Importing this package compiles nothing: the compiled loops are loaded when `simulate` first runs.
"""

from __future__ import annotations

from slotwise_sim.costs import Cost, PerToken, Piece, Step
from slotwise_sim.memory import Memory, NeverFitsError
from slotwise_sim.outcome import Outcome
from slotwise_sim.policies import Binned, Continuous, Dynamic, Policy, Static
from slotwise_sim.simulation import simulate
from slotwise_sim.users import Balancer, Users
from slotwise_sim.workload import Workload

__all__ = [
    "Balancer",
    "Binned",
    "Continuous",
    "Cost",
    "Dynamic",
    "Memory",
    "NeverFitsError",
    "Outcome",
    "PerToken",
    "Piece",
    "Policy",
    "Static",
    "Step",
    "Users",
    "Workload",
    "simulate",
]
