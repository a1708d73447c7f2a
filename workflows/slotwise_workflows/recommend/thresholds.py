"""The numbers at which a verdict changes, with their reasons; `thresholds:` in a workload file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from slotwise_workflows.sample_size import P95_REQUESTS


class Thresholds(BaseModel):
    """Where one verdict ends and the next begins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_requests: int = Field(
        P95_REQUESTS, ge=2, description="fewest requests whose p95 has a two-sided 95 % interval"
    )
    slower_below: float = Field(1.0, description="a gain wholly below this is a loss")
    none_below: float = Field(
        1.1, description="a gain wholly below this does not pay for a change of engine"
    )
    adopt_from: float = Field(
        1.2, description="a gain wholly above this survives the cost of admission steps"
    )
    widest_interval: float = Field(
        0.3, gt=0, description="an interval wider than this cannot tell yes from no"
    )
    shared_batches: float = Field(
        0.05, ge=0, le=1, description="fewer requests sharing a batch: there is nothing to batch"
    )
    shared_at_load: float = Field(
        10.0, gt=0, description="times today's load at which sharing is judged"
    )
    waiting_fall: float = Field(
        0.1, description="fall of mean latency that is worth it where capacity gains nothing"
    )
    waiting_adopt: float = Field(
        0.2, description="fall of mean latency that makes a capacity gain worth having today"
    )
