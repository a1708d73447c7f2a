"""Mean latency against load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slotwise_workflows.report.charts.common import (
    BATCH,
    CONTINUOUS,
    WIDTH,
    Spec,
    reference,
    round_ticks,
)


def latency_by_load(
    points: Sequence[tuple[float, str, float, bool]], labels: Mapping[str, str]
) -> Spec:
    """Mean latency against load, both logarithmic.

    Args:
        points: Load, series, seconds, whether overloaded; the batch-at-once series first.
        labels: axis, y, here.
    """
    rows: list[Spec] = [
        {"load": load, "series": series, "value": value, "over": over}
        for load, series, value, over in points
        if value > 0
    ]
    domain = list(dict.fromkeys(series for _, series, _, _ in points))
    loads = sorted({load for load, *_ in points})
    ticks = round_ticks([row["value"] for row in rows])
    x = {
        "field": "load",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [loads[0], loads[-1]], "nice": False},
        "axis": {"title": labels["axis"], "values": loads, "format": "~g", "offset": 8},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": {"title": labels["y"], "grid": True, "values": ticks, "format": "~g"},
    }

    def series(values: Sequence[Any]) -> Spec:
        return {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": domain, "range": list(values)[: len(domain)]},
            "legend": {},
        }

    colour = series([BATCH, CONTINUOUS])
    quiet = {**colour, "legend": None}
    shape = {**series(["square", "circle"]), "legend": None}
    point = {"type": "point", "size": 80, "opacity": 1, "strokeWidth": 2}
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "strokeDash": series([[5, 3], [1, 0]]),
            },
        },
        {
            "data": {"values": [r for r in rows if r["over"]]},
            "mark": {**point, "fill": "#fff"},
            "encoding": {"x": x, "y": y, "stroke": quiet, "shape": shape},
        },
        {
            "data": {"values": [r for r in rows if not r["over"]]},
            "mark": {**point, "filled": True},
            "encoding": {"x": x, "y": y, "color": quiet, "shape": shape},
        },
    ]
    if loads[0] <= 1 <= loads[-1]:
        layers += reference(x, 1, labels["here"], right=loads[-1] <= 1)
    return {"width": WIDTH, "height": 210, "layer": layers}
