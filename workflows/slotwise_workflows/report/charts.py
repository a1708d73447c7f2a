"""The report's pictures as Vega-Lite specifications: plain data in, plain dictionaries out.

No string out of a log enters a picture. Series differ in colour and in shape or dash; marks keep a
contrast of 3:1 against the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.svg import INK, MUTED
from slotwise_workflows.result import Histogram

Spec = dict[str, Any]

WIDTH = 580
BATCH = "#a8480f"
CONTINUOUS = "#0b6b7d"
BARS = "#5f8aa3"


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


def round_range(low: float, high: float) -> tuple[float, float]:
    """The range of gains widened to whole steps of 1, 2 or 5, about six of them."""
    step = next(tick for tick in round_ticks([(high - low) / 6] * 2) if tick >= (high - low) / 6)
    bottom = low if low >= 1 else math.floor(low / step) * step  # never from 1 down to 0
    return bottom, math.ceil(high / step) * step


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


def reference(x: Spec, at: float, label: str, *, right: bool = False) -> list[Spec]:
    """A vertical line with its label at the top."""
    data = {"values": [{x["field"]: at, "label": label}]}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": INK, "strokeDash": [4, 3], "strokeWidth": 1.3},
            "encoding": {"x": x},
        },
        {
            "data": data,
            "mark": {
                "type": "text",
                "align": "right" if right else "left",
                "dx": -5 if right else 5,
                "baseline": "top",
                "fontSize": 12,
                "fontWeight": "bold",
                "color": INK,
            },
            "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "label"}},
        },
    ]


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


def round_ticks(values: Sequence[float]) -> list[float]:
    """1, 2, 5 in every decade, from the last at or below the least value to the first above all."""
    low, high = min(values), max(values)
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 2)
    every = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]
    first = max(i for i, tick in enumerate(every) if tick <= low)
    last = min(i for i, tick in enumerate(every) if tick >= high)
    return every[first : max(last, first + 1) + 1]


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
