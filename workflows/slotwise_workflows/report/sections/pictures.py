"""The traffic in pictures, each with its finding as title and its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from slotwise_workflows.report import reading
from slotwise_workflows.report.charts import timeline as timeline_chart
from slotwise_workflows.report.charts.arrivals import arrivals_over_time
from slotwise_workflows.report.charts.gain import gain_by_slots
from slotwise_workflows.report.charts.lengths import lengths
from slotwise_workflows.report.charts.load import latency_by_load
from slotwise_workflows.report.document import Figure, Section, Table
from slotwise_workflows.report.sections.drawn import figure, table
from slotwise_workflows.report.sections.sweep_plane import plane_figure
from slotwise_workflows.report.words import Words
from slotwise_workflows.result import (
    ArrivalFigures,
    Diagnosis,
    Histogram,
    LengthFigures,
    Timeline,
    WhatIf,
)
from slotwise_workflows.sample_size import P95_REQUESTS

_Draw = Callable[[Diagnosis, Words], Figure | None]

_TABLE_BINS = 12
_FEWEST_BATCHES = 4  # of a number of slots, for the sample to say anything about it
# Axis units of the arrivals picture: longest span shown in it, seconds of one, catalogue key.
_UNITS = (
    (180.0, 1.0, "arrivals.axis_s"),
    (10_800.0, 60.0, "arrivals.axis_min"),
    (259_200.0, 3600.0, "arrivals.axis_h"),
    (float("inf"), 86_400.0, "arrivals.axis_d"),
)


def pictures(diagnosis: Diagnosis, words: Words) -> Section | None:
    """Every picture that the result carries the data for."""
    return _section(
        diagnosis, words, "pictures", (_slots_over_time, _lengths, _gain, _load, _plane, _arrivals)
    )


def measured(diagnosis: Diagnosis, words: Words) -> Section | None:
    """The pictures of the log alone, which say nothing about a server."""
    return _section(diagnosis, words, "pictures", (_lengths, _arrivals))


def simulated(diagnosis: Diagnosis, words: Words) -> Section | None:
    """The pictures of what ways of batching make of the log."""
    return _section(
        diagnosis, words, "pictures-simulated", (_slots_over_time, _gain, _load, _plane)
    )


def _section(
    diagnosis: Diagnosis, words: Words, name: str, draw: Sequence[_Draw]
) -> Section | None:
    drawn = (own(diagnosis, words) for own in draw)
    figures = tuple(own for own in drawn if own is not None)
    return Section(name, words("figures.title"), figures) if figures else None


def _slots_over_time(diagnosis: Diagnosis, words: Words) -> Figure | None:
    timeline = diagnosis.timeline
    if timeline is None or timeline.span_s <= 0:
        return None
    own = timeline_chart.shown(timeline)
    window = words(f"timeline.window_{diagnosis.replay}", span=timeline.span_s)
    labels = {key: words(f"timeline.{key}") for key in ("busy", "held", "empty", "axis", "slot")}
    if own.cut:
        drawn = {"drawn": timeline.drawn_slots, "slots": timeline.slots}
        labels["batch"] = words("timeline.batch_cut", **drawn)
        labels["continuous"] = words("timeline.continuous_cut", **drawn)
        told = words(
            "timeline.description_cut",
            window=window,
            static=own.batch_idle / own.total,
            continuous=own.continuous_idle / own.total,
        )
    else:
        held, empty, refilled = (
            s / own.total for s in (own.held, own.batch_idle - own.held, own.continuous_idle)
        )
        labels["batch"] = words("timeline.batch", held=held, empty=empty)
        labels["continuous"] = words("timeline.continuous", empty=refilled)
        told = words(
            "timeline.description",
            window=window,
            held=held,
            empty=empty,
            refilled=refilled,
        )
    return figure(
        words,
        "timeline",
        timeline_chart.slots_over_time(timeline, labels),
        title=_timeline_title(timeline, own, words),
        description=told,
        table=_timeline_table(diagnosis, timeline, own, words),
        label="simulated",
        note=_timeline_note(diagnosis, timeline, words),
        defs=timeline_chart.HATCH,
    )


def _timeline_title(timeline: Timeline, own: timeline_chart.Shown, words: Words) -> str:
    """The difference in idle slot time, where there is one; else what stands in its place.

    With all requests served within the window, both leave the same time idle: then the difference
    is that batching at once holds its slots for some of it.
    """
    batch, continuous = own.batch_idle, own.continuous_idle
    if own.cut:
        shares = {"static": batch / own.total, "continuous": continuous / own.total}
        return words("timeline.title_cut", slots=timeline.slots, **shares)
    if batch - continuous >= max(0.1 * batch, 0.02 * own.total):
        in_minutes = batch >= 600
        scale = 60.0 if in_minutes else 1.0
        return words(
            "timeline.title",
            slots=timeline.slots,
            static=batch / scale,
            continuous=continuous / scale,
            unit=words("timeline.minutes" if in_minutes else "timeline.seconds"),
        )
    if own.held > 0.05 * own.total:
        return words("timeline.title_held", slots=timeline.slots, held=own.held)
    if continuous > 0.1 * own.total:
        return words("timeline.title_light", share=continuous / own.total)
    return words("timeline.title_busy", slots=timeline.slots)


def _timeline_table(
    diagnosis: Diagnosis, timeline: Timeline, own: timeline_chart.Shown, words: Words
) -> Table:
    """Busy, held and empty as in the picture's legend; of a part of the slots, idle alone."""
    rows = []
    for name, held, idle in (
        (timeline.batch, own.held, own.batch_idle),
        (reading.CONTINUOUS, 0.0, own.continuous_idle),
    ):
        parts = (idle,) if own.cut else (held, max(0.0, idle - held))
        rows.append(
            (
                reading.policy_name(words, name, diagnosis),
                *(words.number(s, "digits") for s in (own.total - idle, *parts, own.total)),
                words.number(idle / own.total, "percent"),
            )
        )
    parts_of_idle = ("idle",) if own.cut else ("column_held", "column_empty")
    keys = ("column", "column_busy", *parts_of_idle, "total", "share")
    return table(words("timeline.table"), tuple(words(f"timeline.{key}") for key in keys), rows)


def _timeline_note(diagnosis: Diagnosis, timeline: Timeline, words: Words) -> str:
    policy = reading.policy_name(words, timeline.batch, diagnosis)
    drawn = timeline.drawn_slots
    if drawn < timeline.slots:
        note = words("timeline.note_cut", policy=policy, slots=timeline.slots, drawn=drawn)
    else:
        note = words("timeline.note", policy=policy, slots=timeline.slots)
    notes = [note]
    if diagnosis.slots_is_range:
        notes.append(words("timeline.note_slots"))
    if timeline.tokens_axis:
        notes.append(words("timeline.note_assumed"))
    return " ".join(notes)


def _lengths(diagnosis: Diagnosis, words: Words) -> Figure | None:
    histogram, own = diagnosis.histogram, diagnosis.output_tokens
    if not any(histogram.counts) or histogram.width <= 0:
        return None
    marks = [(own.mean, words("lengths.mean", value=own.mean))] if own.std != 0 else []
    if own.std != 0 and diagnosis.requests >= P95_REQUESTS:
        marks.append((own.p95, words("lengths.p95", value=own.p95)))
    marks.append((own.max, words("lengths.max", value=own.max)))
    labels = {"axis": words("lengths.axis"), "count": words("lengths.count")}
    heads = (words("lengths.column"), words("lengths.count"))
    return figure(
        words,
        "lengths",
        lengths(histogram, marks, labels),
        title=_lengths_title(own, words),
        description=words("lengths.description", mean=own.mean, p50=own.p50, max=own.max),
        table=table(words("lengths.table"), heads, _bins(histogram, words)),
        label="measured",
    )


def _lengths_title(own: LengthFigures, words: Words) -> str:
    if own.std == 0:
        return words("lengths.title_even", max=own.max)
    ratio = own.max / own.mean if own.mean else 0.0
    return words("lengths.title", p50=own.p50, max=own.max, ratio=ratio)


def _bins(histogram: Histogram, words: Words) -> list[tuple[str, ...]]:
    """At most a dozen rows: neighbouring bins are added up."""
    joined = -(-len(histogram.counts) // _TABLE_BINS)
    rows: list[tuple[str, ...]] = []
    for first in range(0, len(histogram.counts), joined):
        counts = histogram.counts[first : first + joined]
        low = histogram.start + first * histogram.width
        high = low + len(counts) * histogram.width
        span = words("lengths.from_to", low=low, high=high)
        rows.append((span, words.number(sum(counts), "count")))
    return rows


def _gain(diagnosis: Diagnosis, words: Words) -> Figure | None:
    here = diagnosis.slots
    bound = {
        int(slots): e
        for slots, e in diagnosis.gain_bound.items()
        if slots.isdecimal() and _carried(int(slots), diagnosis)
    }
    if len(bound) < 2:
        return None
    # The same gain stands at every load: any point of a number of slots carries it.
    in_order = {
        point.slots: point.gain for point in diagnosis.what_if if _carried(point.slots, diagnosis)
    }
    if diagnosis.gain is not None:
        in_order[diagnosis.slots] = diagnosis.gain.estimate
    stepped = diagnosis.cost is not None
    if diagnosis.arrivals is None and not stepped:
        in_order = {}
    few, many = min(bound), max(bound)
    assumed = "_assumed" if diagnosis.slots_is_range else ""
    own = diagnosis.gain
    kind = "_cost" if stepped else ""
    labels = {key: words(f"gain.{key}") for key in ("axis", "y", "even")}
    labels |= {key: words(f"gain.{key}{kind}") for key in ("bound", "order")}
    labels["here"] = words(f"gain.here{assumed}", slots=here)
    rows = [
        (
            words.number(slots, "count"),
            words.estimate(bound[slots]) if slots in bound else words.number(None, ""),
            words.number(in_order.get(slots), "times"),
        )
        for slots in sorted({*bound, *in_order})
    ]
    heads = (words("gain.slots"), words(f"gain.regrouped{kind}"), words(f"gain.in_order{kind}"))
    at_here = bound.get(here)
    at = at_here.estimate if at_here else None
    if here in in_order and at is not None:
        digits = {} if own is None else {"low": own.low, "high": own.high}
        key = "gain.title_cost" if stepped else "gain.title_order"
        title = words(key, slots=here, gain=in_order[here], value=at, **digits)
    else:
        title = words("gain.title", slots=here, value=at)
    return figure(
        words,
        "gain",
        gain_by_slots(bound, in_order, here, labels),
        title=title,
        description=words(
            f"gain.description{assumed}",
            few=few,
            first=bound[few].estimate,
            many=many,
            last=bound[many].estimate,
            slots=here,
        ),
        table=table(words("gain.table"), heads, rows),
        label="simulated" if stepped else "measured",
    )


def _carried(slots: int, diagnosis: Diagnosis) -> bool:
    """Whether the sample holds enough batches of that many, or they are this client's."""
    return slots == diagnosis.slots or slots * _FEWEST_BATCHES <= diagnosis.requests


def _load(diagnosis: Diagnosis, words: Words) -> Figure | None:
    points = sorted(
        (p for p in diagnosis.what_if if p.slots == diagnosis.slots and p.load > 0),
        key=lambda p: p.load,
    )
    batch = reading.baseline(diagnosis)
    shown = [p for p in points if {batch, reading.CONTINUOUS} <= p.latency_mean_s.keys()]
    if len(shown) < 2:
        return None
    names = {p: reading.policy_name(words, p, diagnosis) for p in (batch, reading.CONTINUOUS)}
    series = [
        (p.load, names[policy], p.latency_mean_s[policy], p.overloaded.get(policy, False))
        for policy in (batch, reading.CONTINUOUS)
        for p in shown
    ]
    rows = [
        (
            words.number(p.load, "factor"),
            *(
                _strained(words, p.latency_mean_s[policy], p.overloaded.get(policy, False))
                for policy in (batch, reading.CONTINUOUS)
            ),
        )
        for p in shown
    ]
    return figure(
        words,
        "load",
        latency_by_load(series, {k: words(f"load.{k}") for k in ("axis", "y", "here")}),
        title=_load_title(shown, batch, words),
        description=words(
            "load.description", low=shown[0].load, high=shown[-1].load, slots=diagnosis.slots
        ),
        table=table(words("load.table"), (words("load.column"), *names.values()), rows),
        label=reading.seconds_label(diagnosis),
        note=words("load.note") if any(over for *_, over in series) else "",
    )


def _plane(diagnosis: Diagnosis, words: Words) -> Figure | None:
    if diagnosis.sweep is None or not reading.times_count(diagnosis):
        return None
    return plane_figure(
        diagnosis.sweep,
        words,
        named=reading.compared(words, diagnosis),
        label=reading.seconds_label(diagnosis),
    )


def _load_title(shown: Sequence[WhatIf], batch: str, words: Words) -> str:
    """What today's load does to either way of batching, or the least load that is too much."""
    strained = next((p for p in shown if p.load <= 1 and p.overloaded.get(batch, False)), None)
    if strained is None:
        today = next((p for p in shown if p.load == 1), shown[0])
        now, after = (today.latency_mean_s[p] for p in (batch, reading.CONTINUOUS))
        return words("load.title", now=now, after=after)
    both = "_both" if strained.overloaded.get(reading.CONTINUOUS, False) else ""
    if strained.load == 1:
        return words(f"load.title_overload{both}_now")
    return words(f"load.title_overload{both}", load=strained.load)


def _strained(words: Words, seconds: float, over: bool) -> str:
    text = words.number(seconds, "seconds")
    return words("load.cell_overloaded", value=text) if over else text


def _arrivals(diagnosis: Diagnosis, words: Words) -> Figure | None:
    own = diagnosis.arrivals
    if own is None or len(own.rate_by_bin) < 2 or own.bin_s <= 0:
        return None
    _, unit, axis = next(u for u in _UNITS if own.span_s <= u[0])
    whole = own.busiest_span_s >= 0.95 * own.span_s
    start = own.busiest_start_s / unit
    busiest = None if whole else (start, start + own.busiest_span_s / unit)
    labels: Mapping[str, str] = {
        "axis": words(axis),
        "y": words("arrivals.y"),
        "busiest": words("arrivals.busiest"),
    }
    ratio = own.busiest_rate_per_s / own.rate_per_s if own.rate_per_s else 0.0
    title = words("arrivals.title_flat", rate=own.rate_per_s)
    if not whole:
        title = words(
            "arrivals.title",
            span=own.busiest_span_s,
            rate=own.busiest_rate_per_s,
            ratio=ratio,
        )
    return figure(
        words,
        "arrivals",
        arrivals_over_time(own.rate_by_bin, own.bin_s / unit, busiest, labels),
        title=title,
        description=words(
            "arrivals.description",
            span=own.span_s,
            rate=own.rate_per_s,
            busiest=own.busiest_rate_per_s,
        ),
        table=_arrival_table(own, words),
        label="measured",
    )


def _arrival_table(own: ArrivalFigures, words: Words) -> Table:
    rows = [
        (words(f"arrivals.{key}"), words.number(value, kind))
        for key, value, kind in (
            ("rate", own.rate_per_s, "rate"),
            ("busiest_rate", own.busiest_rate_per_s, "rate"),
            ("busiest_start", own.busiest_start_s, "seconds"),
            ("busiest_span", own.busiest_span_s, "seconds"),
            ("span", own.span_s, "seconds"),
            ("gap_cv", own.gap_cv, "number"),
        )
    ]
    heads = (words("arrivals.column"), words("arrivals.value"))
    return table(words("arrivals.table"), heads, rows)
