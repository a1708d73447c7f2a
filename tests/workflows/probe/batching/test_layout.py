"""How requests lay to one another, by hand; the refill's position; what ends alone explain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotwise_workflows.probe.batching.ends import explain_ends
from slotwise_workflows.probe.batching.refill import Refill, position, size_refill
from slotwise_workflows.probe.batching.slots import LADDER, size_burst
from slotwise_workflows.probe.batching.spans import Span, layout, most_together, timeline
from slotwise_workflows.probe.model import Alone, Sample

Row = tuple[float, float, float]  # sent, begin, end


def spans(*rows: Row) -> list[Span]:
    named = [Span(f"r{index}", *row) for index, row in enumerate(rows)]
    return sorted(named, key=lambda span: (span.begin, span.end))


@pytest.mark.parametrize(
    ("rows", "kind", "clusters", "slots"),
    [
        ([(0, 0.1, 5), (0, 0.1, 4), (0, 0.1, 3)], "at_once", [3], None),
        # two slots, the next begins as one ends
        ([(0, 0.1, 5), (0, 0.1, 2), (0, 2.1, 4), (0, 4.1, 6)], "queue", [2, 1, 1], 2),
        # batches of two
        ([(0, 0.1, 3), (0, 3.1, 5), (0, 3.1, 6), (0, 6.1, 8)], "batches", [1, 2, 1], 2),
        # one batch that took all: its size is a lower bound
        ([(0, 0.1, 3), (0, 3.1, 5), (0, 3.1, 6)], "batches", [1, 2], None),
        ([(0, 0.1, 2), (0, 2.1, 4), (0, 4.1, 7)], "turns", [1, 1, 1], 1),
        # one waits for the long one although the other server is idle
        ([(0, 0.1, 9), (0, 0.1, 2), (0, 2.1, 4), (0, 9.1, 12)], "mixed", [2, 1, 1], None),
        # prompts read one after the other, nobody waits for an end
        ([(0, 0.1 + 0.3 * i, 9) for i in range(8)], "at_once", [1] * 8, None),
        ([(0, 0.1, 0.2), (0, 0.1, 0.25), (0, 0.3, 0.4)], "noisy", [3], None),
    ],
)
def test_layout_by_hand(rows: list[Row], kind: str, clusters: list[int], slots: int | None) -> None:
    found = layout(spans(*rows), ttft_s=0.1, slack=0.2)
    assert (found.kind, [len(names) for names in found.clusters]) == (kind, clusters)
    assert found.slots == slots


def test_most_together_by_hand() -> None:
    rows = spans((0, 0, 10), (0, 5, 7), (0, 7, 9), (0, 6, 8))
    assert most_together(rows) == 3
    assert most_together([]) == 0
    # one that takes another's place may be seen a little before the other's end is
    assert most_together(spans((0, 0, 5.1), (0, 5, 9))) == 2
    assert most_together(spans((0, 0, 5.1), (0, 5, 9)), slack=0.2) == 1


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.5, 50)), min_size=1, max_size=12))
def test_most_together_is_that_at_some_instant(rows: list[tuple[float, float]]) -> None:
    found = [Span("r", begin, begin, begin + length) for begin, length in rows]
    at_begins = max(sum(s.begin <= t.begin < s.end for s in found) for t in found)
    assert most_together(found) == at_begins


@pytest.mark.parametrize(("begins", "expected"), [(2.5, 0.0), (5.0, 1.0), (1.25, -0.5)])
def test_position_by_hand(begins: float, expected: float) -> None:
    sizes = Refill(plug=10, members=(40, 15, 40), queued=(5, 5))
    rows = [
        Span("plug", 0, 0, 1),
        Span("member-1", 0, 1, 5),
        Span("member-2", 0, 1, 2.5),
        Span("member-3", 0, 1, 4.9),
        Span("queued-1", 0, begins, begins + 1),
        Span("queued-2", 0, begins + 1, begins + 2),
    ]
    assert position(rows, sizes) == pytest.approx(expected)


def alone(ttft_s: float, pace_s: float) -> Alone:
    return Alone(
        requests=3,
        ttft_s=ttft_s,
        ttft_min_s=ttft_s,
        ttft_max_s=ttft_s,
        latency_min_s=ttft_s + 15 * pace_s,
        noise_s=0,
        seconds_per_token=pace_s,
        step_s=pace_s,
        seconds_per_token_min=pace_s,
        seconds_per_token_max=pace_s,
        wait_s=0,
        varies=False,
    )


@given(st.floats(1e-3, 5), st.floats(1e-4, 0.5), st.integers(100, 100_000), st.integers(2, 32))
def test_what_is_sized_fits(ttft_s: float, pace_s: float, tokens: int, slots: int) -> None:
    """The first request still runs when the last is sent; all differ; no more than allowed."""
    for requests in LADDER:
        burst = size_burst(requests, alone(ttft_s, pace_s), tokens_left=tokens)
        if burst is not None:
            assert burst.total <= tokens
            assert len(burst.tokens) == len(burst.offsets_s) == requests
            assert list(burst.offsets_s) == sorted(burst.offsets_s)
            assert burst.tokens[0] * pace_s >= burst.offsets_s[-1]
            assert list(burst.tokens) not in (sorted(burst.tokens), sorted(burst.tokens)[::-1])
    refill = size_refill(slots, alone(ttft_s, pace_s), shorter=slots - 1, tokens_left=tokens)
    if refill is not None:
        assert refill.total <= tokens
        assert refill.members[-1] == min(refill.members) > max(refill.queued)
        assert len(refill.members) == slots


@settings(max_examples=60)
@given(
    tokens=st.permutations([12, 14, 17, 19, 22, 24]),
    size=st.integers(1, 6),
    release=st.sampled_from(["own", "batch"]),
    pace=st.floats(0.01, 1),
    noise=st.integers(0, 1000),
)
def test_ends_are_explained_as_they_were_made(
    tokens: list[int], size: int, release: str, pace: float, noise: int
) -> None:
    """Never as another way of running: right, or unclear."""
    ends, before = [], 0.0
    for start in range(0, 6, size):
        batch = tokens[start : start + size]
        ends += [before + (max(batch) if release == "batch" else own) for own in batch]
        before += max(batch)
    jittered = np.asarray(ends) * pace * np.random.default_rng(noise).uniform(0.99, 1.01, 6)
    found = explain_ends(list(jittered), tokens)
    if found.clear:
        assert (found.size == 1) == (size == 1)
        if size > 1:
            assert found.release == release


def test_ends_of_a_real_server_that_released_a_batch_at_once() -> None:
    """A padded loop on a loaded machine: four times slower than the request alone had been."""
    after = [7.94, 7.94, 7.94, 7.95, 7.94, 7.94]
    found = explain_ends(after, [16, 10, 20, 12, 18, 14])
    assert (found.clear, found.size, found.release) == (True, 6, "batch")


def test_timeline_is_relative_to_the_first() -> None:
    sample = Sample(
        stage="group", name="long", trial=1, asked_tokens=3, sent_ns=5_000_000_000,
        first_token_ns=6_000_000_000, last_token_ns=8_000_000_000, end_ns=8_000_000_000,
        chunks=3, streamed=True, status=200, prompt_tokens=1, output_tokens=3,
        finish_reason="length", fault=None,
    )  # fmt: skip
    later = sample.model_copy(update={"name": "short-1", "sent_ns": 5_500_000_000})
    failed = sample.model_copy(update={"name": "short-2", "first_token_ns": None})
    rows = timeline([sample, later, failed])
    assert [(row.name, row.sent_s, row.first_token_s, row.last_token_s) for row in rows] == [
        ("long", 0.0, 1.0, 3.0),
        ("short-1", 0.5, 1.0, 3.0),
    ]
    assert timeline([]) == []
