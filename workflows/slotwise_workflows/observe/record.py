"""What a log's own times say of how its server filled its slots, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slotwise_workflows.record import Record

Kind = Literal[
    "continuous", "serial", "static", "dynamic", "batch_at_once", "not_continuous", "undetermined"
]
Undetermined = Literal[
    "",
    "no_times",
    "too_few_requests",
    "never_overlaps",
    "several_servers",
    "clock_coarse",
    "no_first_tokens",
    "ambiguous",
]


class ObservedBatching(Record):
    """How the log's server filled its slots, by when its requests began and ended."""

    kind: Kind = Field(
        description="batch_at_once: static or dynamic; not_continuous: any but continuous"
    )
    reason: Undetermined = Field(default="", description="why undetermined; else empty")
    likelihood: dict[str, float] = Field(
        default={},
        description="share of serial, static, dynamic, continuous, and several (servers of any kind"
        " but continuous), in what explains the log; they sum to 1",
    )
    first_tokens: bool = Field(default=False, description="whether first tokens were there to see")
    tolerance_s: float = Field(default=0.0, description="instants so near are taken for one")
    met: int = Field(default=0, description="requests looked at that came while others were there")
    joined: list[int] = Field(
        default=[],
        description="of met, those that began while at least 1, 2, ... 9 batches, which had begun"
        " before, ran on",
    )
    let_in: int = Field(
        default=0, description="starts that joined; all that came together count as one"
    )
    held: int = Field(
        default=0,
        description="starts that waited for all that ran, though there was room; counted likewise",
    )
    beside: int = Field(default=0, description="of waited, those that ran beside the one before")
    waited: int = Field(
        default=0, description="requests that already waited when the one before them began"
    )
    paced: int = Field(
        default=0, description="of queued, those that ended their own time after the one before"
    )
    queued: int = Field(
        default=0, description="without first tokens: requests that waited through two ends"
    )
    tied: int = Field(default=0, description="of apart, ends that came with the one before")
    apart: int = Field(default=0, description="ends next to one of an answer of unlike length")
    tied_by_chance: float = Field(default=0.0, description="how many ties chance would make")
    slowing: float = Field(
        default=0.0, description="standard errors by which others slow a request down; 0 if not"
    )
