"""Slots over time, batched at once above and continuously below, on one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slotwise_workflows.report.charts.common import BATCH, WIDTH, Spec
from slotwise_workflows.result import Occupancy, Timeline

_MAX_MARKS = 600

HATCH = (
    '<pattern id="held" patternUnits="userSpaceOnUse" width="6" height="6" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fcefe4"/>'
    f'<rect width="2" height="6" fill="{BATCH}"/></pattern>'
)


@dataclass(frozen=True, slots=True)
class Shown:
    """Slot-seconds of the window; what is neither held nor without a request is busy.

    Attributes:
        total: Of all slots.
        held: By batch-at-once, behind the longest of a batch, the slot's own answer having ended;
            of the drawn slots.
        batch_idle: Of batch-at-once, held or with no request in the slot.
        continuous_idle: Of refilled slots, which are never held.
        cut: Whether only a part of the slots is drawn, so that `held` is not that of all.
    """

    total: float
    held: float
    batch_idle: float
    continuous_idle: float
    cut: bool


def shown(timeline: Timeline) -> Shown:
    """The numbers of the picture: of its bars where it draws all slots."""
    total = timeline.slots * timeline.span_s
    busy, held = _busy_and_held(timeline.static, timeline.span_s)
    refilled, _ = _busy_and_held(timeline.continuous, timeline.span_s)
    if timeline.drawn_slots < timeline.slots:
        idle = timeline.idle_slot_s
        return Shown(total, held, idle["static"], idle["continuous"], cut=True)
    empty, refilled_empty = (
        0.0 if s < 1e-9 * total else s for s in (total - busy - held, total - refilled)
    )
    return Shown(total, held, held + empty, refilled_empty, cut=False)


def _busy_and_held(bars: Sequence[Occupancy], span_s: float) -> tuple[float, float]:
    times = [
        [min(max(t, 0.0), span_s) for t in (o.start_s, o.own_end_s, o.held_until_s)] for o in bars
    ]
    busy = sum(own - start for start, own, _ in times)
    return busy, sum(until - own for _, own, until in times)


def slots_over_time(timeline: Timeline, labels: Mapping[str, str]) -> Spec:
    """One window twice on one time axis; needs `HATCH` among the picture's definitions.

    Args:
        timeline: The window.
        labels: busy, held, empty, axis, slot, batch, continuous.
    """
    panels = [
        _panel(timeline, timeline.static, labels, labels["batch"], first=True),
        _panel(timeline, timeline.continuous, labels, labels["continuous"], first=False),
    ]
    return {"vconcat": panels, "spacing": 14}


def _panel(
    timeline: Timeline,
    occupancies: Sequence[Occupancy],
    labels: Mapping[str, str],
    title: str,
    *,
    first: bool,
) -> Spec:
    drawn = timeline.drawn_slots
    span = timeline.span_s
    height = 15 if drawn <= 8 else 10 if drawn <= 16 else 6
    rows: list[Spec] = [
        {"slot": slot + 1, "from": 0, "to": span, "state": labels["empty"]} for slot in range(drawn)
    ]
    for o in _bounded([o for o in occupancies if o.slot < drawn], span):
        rows += _stretch(o.slot, o.start_s, o.own_end_s, span, labels["busy"])
        rows += _stretch(o.slot, o.own_end_s, o.held_until_s, span, labels["held"])
    colour: Spec = {
        "field": "state",
        "type": "nominal",
        "scale": {
            "domain": [labels["busy"], labels["held"], labels["empty"]],
            "range": ["#2f7391", "url(#held)", "#ffffff"],
        },
        "legend": {"symbolType": "square"} if first else None,
    }
    return {
        "title": title,
        "width": WIDTH,
        "height": drawn * height,
        "data": {"values": rows},
        "mark": {"type": "rect", "strokeWidth": 0.6},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [0, span], "nice": False},
                "axis": {"title": None if first else labels["axis"], "labels": not first},
            },
            "x2": {"field": "to"},
            "y": {
                "field": "slot",
                "type": "ordinal",
                "scale": {"paddingInner": 0.18, "paddingOuter": 0.1},
                "axis": {
                    "title": labels["slot"],
                    "labelFontSize": 10 if drawn <= 8 else 8,
                    "values": [
                        n for n in range(1, drawn + 1) if height > 8 or n % 4 == 0 or n == 1
                    ],
                },
            },
            "fill": colour,
            "stroke": {**colour, "scale": {**colour["scale"], "range": ["#fff", BATCH, "#7f8b96"]}},
        },
    }


def _stretch(slot: int, start: float, end: float, span: float, state: str) -> list[Spec]:
    start, end = max(0.0, start), min(span, end)
    if end <= start:
        return []
    return [{"slot": slot + 1, "from": round(start, 4), "to": round(end, 4), "state": state}]


def _bounded(occupancies: Sequence[Occupancy], span: float) -> list[Occupancy]:
    """Joins neighbours closer than a pixel and a half where there are too many to tell apart."""
    if len(occupancies) <= _MAX_MARKS:
        return list(occupancies)
    nearest = 1.5 * span / WIDTH
    joined: list[Occupancy] = []
    for o in sorted(occupancies, key=lambda o: (o.slot, o.start_s)):
        last = joined[-1] if joined else None
        if last and last.slot == o.slot and o.start_s - last.own_end_s < nearest:
            joined[-1] = last.model_copy(
                update={"own_end_s": o.own_end_s, "held_until_s": o.held_until_s}
            )
        else:
            joined.append(o)
    return joined
