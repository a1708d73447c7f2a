"""The region in which a change is worth it, as a Vega-Lite specification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.charts.common import BATCH, CONTINUOUS, WIDTH, Spec
from slotwise_workflows.report.charts.lines import Axis, Scale, scale_of
from slotwise_workflows.report.svg import INK, MUTED

_MOST_DOUBLINGS = 10  # of the load, across the picture
_NAME_SHARE = 0.13  # of the width: half a name


@dataclass(frozen=True, slots=True)
class Edge:
    """From which load to which a change is worth it, at one variation of the lengths.

    Attributes:
        cv: Coefficient of variation of the lengths.
        load: Times today's; None where there is no such load.
        until: Likewise; None where there is no such end, since capacity is gained as well.
        gain: In capacity; where it crosses the threshold, the two kinds of worth meet.
    """

    cv: float
    load: Estimate | None
    until: Estimate | None
    gain: float

    @property
    def capacity(self) -> bool:
        """Whether capacity is gained, and not waiting alone shortened."""
        return self.load is not None and self.until is None


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
    begins to be gained between them, the gain is taken to grow evenly. A region of waiting alone
    ends at the right as well; to where capacity begins, its end stays where it was found last.

    Args:
        edges: Ascending in variation, at least one of them with a load.
        here: Load and variation of the traffic itself.
        loads: Other loads that must lie within the picture, > 0.
        gain_adopt: The gain from which capacity counts.
        labels: axis, y, capacity, waiting, here, none.
        name: Of the picture; `hatch` of it must stand among its definitions.
    """
    ends = [(e.cv, own) for e in edges for own in (e.load, e.until) if own is not None]
    found = [value for _, own in ends for value in (own.low, own.high)]
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
        data = {"values": [{"load": own.load, "cv": own.cv, "end": own.end} for own in corners]}
        edge = {"type": "line", "color": CONTINUOUS, "strokeWidth": 2.2}
        edge["strokeDash"] = [1, 0] if capacity else [6, 3]
        layers.append({"data": data, "mark": {**area, **fill}, "encoding": worth})
        for field in ("load",) if capacity else ("load", "end"):
            along = {"x": {**ex, "field": field}, "y": ey, "order": {"field": "cv"}}
            layers.append({"data": data, "mark": edge, "encoding": along})
    layers += [*_intervals(ends, x, ex, ey), *_none(edges, ey, labels["none"])]
    layers += _region_names(regions, here[1], labels, x, ey)
    layers += _today(here, labels["here"], x, ex, ey)
    return {"width": WIDTH, "height": 270, "layer": layers}


class _Corner(NamedTuple):
    load: float
    cv: float
    end: float


_Region = tuple[bool, list[_Corner]]


def _regions(edges: Sequence[Edge], x: Scale, gain_adopt: float) -> list[_Region]:
    """Runs of neighbouring edges of one kind: their corners."""
    regions: list[_Region] = []
    before: Edge | None = None
    for edge in edges:
        if edge.load is None:
            before = None
            continue
        end = x.high if edge.until is None else x.within(edge.until.estimate)
        corner = _Corner(x.within(edge.load.estimate), edge.cv, end)
        if before is None:
            regions.append((edge.capacity, [corner]))
        elif before.capacity == edge.capacity:
            regions[-1][1].append(corner)
        else:
            last = regions[-1][1][-1]
            crossing = _crossing(before, edge, last, corner, gain_adopt)
            regions[-1][1].append(crossing._replace(end=last.end))
            regions.append((edge.capacity, [crossing._replace(end=corner.end), corner]))
        before = edge
    return regions


def _crossing(before: Edge, edge: Edge, a: _Corner, b: _Corner, gain_adopt: float) -> _Corner:
    """Where the gain crosses the threshold; means over replications may do so a little beyond."""
    rise = edge.gain - before.gain
    t = min(max((gain_adopt - before.gain) / rise, 0.0), 1.0) if rise else 0.5
    return _Corner(a.load * (b.load / a.load) ** t, a.cv + t * (b.cv - a.cv), a.end)


def _intervals(ends: Sequence[tuple[float, Estimate]], x: Scale, ex: Spec, ey: Spec) -> list[Spec]:
    rows = [
        {
            "low": x.within(own.low),
            "high": x.within(own.high),
            "load": x.within(own.estimate),
            "cv": cv,
        }
        for cv, own in ends
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
    regions: Sequence[_Region], here: float, labels: Mapping[str, str], x: Scale, ey: Spec
) -> list[Spec]:
    """What is gained, written into each region, away from the traffic's own name.

    Without an end it stands at the right, else in the middle.
    """
    texts: list[Spec] = []
    for capacity, corners in regions:
        low, high = corners[0].cv, corners[-1].cv
        if high == low:
            continue
        inside = (low + share * (high - low) for share in (0.5, 0.25, 0.8))
        cv = max(inside, key=lambda at: min(abs(at - here), 0.2 * (high - low)))
        rows = [{"cv": cv, "label": labels["capacity" if capacity else "waiting"]}]
        place = WIDTH - 10.0
        if not capacity:
            nearest = min(corners, key=lambda own: abs(own.cv - cv))
            middle = (x.share(nearest.load) + x.share(nearest.end)) / 2
            place = WIDTH * min(max(middle, _NAME_SHARE), 1 - _NAME_SHARE)
        align = "right" if capacity else "center"
        texts += _on_halo(rows, {"x": {"value": place}, "y": ey}, align=align)
    return texts


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
