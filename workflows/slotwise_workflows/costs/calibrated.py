"""A step cost that was fitted to measurements, as a stated cost."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from slotwise_workflows.costs.stated import Checked, StatedCost

if TYPE_CHECKING:
    from slotwise_sim import Step
    from slotwise_workflows.calibrate.file import CalibrationFile


def calibrated_cost(path: Path, name: str) -> StatedCost:
    """What `slotwise calibrate` wrote into a file.

    Args:
        path: The file.
        name: What it is called wherever the cost is shown.

    Raises:
        InputError: There is no such file, or it is no calibration.
    """
    from slotwise_workflows.calibrate.file import read_calibration  # brings what reads logs

    return cost_of(read_calibration(path), name)


def cost_of(found: CalibrationFile, name: str) -> StatedCost:
    """A calibration as a stated cost.

    Args:
        found: The calibration.
        name: What it is called wherever the cost is shown.
    """
    return StatedCost(
        cost=found.cost,
        kind="calibration",
        name=name,
        source=found.source,
        quality=found.quality,
        kv_tokens=found.kv_tokens,
        fitted_seqs=found.batch,
        checked=Checked(
            how="fitted",
            off=found.off,
            requests=found.requests,
            held_out=0 if found.hold_out is None else found.hold_out.judged,
            reliable=found.reliable,
        ),
        ends=_ends(found),
    )


def _ends(found: CalibrationFile) -> tuple[Step, ...]:
    """The cost where what an iteration costs by itself weighs most and least.

    The gain does not change if all terms grow alike, so their ratios count: each end of what
    sequences and prompts add, with the other end of ``base_ms``, which takes what sequences leave.
    """
    from slotwise_sim.fitting import step_of

    opposite = {"low": "high", "high": "low"}
    ends = []
    for sequences, prompts in product(opposite, opposite):
        chosen = {
            "base_ms": opposite[sequences],
            "per_seq_ms": sequences,
            "per_prefill_token_ms": prompts,
        }
        values = {
            name: max(0.0, float(getattr(term, chosen[name])))
            if term.how == "fitted" and name in chosen
            else term.value
            for name, term in found.terms.items()
        }
        ends.append(step_of(values, found.bend_seqs)[0])
    return tuple(dict.fromkeys(ends))
