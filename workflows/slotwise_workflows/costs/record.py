"""A stated cost as the machine-readable results hold it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from slotwise_sim.costs import PerToken, Step
from slotwise_workflows.costs.stated import Checked, CostKind, StatedCost


class CostRecord(BaseModel):
    """What tokens or iterations cost, and where that comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: CostKind
    name: str = Field(description="of the preset, or of the calibration's file; else empty")
    source: str
    quality: str = Field(description="published or derived, errors, what is left out")
    kv_tokens: int | None = Field(description="what that server's KV cache held, if told")
    checked: Checked | None = Field(
        None, description="what it rests on and how far it is off; null where nobody checked it"
    )
    values: PerToken | Step = Field(description="the terms, in milliseconds")

    @classmethod
    def of(cls, stated: StatedCost) -> CostRecord:
        """The record of a stated cost."""
        return cls(
            kind=stated.kind,
            name=stated.name,
            source=stated.source,
            quality=stated.quality,
            kv_tokens=stated.kv_tokens,
            checked=stated.checked,
            values=stated.cost,
        )
