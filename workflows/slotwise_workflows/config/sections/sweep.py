"""`sweep` and `execution`: what is varied, and where that is computed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from slotwise_workflows.config.base import Config, Count, Positive, integral
from slotwise_workflows.config.sections.server import Balancer, Cost, Replicas, Slots
from slotwise_workflows.given import MOST_USERS

Several = Field(strict=False, min_length=1)


class Sweep(Config):
    """What is varied; a point is one value of each."""

    slots: Annotated[tuple[Slots, ...], Several] = Field((4, 8, 16, 32), description="slots to try")
    load: Annotated[tuple[Positive, ...], Several] | None = Field(
        None,
        description="times today's arrival rate; [0.25, 0.5, 1, 2] if neither users nor offline is "
        "given",
    )
    users: Annotated[tuple[Annotated[Count, Field(le=MOST_USERS)], ...], Several] | None = Field(
        None, description="numbers of users of a closed loop; traffic.users says how they think"
    )
    offline: bool = Field(False, description="all requests as one job, there from the start")
    length_cv: Annotated[tuple[Annotated[float, Field(ge=0, le=20)], ...], Several] | None = Field(
        None,
        description="coefficients of variation to respread output lengths to, at the same mean; "
        "their own if left out",
    )
    replicas: Annotated[tuple[Replicas, ...], Several] | None = Field(
        None, description="servers to try; server.replicas if left out"
    )
    balancer: Annotated[tuple[Balancer, ...], Several] | None = Field(
        None, description="ways to spread requests; server.balancer if left out"
    )
    cost: Annotated[tuple[Cost, ...], Several] | None = Field(
        None, description="costs to try, such as presets; server.cost if left out"
    )
    replications: Annotated[int, Field(ge=1, le=100_000), BeforeValidator(integral)] = Field(
        20, description="resampled traffics a point"
    )
    sample: Count | None = Field(
        None, description="so many points of the grid, drawn by the seed; all if left out"
    )
    limits: bool = Field(
        True,
        description="search each server for its capacity at the objectives, the servers needed, "
        "and the load and variation from which a policy pays",
    )


class Execution(Config):
    """Where a sweep runs."""

    engine: Literal["auto", "local", "ray"] = Field(
        "auto", description="auto is local until the work is worth starting Ray"
    )
    address: str | None = Field(None, description="of an existing Ray cluster")
