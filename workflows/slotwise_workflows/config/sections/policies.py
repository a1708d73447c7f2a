"""`policies`: the ways of filling slots that are compared."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from slotwise_workflows.config.base import Config, Count, OneOf, integral
from slotwise_workflows.config.sections.server import MOST_KV_TOKENS
from slotwise_workflows.given import MOST_DELAY_MS

MOST_BINS = 1000


def _a_day_or_no_end(delay_ms: float) -> float:
    if MOST_DELAY_MS < delay_ms < math.inf:
        raise ValueError(
            f"must be at most {MOST_DELAY_MS:,.0f} (a day), or .inf, not {delay_ms:.10g}"
        )
    return delay_ms


Delay = Annotated[float, Field(ge=0), AfterValidator(_a_day_or_no_end)]
Bins = Annotated[int, Field(ge=1, le=MOST_BINS), BeforeValidator(integral)]
PredictionError = Annotated[float, Field(ge=0, le=10)]


class BatchOptions(Config):
    """Options of all policies that start and end batches at once."""

    release: Literal["batch", "own"] = Field(
        "batch", description="answers go out at the batch's end, or at their own last token"
    )
    pad: bool = Field(True, description="finished sequences keep costing until the batch ends")


class StaticOptions(BatchOptions):
    """Options of ``static``; what is None is its kin's and changes nothing here."""

    max_delay_ms: Delay | None = Field(
        None, description="of dynamic; static waits for a full batch"
    )
    bins: Bins | None = Field(None, description="of binned")
    prediction_error: PredictionError | None = Field(None, description="of binned")


class DynamicOptions(BatchOptions):
    """Options of ``dynamic``; what is None is its kin's and changes nothing here."""

    max_delay_ms: Delay = Field(
        0.0, description="longest wait of a short batch; 0 starts at once, .inf is static"
    )
    bins: Bins | None = Field(None, description="of binned")
    prediction_error: PredictionError | None = Field(None, description="of binned")


class BinnedOptions(BatchOptions):
    """Options of ``binned``."""

    bins: Bins = Field(4, description="classes of predicted length, equally many requests in each")
    prediction_error: PredictionError = Field(
        0.0, description="of the predicted lengths; 0 knows them, 0.5 is off by a factor of 1.6"
    )
    max_delay_ms: Delay = Field(0.0, description="as under dynamic, for each class")


class ContinuousOptions(Config):
    """Options of ``continuous``; both matter under a step cost only."""

    prefill: Literal["mixed", "separate"] = Field(
        "mixed", description="prompts are prefilled beside decoding, or in iterations of their own"
    )
    max_batched_tokens: Annotated[Count, Field(le=MOST_KV_TOKENS)] | None = Field(
        None, description="most tokens an iteration handles; unlimited if left out"
    )


class PolicyEntry(OneOf):
    """One policy: its name, or its name with options."""

    words = ("static", "dynamic", "binned", "continuous")

    static: StaticOptions | None = Field(None, description="full batches start and end together")
    dynamic: DynamicOptions | None = Field(None, description="batches may start short")
    binned: BinnedOptions | None = Field(
        None, description="dynamic among requests of like predicted length"
    )
    continuous: ContinuousOptions | None = Field(
        None, description="a free slot is refilled at once"
    )

    @model_validator(mode="before")
    @classmethod
    def _name(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {data: {}}
        if isinstance(data, dict):
            return {key: {} if value is None else value for key, value in data.items()}
        return data

    @property
    def name(self) -> str:
        """Which policy it is."""
        return next(name for name in self.choices() if getattr(self, name) is not None)
