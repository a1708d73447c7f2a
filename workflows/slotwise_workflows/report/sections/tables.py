"""Full tables: every policy on the same requests, and the models one by one."""

from __future__ import annotations

from collections.abc import Callable

from slotwise_workflows.record import Estimate
from slotwise_workflows.report import reading
from slotwise_workflows.report.document import (
    Block,
    Bullets,
    Column,
    Heading,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.sections.data import known
from slotwise_workflows.report.sections.first_page import model_name
from slotwise_workflows.report.words import Words
from slotwise_workflows.result import Diagnosis, PolicyFigures, Result
from slotwise_workflows.sample_size import P95_REQUESTS, P99_REQUESTS

_MAX_MODELS = 8

_Read = Callable[[PolicyFigures], float | None]

# Row, kind of number, how it is read, fewest requests; seconds of single requests first.
_TIMES: tuple[tuple[str, str, _Read, int], ...] = (
    ("latency_mean", "seconds", lambda p: p.latency_s.mean, 1),
    ("latency_p50", "seconds", lambda p: p.latency_s.p50, 1),
    ("latency_p95", "seconds", lambda p: p.latency_s.p95, P95_REQUESTS),
    ("latency_p99", "seconds", lambda p: p.latency_s.p99, P99_REQUESTS),
    ("latency_max", "seconds", lambda p: p.latency_s.max, 1),
    ("queue_mean", "seconds", lambda p: p.queue_delay_s.mean, 1),
    ("ttft_mean", "seconds", lambda p: p.ttft_s.mean, 1),
    ("ttft_p95", "seconds", lambda p: p.ttft_s.p95, P95_REQUESTS),
    ("tpot_mean", "seconds", lambda p: p.tpot_s.mean if p.tpot_s else None, 1),
)
_TOTALS: tuple[tuple[str, str, _Read, int], ...] = (
    ("makespan", "seconds", lambda p: p.makespan_s, 1),
    ("requests_per_s", "digits", lambda p: p.requests_per_s, 1),
    ("tokens_per_s", "digits", lambda p: p.output_tokens_per_s, 1),
    ("idle_share", "percent", lambda p: p.idle_share, 1),
)
# Figures of one policy that have an interval: row, kind of number, fewest requests.
_SPREAD = {
    "latency_p95_s": ("latency_p95", "seconds", P95_REQUESTS),
    "idle_share": ("idle_share", "percent", 1),
}


def tables(diagnosis: Diagnosis, words: Words) -> Section:
    """Every policy side by side, and the intervals over replications."""
    title = words("tables.title")
    if not diagnosis.policies:
        return Section("tables", title, (Paragraph(words("tables.none")),))
    blocks: list[Block] = [_policies(diagnosis, words)]
    strained = [
        reading.policy_name(words, name, diagnosis)
        for name in diagnosis.policies
        if reading.overloaded(diagnosis, name)
    ]
    if strained:
        names = words("format.list_separator").join(strained)
        blocks.append(Paragraph(words("tables.note_overload", policies=names)))
    if diagnosis.intervals:
        blocks.append(_intervals(diagnosis, words))
    return Section("tables", title, tuple(blocks))


def _policies(diagnosis: Diagnosis, words: Words) -> Table:
    timed = reading.times_count(diagnosis)
    rows = [
        (
            words(f"tables.{key}"),
            *(
                words.number(read(p) if diagnosis.requests >= needed else None, kind)
                for p in diagnosis.policies.values()
            ),
        )
        for key, kind, read, needed in ((*_TIMES, *_TOTALS) if timed else _TOTALS)
    ]
    if any(p.preemptions for p in diagnosis.policies.values()):
        cells = (words.number(p.preemptions, "count") for p in diagnosis.policies.values())
        rows.append((words("tables.preemptions"), *cells))
    for key, kind, values in (
        ("capacity", "rate", diagnosis.capacity_per_s),
        ("utilisation", "percent", diagnosis.utilisation),
    ):
        if values:
            cells = (words.number(values.get(name), kind) for name in diagnosis.policies)
            rows.append((words(f"tables.{key}"), *cells))
    label = reading.seconds_label(diagnosis)
    return Table(
        words("tables.caption" if timed else "tables.caption_backlog"),
        (
            Column(words("tables.metric"), numeric=False),
            *(Column(reading.policy_name(words, name, diagnosis)) for name in diagnosis.policies),
        ),
        tuple(rows),
        label,
        reading.label_word(words, label),
        _note(diagnosis, words, timed=timed),
    )


def _note(diagnosis: Diagnosis, words: Words, *, timed: bool) -> str:
    if not timed:
        return words("tables.note_backlog")
    notes = [
        words(f"tables.note_{name}", requests=diagnosis.requests, needed=needed)
        for name, needed in (("p95", P95_REQUESTS), ("p99", P99_REQUESTS))
        if diagnosis.requests < needed
    ]
    return " ".join(notes)


def _intervals(diagnosis: Diagnosis, words: Words) -> Table:
    rows = tuple(
        _interval(name, estimate, diagnosis, words)
        for name, estimate in diagnosis.intervals.items()
    )
    heads = (Column(words("tables.metric"), numeric=False), Column(words("tables.interval")))
    label = reading.seconds_label(diagnosis)
    return Table(words("tables.intervals"), heads, rows, label, reading.label_word(words, label))


def _interval(name: str, estimate: Estimate, diagnosis: Diagnosis, words: Words) -> tuple[str, str]:
    """A figure's name and range: of one policy, or a ratio of two."""
    figure, _, policy = name.partition(".")
    if figure not in _SPREAD:
        return known(words, "tables", name), words.estimate(estimate)
    row, kind, needed = _SPREAD[figure]
    title = words(
        "tables.of_policy",
        figure=words(f"tables.{row}"),
        policy=reading.policy_name(words, policy, diagnosis),
    )
    if diagnosis.requests < needed:
        return title, words.number(None, kind)
    return title, words(
        "format.value_range",
        value=words.number(estimate.estimate, kind),
        low=words.number(estimate.low, kind),
        high=words.number(estimate.high, kind),
    )


def models(result: Result, words: Words) -> Section | None:
    """The models one by one: verdict, reasons and limits of each."""
    if len(result.models) < 2:
        return None
    blocks: list[Block] = []
    for model in result.models[:_MAX_MODELS]:
        blocks += [
            Heading(model_name(words, model)),
            Paragraph(words(f"verdict.{model.verdict}.sentence")),
            Bullets(
                tuple(reading.reason_item(words, r) for r in model.reasons)
                + tuple(reading.limit_item(words, limit) for limit in model.limits)
            ),
        ]
    return Section("models-detail", words("models.detail"), tuple(blocks))
