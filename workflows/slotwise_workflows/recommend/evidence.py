"""Everything a verdict rests on, as one frozen value; nothing here is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slotwise_workflows.compare.load import Load
from slotwise_workflows.compare.sorting import Sorted
from slotwise_workflows.facts import Facts
from slotwise_workflows.record import Estimate
from slotwise_workflows.result import ArrivalFigures, LengthFigures, Segmentation


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
        by_lengths: The gain in order of arrival by lengths alone; at a fixed time per token it is
            `gain`. None with `gain`.
        by_padding: The gain over batches that are padded, and over those that are not; empty
            without `gain`.
        even: What these requests would gain with equal lengths: 1 at a fixed time per token.
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
        batch_tokens: KV tokens that a full batch holds at its end, on average.
        prompts_unknown: Share of the requests whose prompt is not known; they are replayed with
            none.
        beyond_caps: Requests that generated more than the max_tokens that memory reserves.
        flags: The log's flags.
        truncated_share: Share of answers that stopped at max_tokens.
        bench: Whether a load generator set the lengths.
        verified: Whether the reader was checked on a real export.
        objectives: p95 objectives in seconds by name (`latency`, `ttft`).
        if_sorted: What batches gain if the job is sorted by length beforehand; None where it is no
            job, or the sample fills no batch.
    """

    requests: int
    facts: Facts
    lengths: LengthFigures
    gain: Estimate | None
    gain_by_slots: Mapping[int, Estimate]
    by_lengths: Estimate | None
    by_padding: Mapping[bool, float]
    even: float
    bound: Estimate | None
    overlapped: bool | None
    shared: float | None
    load: Load | None
    contradicted: tuple[float, float] | None
    arrivals: ArrivalFigures | None
    segments: dict[str, Segmentation]
    prefix_share: float | None
    prompt_mean: float | None
    batch_tokens: float
    prompts_unknown: float
    beyond_caps: int
    flags: tuple[str, ...]
    truncated_share: float
    bench: bool
    verified: bool
    objectives: dict[str, float]
    if_sorted: Sorted | None
