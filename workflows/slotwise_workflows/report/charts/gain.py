"""The gain in capacity against the slots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.charts.common import (
    BATCH,
    CONTINUOUS,
    WIDTH,
    Spec,
    reference,
    round_range,
)
from slotwise_workflows.report.svg import MUTED


def gain_by_slots(
    bound: Mapping[int, Estimate],
    in_order: Mapping[int, float],
    here: int,
    labels: Mapping[str, str],
) -> Spec:
    """The capacity gain against the number of slots, this client's slots marked.

    Args:
        bound: Regrouped at random, by slots.
        in_order: In order of arrival, by slots.
        here: This client's slots.
        labels: axis, y, bound, order, here, even.
    """
    line = [
        {"slots": s, "value": e.estimate, "series": labels["bound"]}
        for s, e in sorted(bound.items())
    ]
    dots = [
        {"slots": s, "value": v, "series": labels["order"]} for s, v in sorted(in_order.items())
    ]
    every = sorted({*bound, *in_order, here})
    # Capped, so that one wide interval does not flatten the rest; the band is clipped there.
    largest = max([1.0, *(e.estimate for e in bound.values()), *in_order.values()])
    bottom, top = round_range(min([1.0, *in_order.values()]), max(1.2, 1.3 * largest))
    x = {
        "field": "slots",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [every[0], every[-1]], "nice": False},
        "axis": {
            "title": labels["axis"],
            # Powers of two: a server's own number stands beside its line, not among them.
            "values": [slots for slots in every if slots & (slots - 1) == 0],
            "format": "d",
            "offset": 8,
        },
    }
    y_scale = {"domain": [bottom, top], "nice": False}
    y = {
        "type": "quantitative",
        "scale": y_scale,
        "axis": {"title": labels["y"], "grid": True, "tickCount": 6},
    }
    domain = [labels["bound"]] + ([labels["order"]] if dots else [])
    series = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": domain, "range": [BATCH, CONTINUOUS][: len(domain)]},
        "legend": {},
    }
    shape = {**series, "scale": {"domain": domain, "range": ["circle", "diamond"][: len(domain)]}}
    return {
        "width": WIDTH,
        "height": 210,
        "layer": [
            {
                "data": {"values": _band(bound, bottom, top)},
                "mark": {"type": "area", "color": BATCH, "opacity": 0.16},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": line},
                "mark": {"type": "line", "color": BATCH, "strokeWidth": 1.6},
                "encoding": {"x": x, "y": {**y, "field": "value"}},
            },
            {
                "data": {"values": line + dots},
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "value"},
                    "color": series,
                    "shape": shape,
                },
            },
            *reference(x, here, labels["here"], right=here > every[-1] / 3),
            {
                "data": {"values": [{"y": 1}]},
                "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1},
                "encoding": {"y": {**y, "field": "y"}},
            },
            {
                "data": {"values": [{"y": 1, "label": labels["even"]}]},
                "mark": {
                    "type": "text",
                    "align": "right",
                    "baseline": "bottom",
                    "dy": -3,
                    "fontSize": 11,
                    "color": MUTED,
                },
                "encoding": {
                    "x": {"value": WIDTH},
                    "y": {**y, "field": "y"},
                    "text": {"field": "label"},
                },
            },
        ],
    }


def _band(bound: Mapping[int, Estimate], bottom: float, top: float) -> list[Spec]:
    """The intervals, cut off exactly where they leave the picture; slots are logarithmic."""
    corners = [(math.log2(s), e.low, e.high) for s, e in sorted(bound.items())]
    cuts = list(corners)
    for (x0, low0, high0), (x1, low1, high1) in pairwise(corners):
        for a, b in ((low0, low1), (high0, high1)):
            for edge in (bottom, top):
                if min(a, b) < edge < max(a, b):
                    t = (edge - a) / (b - a)
                    low, high = low0 + t * (low1 - low0), high0 + t * (high1 - high0)
                    cuts.append((x0 + t * (x1 - x0), low, high))
    return [
        {"slots": 2**x, "low": max(bottom, min(top, low)), "high": max(bottom, min(top, high))}
        for x, low, high in sorted(cuts)
    ]
