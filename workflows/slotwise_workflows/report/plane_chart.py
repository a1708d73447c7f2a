"""The region in which a change is worth it, as a Vega-Lite specification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.charts import BATCH, CONTINUOUS, WIDTH, Spec
from slotwise_workflows.report.svg import INK, MUTED
from slotwise_workflows.report.sweep_charts import Axis, Scale, scale_of

_MOST_DOUBLINGS = 10  # of the load, across the picture


@dataclass(frozen=True, slots=True)
class Edge:
    """From which load a change is worth it, at one variation of the lengths.

    Attributes:
        cv: Coefficient of variation of the lengths.
        load: Times today's; None where there is no such load.
        capacity: Whether capacity is gained as well, and not waiting alone.
        gain: In capacity; where it crosses the threshold, the two kinds of worth meet.
    """

    cv: float
    load: Estimate | None
    capacity: bool
    gain: float


def hatch(name: str) -> str:
    """The pattern of the region in which only waiting falls, of the picture of that name."""
    return (
        f'<pattern id="{name}-hatch" patternUnits="userSpaceOnUse" width="7" height="7" '
        'patternTransform="rotate(45)"><rect width="7" height="7" fill="#eef4f6"/>'
        '<rect width="1.6" height="7" fill="#7fb0bb"/></pattern>'
    )


def plane(
    edges: Sequence[Edge],
    here: tuple[float, float],
    loads: Sequence[float],
    gain_adopt: float,
    labels: Mapping[str, str],
    name: str,
) -> Spec:
    """Load across, variation up: the region in which a change is worth it, and today's traffic.

    Between two variations that were searched the edge is straight on these axes; where capacity
    begins to be gained between them, it is taken to grow evenly.

    Args:
        edges: Ascending in variation, at least one of them with a load.
        here: Load and variation of the traffic itself.
        loads: Other loads that must lie within the picture, > 0.
        gain_adopt: The gain from which capacity counts.
        labels: axis, y, capacity, waiting, here, none.
        name: Of the picture; `hatch` of it must stand among its definitions.
    """
    found = [value for e in edges if e.load for value in (e.load.low, e.load.high)]
    inside = [here[0], *loads, *(value for value in found if value > 0)]
    # A change that is worth it at any load has its edge at the left end.
    last = math.ceil(math.log2(1.05 * max(inside)))
    first = max(math.floor(math.log2(min(inside))), last - _MOST_DOUBLINGS)
    powers = [2.0**k for k in range(first, last + 1)]
    x = scale_of(Axis(labels["axis"], log=True), powers[0], powers[-1], powers, across=True)
    top = 1.08 * max([here[1], *(e.cv for e in edges)]) or 1.0
    y = scale_of(Axis(labels["y"]), 0.0, top, None)
    y.spec["axis"]["grid"] = False
    regions = _regions(edges, x, gain_adopt)
    ex, ey = {**x.spec, "field": "load"}, {**y.spec, "field": "cv"}
    area = {"type": "area", "orient": "horizontal"}
    worth = {"x": ex, "x2": {"field": "end"}, "y": ey}
    layers: list[Spec] = []
    for capacity, corners in regions:
        fill = {"fill": "#bfdde3"} if capacity else {"fill": f"url(#{name}-hatch)"}
        data = {"values": [{"load": load, "cv": cv, "end": powers[-1]} for load, cv in corners]}
        layers += [
            {"data": data, "mark": {**area, **fill}, "encoding": worth},
            {
                "data": data,
                "mark": {
                    "type": "line",
                    "color": CONTINUOUS,
                    "strokeWidth": 2.2,
                    "strokeDash": [1, 0] if capacity else [6, 3],
                },
                "encoding": {"x": ex, "y": ey, "order": {"field": "cv"}},
            },
        ]
    layers += [*_intervals(edges, x, ex, ey), *_none(edges, ey, labels["none"])]
    layers += _region_names(regions, here[1], labels, ey)
    layers += _today(here, labels["here"], x, ex, ey)
    return {"width": WIDTH, "height": 270, "layer": layers}


_Region = tuple[bool, list[tuple[float, float]]]


def _regions(edges: Sequence[Edge], x: Scale, gain_adopt: float) -> list[_Region]:
    """Runs of neighbouring edges of one kind: load and variation of their corners."""
    regions: list[_Region] = []
    before: Edge | None = None
    for edge in edges:
        if edge.load is None:
            before = None
            continue
        corner = (x.within(edge.load.estimate), edge.cv)
        if before is None or before.load is None:
            regions.append((edge.capacity, [corner]))
        elif before.capacity == edge.capacity:
            regions[-1][1].append(corner)
        else:
            a = regions[-1][1][-1]
            t = (gain_adopt - before.gain) / (edge.gain - before.gain)
            crossing = (a[0] * (corner[0] / a[0]) ** t, a[1] + t * (corner[1] - a[1]))
            regions[-1][1].append(crossing)
            regions.append((edge.capacity, [crossing, corner]))
        before = edge
    return regions


def _intervals(edges: Sequence[Edge], x: Scale, ex: Spec, ey: Spec) -> list[Spec]:
    rows = [
        {
            "low": x.within(e.load.low),
            "high": x.within(e.load.high),
            "load": x.within(e.load.estimate),
            "cv": e.cv,
        }
        for e in edges
        if e.load
    ]
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1},
            "encoding": {"x": {**ex, "field": "low"}, "x2": {"field": "high"}, "y": ey},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 26, "color": INK, "opacity": 1},
            "encoding": {"x": ex, "y": ey},
        },
    ]


def _none(edges: Sequence[Edge], ey: Spec, label: str) -> list[Spec]:
    """The variations at which no load was found, named at the left."""
    rows = [{"cv": e.cv, "label": label} for e in edges if e.load is None]
    text = {"type": "text", "align": "left", "baseline": "bottom", "dx": 6, "dy": -3}
    return (
        [
            {
                "data": {"values": rows},
                "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1, "strokeDash": [2, 3]},
                "encoding": {"y": ey},
            },
            {
                "data": {"values": rows},
                "mark": {**text, "fontSize": 11, "color": MUTED},
                "encoding": {"x": {"value": 0}, "y": ey, "text": {"field": "label"}},
            },
        ]
        if rows
        else []
    )


def _region_names(
    regions: Sequence[_Region], here: float, labels: Mapping[str, str], ey: Spec
) -> list[Spec]:
    """What is gained, written into each region at its right, away from the traffic's own name."""
    rows = []
    for capacity, corners in regions:
        low, high = corners[0][1], corners[-1][1]
        if high > low:
            inside = (low + share * (high - low) for share in (0.5, 0.25, 0.8))
            cv = max(inside, key=lambda at: min(abs(at - here), 0.2 * (high - low)))
            rows.append({"cv": cv, "label": labels["capacity" if capacity else "waiting"]})
    return _on_halo(rows, {"x": {"value": WIDTH - 10}, "y": ey}, align="right") if rows else []


def _today(here: tuple[float, float], label: str, x: Scale, ex: Spec, ey: Spec) -> list[Spec]:
    right = x.share(here[0]) > 0.6
    rows = [{"load": here[0], "cv": here[1], "label": label}]
    encoding = {"x": ex, "y": ey}
    return [
        {
            "data": {"values": rows},
            "mark": {
                "type": "point",
                "shape": "diamond",
                "size": 190,
                "fill": BATCH,
                "stroke": "#fff",
                "strokeWidth": 1.5,
                "opacity": 1,
            },
            "encoding": encoding,
        },
        *_on_halo(rows, encoding, align="right" if right else "left", dx=-12 if right else 12),
    ]


def _on_halo(rows: Sequence[Spec], encoding: Spec, *, align: str, dx: int = 0) -> list[Spec]:
    """Text that reads on top of anything."""
    text = {"type": "text", "align": align, "dx": dx, "fontSize": 12, "fontWeight": "bold"}
    halo = {"stroke": "#fff", "strokeWidth": 5, "color": "#fff", "strokeJoin": "round"}
    told = {**encoding, "text": {"field": "label"}}
    return [
        {"data": {"values": list(rows)}, "mark": {**text, **mark}, "encoding": told}
        for mark in (halo, {"color": INK})
    ]
