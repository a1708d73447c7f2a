"""A cost together with who says so and how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slotwise_sim.costs import Cost

CostKind = Literal["ms_per_token", "step", "preset", "calibration"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a cost rests on and how far it is off; what a report says of its source and quality.

    Attributes:
        how: Published by those who measured, derived from what they published, or fitted to
            measured requests.
        off: The largest error as a share, without sign: of a fit that in mean latency, p95 latency
            or mean time to first token; of what was derived that of a decoding iteration. None
            where the source states none.
        requests: That it was fitted to.
        held_out: More that it was judged by; 0 where there are none.
        reliable: Whether it is close enough to rest figures on.
        remark: Code of what is left out, as in the presets; else empty.
    """

    how: Literal["published", "derived", "fitted"]
    off: float | None
    requests: int = 0
    held_out: int = 0
    reliable: bool = True
    remark: str = ""


@dataclass(frozen=True, slots=True)
class StatedCost:
    """What tokens or iterations cost, and where that comes from.

    Attributes:
        cost: As the simulator takes it.
        kind: How it was stated; the key under ``server.cost``.
        name: Of the preset, or the calibration's file as it was named; else empty.
        source: Who measured or published it.
        quality: How good it is: published or derived, errors, what is left out.
        kv_tokens: What that server's KV cache held, where the source tells; limits nothing by
            itself.
        ends: The cost at the ends of its terms' intervals, where it was fitted.
        checked: The same as data; None where nobody checked it.
        fitted_seqs: Between how many sequences at once it was fitted, where it was.
    """

    cost: Cost
    kind: CostKind
    name: str
    source: str
    quality: str
    kv_tokens: int | None
    fitted_seqs: tuple[int, int] | None = None
    checked: Checked | None = None
    ends: tuple[Cost, ...] = ()


def by_the_user(cost: Cost, kind: CostKind) -> StatedCost:
    """A cost that the user wrote down, which nobody has checked."""
    return StatedCost(cost, kind, "", "stated by the user", "not checked against a server", None)
