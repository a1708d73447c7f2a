"""Step costs that others published, or that follow from what they published, by name."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from slotwise_sim.costs import Piece, Step
from slotwise_workflows.costs.stated import Checked, StatedCost
from slotwise_workflows.errors import ConfigError


@dataclass(frozen=True, slots=True)
class DecodeError:
    """How far a fit's decoding iterations are from the figures that it was fitted to.

    Attributes:
        mean: Mean of the absolute errors, as a share.
        most: The largest.
    """

    mean: float
    most: float

    def __str__(self) -> str:
        return (
            f"decode within {100 * self.mean:.1f} % of the tables on average,"
            f" {100 * self.most:.1f} % at most"
        )


@dataclass(frozen=True, slots=True)
class Preset:
    """The step cost of one model on one server.

    Attributes:
        name: What a workload file calls it.
        hardware: Of that server.
        step: What its iterations cost.
        kv_tokens: What its KV cache held, where the source tells.
        kind: ``published`` by those who measured, or ``derived`` from what they published.
        error: Of a derived one; None where the source states none.
        remark: Code of what is left out.
        quality: Both in words.
        source: Where the figures stand.
    """

    name: str
    hardware: str
    step: Step
    kv_tokens: int | None
    kind: Literal["published", "derived"]
    error: DecodeError | None
    remark: str
    quality: str
    source: str

    def stated(self) -> StatedCost:
        """The preset as the cost of a workload."""
        quality = f"{self.kind}; {self.quality}"
        return StatedCost(
            self.step,
            "preset",
            self.name,
            self.source,
            quality,
            self.kv_tokens,
            checked=Checked(
                how=self.kind,
                off=None if self.error is None else self.error.most,
                remark=self.remark,
            ),
        )


@cache
def all_presets() -> tuple[Preset, ...]:
    """Every preset, in the order of the file."""
    import yaml

    place = resources.files("slotwise_workflows.costs") / "presets.yaml"
    entries: dict[str, dict[str, Any]] = yaml.safe_load(place.read_text(encoding="utf-8"))
    return tuple(_preset(name, entry) for name, entry in entries.items())


def find_preset(name: str, *, where: str = "") -> Preset:
    """The preset of a name.

    Args:
        name: As `all_presets` has it.
        where: Where the name stands, for the error.

    Raises:
        ConfigError: There is none; all names, and the one that was probably meant.
    """
    presets = {preset.name: preset for preset in all_presets()}
    if name in presets:
        return presets[name]
    close = difflib.get_close_matches(name.lower(), presets, n=1)
    raise ConfigError(
        f"{name!r:.60} is no preset",
        where=where,
        why=f"the presets are {', '.join(presets)}",
        hint=f"Did you mean {close[0]!r}?" if close else "`slotwise config presets` describes them",
    )


def _preset(name: str, entry: dict[str, Any]) -> Preset:
    terms = dict(entry.pop("step"))
    pieces = tuple(Piece(**piece) for piece in terms.pop("pieces", ()))
    told, remark = entry.pop("error"), entry.pop("remark")
    error = None if told is None else DecodeError(**told)
    quality = f"{error or 'error not stated'}; {remark.replace('_', ' ')}"
    step = Step(**terms, pieces=pieces)
    return Preset(name=name, step=step, error=error, remark=remark, quality=quality, **entry)
