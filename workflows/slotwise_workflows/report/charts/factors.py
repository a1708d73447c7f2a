"""A gain as the product of its factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slotwise_workflows.report.charts.common import (
    BARS,
    BATCH,
    CONTINUOUS,
    WIDTH,
    Spec,
    round_ticks,
)
from slotwise_workflows.report.svg import INK


def product(
    steps: Sequence[tuple[str, float]], total: tuple[str, float], labels: Mapping[str, str]
) -> Spec:
    """Factors as a staircase on a logarithmic axis: each bar begins where the last one ended.

    Args:
        steps: What stands above each bar and its factor, in the order of multiplication.
        total: The same of the product.
        labels: axis.
    """
    rows: list[Spec] = []
    reached = 1.0
    for text, factor in steps:
        kind = "gain" if factor >= 1 else "loss"
        rows.append({"text": text, "from": reached, "to": reached * factor, "kind": kind})
        reached *= factor
    rows.append({"text": total[0], "from": 1.0, "to": total[1], "kind": "total"})
    rows = [{"row": i, **row} for i, row in enumerate(rows)]
    ends = [1.0, *(row["to"] for row in rows)]
    ticks = round_ticks([min(ends), 1.02 * max(ends)])
    x: Spec = {
        "field": "from",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": {"title": labels["axis"], "values": ticks, "format": "~g", "grid": True},
    }
    y: Spec = {"field": "row", "type": "ordinal", "axis": None}
    band = {**y, "scale": {"paddingInner": 0.5, "paddingOuter": 0.3}}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": ["gain", "loss", "total"], "range": [CONTINUOUS, BATCH, BARS]},
        "legend": None,
    }
    return {
        "width": WIDTH,
        "height": 46 * len(rows),
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {"x": x, "x2": {"field": "to"}, "y": band, "fill": colour},
            },
            {
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "bottom",
                    "dy": -13,
                    "fontSize": 12,
                    "color": INK,
                },
                "encoding": {"x": {"value": 0}, "y": band, "text": {"field": "text"}},
            },
        ],
    }
