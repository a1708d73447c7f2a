"""Everything a verdict rests on, as one frozen value; nothing here is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slotwise_workflows.compare.load import Load
from slotwise_workflows.facts import Facts
from slotwise_workflows.result import ArrivalFigures, Estimate, LengthFigures, Segmentation


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts and figures of one model's traffic.

    Attributes:
        requests: Usable requests.
        facts: Given, measured, estimated or assumed.
        lengths: Figures of the output lengths.
        gain: Capacity, continuous over batch-at-once, batches formed in order of arrival where it
            is known; its range runs over the assumed slots. None where the sample fills no batch.
        gain_by_slots: The gain at the fewest, the stated and the most slots assumed.
        bound: `gain_bound` at the stated slots.
        overlapped: Whether two requests were ever in flight at once; None where unknown.
        shared: Largest share of requests that share a batch at `Thresholds.shared_at_load` times
            today's load, over the assumed times per token; None where arrivals are unknown.
        load: The busiest hour; None where times cannot be replayed.
        contradicted: Mean latency of the busiest hour as the log has it and as the replay of
            batch-at-once has it, in seconds, where the two cannot be the same server; else None.
        arrivals: How requests arrive; None where unknown.
        segments: The log split by the columns the user named.
        prefix_share: Share of prompt tokens that repeat an earlier prefix; None where the log does
            not tell.
        prompt_mean: Mean prompt in tokens; None where unknown.
        flags: The log's flags.
        truncated_share: Share of answers that stopped at max_tokens.
        bench: Whether a load generator set the lengths.
        verified: Whether the reader was checked on a real export.
        objectives: p95 objectives in seconds by name (`latency`, `ttft`).
    """

    requests: int
    facts: Facts
    lengths: LengthFigures
    gain: Estimate | None
    gain_by_slots: Mapping[int, Estimate]
    bound: Estimate | None
    overlapped: bool | None
    shared: float | None
    load: Load | None
    contradicted: tuple[float, float] | None
    arrivals: ArrivalFigures | None
    segments: dict[str, Segmentation]
    prefix_share: float | None
    prompt_mean: float | None
    flags: tuple[str, ...]
    truncated_share: float
    bench: bool
    verified: bool
    objectives: dict[str, float]
