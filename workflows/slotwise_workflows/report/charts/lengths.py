"""The distribution of output lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slotwise_workflows.report.charts.common import (
    BARS,
    WIDTH,
    Spec,
)
from slotwise_workflows.report.svg import INK
from slotwise_workflows.result import Histogram


def lengths(
    histogram: Histogram, marks: Sequence[tuple[float, str]], labels: Mapping[str, str]
) -> Spec:
    """Output lengths with their mean, p95 and maximum marked.

    Args:
        histogram: Equal bins.
        marks: Length and label of each mark, ascending.
        labels: axis, count.
    """
    start, width = histogram.start, histogram.width
    end = max(start + width * len(histogram.counts), *(x for x, _ in marks))
    low = min(start, 0.0)
    # A bar narrower than that would not be seen, least of all a single one behind its mark.
    drawn = max(width, (0.006 if len(histogram.counts) > 1 else 0.03) * (end - low))
    bars = [
        {"from": start + i * width, "to": start + i * width + drawn, "n": n}
        for i, n in enumerate(histogram.counts)
        if n
    ]
    most = max(histogram.counts)
    lines = [
        {"x": x, "label": label, "y": 7 + 16 * row, "right": x > low + 0.7 * (end - low)}
        for row, (x, label) in enumerate(marks)
    ]
    x = {"type": "quantitative", "scale": {"domain": [low, max(end, start + drawn)], "nice": False}}
    layers: list[Spec] = [
        {
            "data": {"values": bars},
            "mark": {"type": "rect", "fill": BARS, "stroke": "#fff", "strokeWidth": 0.6},
            "encoding": {
                "x": {**x, "field": "from", "axis": {"title": labels["axis"], "tickCount": 8}},
                "x2": {"field": "to"},
                "y": {
                    "field": "n",
                    "type": "quantitative",
                    "axis": {
                        "title": labels["count"],
                        "tickCount": 5,
                        **({"values": list(range(most + 1))} if most < 5 else {}),
                        "format": ",d",
                    },
                },
                "y2": {"datum": 0},
            },
        },
        {
            "data": {"values": lines},
            "mark": {"type": "rule", "color": INK, "strokeDash": [4, 3], "strokeWidth": 1.3},
            "encoding": {"x": {**x, "field": "x"}},
        },
    ]
    for right in (False, True):
        layers += _haloed_text(lines, x, right=right)
    return {"width": WIDTH, "height": 200, "layer": layers}


def _haloed_text(lines: Sequence[Spec], x: Spec, *, right: bool) -> list[Spec]:
    """Text on a white halo, so that it reads on top of bars."""
    chosen = [line for line in lines if line["right"] == right]
    if not chosen:
        return []
    encoding = {
        "x": {**x, "field": "x"},
        "y": {"field": "y", "type": "quantitative", "scale": None, "axis": None},
        "text": {"field": "label"},
    }
    text = {
        "type": "text",
        "align": "right" if right else "left",
        "dx": -5 if right else 5,
        "fontSize": 12,
    }
    return [
        {
            "data": {"values": chosen},
            "mark": {**text, "stroke": "#fff", "strokeWidth": 4, "color": "#fff"},
            "encoding": encoding,
        },
        {
            "data": {"values": chosen},
            "mark": {**text, "color": INK, "fontWeight": "bold"},
            "encoding": encoding,
        },
    ]
