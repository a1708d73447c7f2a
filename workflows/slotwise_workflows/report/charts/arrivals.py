"""How requests arrive over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slotwise_workflows.report.charts.common import (
    BARS,
    WIDTH,
    Spec,
)
from slotwise_workflows.report.svg import INK


def arrivals_over_time(
    rates: Sequence[float],
    bin_width: float,
    busiest: tuple[float, float] | None,
    labels: Mapping[str, str],
) -> Spec:
    """Arrival rate in equal bins, the busiest window shaded.

    Args:
        rates: Requests per second.
        bin_width: In the unit of the axis.
        busiest: Start and end of the busiest window, in the unit of the axis.
        labels: axis, y, busiest.
    """
    bars = [
        {"from": i * bin_width, "to": (i + 1) * bin_width, "rate": r} for i, r in enumerate(rates)
    ]
    domain = [0, len(rates) * bin_width]
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": domain, "nice": False},
        "axis": {"title": labels["axis"], "tickCount": 8},
    }
    layers: list[Spec] = []
    if busiest is not None:
        low, high = max(0.0, busiest[0]), min(domain[1], busiest[1])
        data = {"values": [{"from": low, "to": high, "label": labels["busiest"]}]}
        layers += [
            {
                "data": data,
                "mark": {"type": "rect", "fill": "#f3e3d6"},
                "encoding": {"x": x, "x2": {"field": "to"}},
            },
            {
                "data": {"values": [{"from": (low + high) / 2, "label": labels["busiest"]}]},
                "mark": {
                    "type": "text",
                    "baseline": "bottom",
                    "dy": -4,
                    "fontSize": 12,
                    "color": INK,
                    "align": _align((low + high) / 2, domain[1]),
                },
                "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "label"}},
            },
        ]
    bars_layer = {
        "data": {"values": bars},
        "mark": {"type": "rect", "fill": BARS, "stroke": "#fff", "strokeWidth": 0.3},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y": {
                "field": "rate",
                "type": "quantitative",
                "axis": {"title": labels["y"], "tickCount": 5},
            },
            "y2": {"datum": 0},
        },
    }
    return {"width": WIDTH, "height": 150, "layer": [*layers, bars_layer]}


def _align(at: float, end: float) -> str:
    share = at / end if end else 0
    return "left" if share < 0.15 else "right" if share > 0.85 else "center"
