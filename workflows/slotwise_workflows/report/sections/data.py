"""The data and the assumptions: every row accounted for, every fact with its source."""

from __future__ import annotations

from slotwise_sim.costs import Piece, Step
from slotwise_workflows.costs import CostRecord
from slotwise_workflows.report import cost_reading
from slotwise_workflows.report.document import (
    Block,
    Bullets,
    Column,
    Heading,
    Item,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import Fact, Inspection, LengthFigures, Result, Segmentation
from slotwise_workflows.sample_size import P95_REQUESTS

_MAX_VALUES = 12
_MAX_NOTES = 10
_NOTE_LENGTH = 160

# How a fact's number is printed; others as plain numbers with their own unit.
_FACT_KINDS = {
    "slots": "count",
    "replicas": "count",
    "ms_per_token": "milliseconds",
    "memory": "tokens",
    "max_delay_ms": "milliseconds",
    "busiest_rate_per_s": "rate",
    "offered_load": "percent",
}

# Terms of a step cost, in the order in which they are shown.
_TERMS = (
    "base_ms",
    "prefill_base_ms",
    "per_seq_ms",
    "per_kv_token_ms",
    "per_prefill_token_ms",
    "per_prefill_token2_ms",
)


def data(result: Result, words: Words) -> Section:
    """Rows, exclusions by reason, flags, lengths, segments."""
    own = result.traffic
    blocks: list[Block] = [
        Paragraph(words("data.format", format=own.format)),
        _reconciliation(own, words),
        Heading(words("data.quality")),
        _quality(own, words),
        _lengths(own, words),
    ]
    if result.arrivals is not None:
        text = words("data.arrivals", span=result.arrivals.span_s)
        blocks.append(Paragraph(text, "measured", words("label.measured")))
    if own.notes:
        places = tuple(Item(clean(note, _NOTE_LENGTH)) for note in own.notes[:_MAX_NOTES])
        blocks += [Heading(words("data.notes")), Bullets(places)]
    for name, segmentation in own.segments.items():
        blocks += _segment(name, segmentation, result.slots, words)
    return Section("data", words("data.title"), tuple(blocks))


def _reconciliation(own: Inspection, words: Words) -> Table:
    """Rows = requests + exclusions, as a sum."""
    excluded = sum(own.excluded.values())
    rows = [
        (words("data.kept"), words.number(own.requests, "count")),
        *(
            (
                words("data.excluded", reason=exclusion(words, reason)),
                words.number(count, "count"),
            )
            for reason, count in own.excluded.items()
        ),
        (words("data.all_rows"), words.number(own.rows, "count")),
    ]
    total = words("format.sum", rows=own.rows, requests=own.requests, excluded=excluded)
    return Table(
        words("data.caption"),
        (Column(words("data.reason"), numeric=False), Column(words("data.rows"))),
        tuple(rows),
        "measured",
        words("label.measured"),
        words("data.sum", sum=total),
    )


def exclusion(words: Words, reason: str) -> str:
    """An exclusion's reason in words; an unknown one as it is."""
    key = f"exclusion.{reason}"
    return words(key) if key in words else clean(reason)


def flag(words: Words, own: str) -> str:
    """A flag in words, its detail behind; an unknown one as it is."""
    name, _, detail = own.partition(":")
    key = f"flag.{name}"
    if key not in words:
        return clean(own)
    return words("data.flag", text=words(key), detail=clean(detail)) if detail else words(key)


def _quality(own: Inspection, words: Words) -> Block:
    tag = words("label.measured")
    items = [Item(flag(words, own_flag)) for own_flag in own.flags]
    for key, count in (("truncated", own.truncated), ("aborted", own.aborted)):
        if count:
            items.append(Item(words(f"data.{key}", count=count), "measured", tag))
    for key, mean in (("latency", own.latency_s), ("ttft", own.ttft_s)):
        if mean is not None:
            text = words(f"data.{key}", count=mean.n, mean=mean.mean)
            items.append(Item(text, "measured", tag))
    return Bullets(tuple(items)) if items else Paragraph(words("data.quality_none"))


def _lengths(own: Inspection, words: Words) -> Table:
    """Length figures; no p95 of a sample that cannot carry one."""
    columns = [(words("lengths.output"), own.output_tokens)]
    if own.prompt_tokens is not None:
        columns.append((words("lengths.prompt"), own.prompt_tokens))
    withheld = own.requests < P95_REQUESTS
    note = ""
    if withheld:
        note = words("tables.note_p95", requests=own.requests, needed=P95_REQUESTS)

    def row(key: str, kind: str) -> tuple[str, ...]:
        values = [_figure(figures, key) for _, figures in columns]
        if key == "p95" and withheld:
            values = [None for _ in values]
        return (words(f"lengths.row_{key}"), *(words.number(v, kind) for v in values))

    return Table(
        words("lengths.figures"),
        (
            Column(words("lengths.figure"), numeric=False),
            *(Column(title) for title, _ in columns),
        ),
        (
            row("mean", "digits"),
            row("p50", "digits"),
            row("p95", "digits"),
            row("max", "count"),
            row("std", "digits"),
            row("cv", "number"),
        ),
        "measured",
        words("label.measured"),
        note,
    )


def _figure(figures: LengthFigures, key: str) -> float | None:
    value = getattr(figures, key)
    return None if value is None else float(value)


def _segment(name: str, own: Segmentation, slots: int, words: Words) -> list[Block]:
    shown = list(own.values.items())[:_MAX_VALUES]
    stated = {int(key) for _, figures in shown for key in figures.gain_bound}
    slots = min(stated, key=lambda key: abs(key - slots), default=slots)
    rows = []
    for value, figures in shown:
        bound = figures.gain_bound.get(str(slots))
        rows.append(
            (
                clean(value, 40),
                words.number(figures.requests, "count"),
                words.number(figures.token_share, "percent"),
                words.number(figures.output_tokens.mean, "digits"),
                words.number(figures.output_tokens.cv, "number"),
                words.estimate(bound) if bound is not None else words.number(None, ""),
            )
        )
    heads = (
        Column(words("data.segment_value"), numeric=False),
        Column(words("models.requests")),
        Column(words("models.share")),
        Column(words("data.segment_mean")),
        Column(words("data.segment_cv")),
        Column(words("data.segment_gain", slots=slots)),
    )
    rest = own.others + sum(f.requests for f in list(own.values.values())[_MAX_VALUES:])
    note = words("data.segment_others", count=rest) if rest else ""
    title = words("data.segment", name=clean(name, 40))
    blocks: list[Block] = [
        Heading(title),
        Table(title, heads, tuple(rows), "measured", words("label.measured"), note),
    ]
    if own.between_share is not None:
        text = words("data.segment_share", share=own.between_share)
        blocks.append(Paragraph(text, "measured", words("label.measured")))
    return blocks


def assumptions(result: Result, words: Words) -> Section:
    """Facts with value, range, source and weight; then the thresholds."""
    heads = tuple(
        Column(words(f"assumptions.{key}"), numeric=False)
        for key in ("fact", "value", "source", "basis", "weight")
    )
    blocks: list[Block] = []
    if result.facts:
        rows = tuple(_fact(own, result.cost, words) for own in result.facts)
        blocks.append(Table(words("assumptions.caption"), heads, rows))
    else:
        blocks.append(Paragraph(words("assumptions.none")))
    if result.cost is not None:
        blocks.append(_step_cost(result.cost, words))
    if result.thresholds:
        blocks.append(_thresholds(result.thresholds, words))
    return Section("assumptions", words("assumptions.title"), tuple(blocks))


def _fact(own: Fact, cost: CostRecord | None, words: Words) -> tuple[str, ...]:
    basis = known(words, "basis", own.basis) if own.basis else words.number(None, "")
    detail = own.detail
    if own.name == "cost" and cost is not None:
        detail = cost_reading.detail(cost, words)
    return (
        known(words, "fact", own.name),
        fact_value(own, words),
        words(f"label.{own.source}"),
        words("assumptions.detail", basis=basis, detail=detail) if detail else basis,
        words(f"weight.{own.weight}"),
    )


def _step_cost(own: CostRecord, words: Words) -> Table:
    """Every term that is not zero; those of larger batches below."""
    rows = []
    for piece in (own.values, *(own.values.pieces if isinstance(own.values, Step) else ())):
        for name in _TERMS:
            value = getattr(piece, name, None)
            if value:
                term = words(f"assumptions.{name}")
                if isinstance(piece, Piece):
                    term = words("assumptions.from_seqs", term=term, seqs=piece.from_seqs)
                rows.append((term, words.number(value, "digits")))
    heads = (Column(words("assumptions.term"), numeric=False), Column(words("assumptions.value")))
    return Table(words("assumptions.cost"), heads, tuple(rows))


def known(words: Words, group: str, code: str) -> str:
    """A code in words; an unknown one as it is."""
    key = f"{group}.{code}"
    return words(key) if key in words else clean(code)


def fact_value(own: Fact, words: Words) -> str:
    """A fact's value with its unit and, where it is a range, the range."""
    if own.name == "max_delay_ms" and own.value is None and own.source == "given":
        return words("value.full_wait")  # JSON has no infinity
    if own.value is None and own.low is None:
        return words("value.unknown")
    if isinstance(own.value, str):
        return known(words, "value", own.value)
    kind = _FACT_KINDS.get(own.name, "digits")
    unit = "" if own.name in _FACT_KINDS or not own.unit else f" {clean(own.unit, 12)}"
    shown = words.number(own.value, kind) + unit
    if own.low is None or own.high is None:
        return shown
    low, high = words.number(own.low, kind), words.number(own.high, kind)
    if low == high:
        return shown
    return words("format.value_range", value=shown, low=low, high=high)


def _thresholds(thresholds: dict[str, float], words: Words) -> Table:
    rows = tuple(
        (known(words, "threshold", name), words.number(value, "number"))
        for name, value in thresholds.items()
    )
    heads = (
        Column(words("assumptions.threshold"), numeric=False),
        Column(words("assumptions.value")),
    )
    return Table(words("assumptions.thresholds"), heads, rows)
