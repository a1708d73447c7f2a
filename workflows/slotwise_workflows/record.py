"""What every machine-readable result is made of: frozen values, and figures with their interval."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen value that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Estimate(Record):
    """A figure with its 95 % interval."""

    estimate: float
    low: float
    high: float
