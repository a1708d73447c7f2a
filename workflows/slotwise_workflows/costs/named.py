"""The one cost that a command line or a host's inputs name, in place of a workload file's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from slotwise_workflows.costs.calibrated import calibrated_cost
from slotwise_workflows.costs.presets import find_preset
from slotwise_workflows.errors import ConfigError, SlotwiseError


def named_cost(
    *,
    ms_per_token: float | None = None,
    preset: str | None = None,
    calibration: str | None = None,
    base: Path = Path(),
    called: Callable[[str], str] = str,
    fault: type[SlotwiseError],
) -> dict[str, Any]:
    """What a named cost sets of `Given`: one cost takes the place of any other.

    Args:
        ms_per_token: A time per token.
        preset: The name of a preset.
        calibration: The file of a calibration.
        base: The folder that a relative path starts from.
        called: How the user knows each of these three.
        fault: What is raised where they cannot be used.

    Returns:
        ``ms_per_token`` and ``cost``, one of them None; nothing where none is named.

    Raises:
        SlotwiseError: `fault`, where more than one is named or there is no such preset.
        InputError: The calibration cannot be used.
    """
    told = {"ms_per_token": ms_per_token, "preset": preset, "calibration": calibration}
    named = [called(name) for name, value in told.items() if value is not None]
    if not named:
        return {}
    if len(named) > 1:
        raise fault(
            f"{' and '.join(named)} exclude each other",
            why="each says what tokens cost",
            hint="Give one of them",
        )
    cost = None
    if preset is not None:
        try:
            cost = find_preset(preset).stated()
        except ConfigError as error:
            at = called("preset")
            raise fault(error.what, where=at, why=error.why, hint=error.hint) from None
    elif calibration is not None:
        cost = calibrated_cost(base / calibration, calibration)
    return {"ms_per_token": ms_per_token, "cost": cost}
