"""Lines over what a sweep varies, as Vega-Lite specifications.

Lines are named at their ends and differ in colour, dash and mark, so that nothing is told by colour
alone. Names that stand in a picture come clean from the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.charts.common import (
    BATCH,
    CONTINUOUS,
    Spec,
    reference,
    round_range,
    round_ticks,
)
from slotwise_workflows.report.svg import MUTED

HEIGHT = 250
WIDTH_OF_LINES = 490  # the rest of the page's width is for the names at their ends

_COLOURS = (BATCH, CONTINUOUS, "#6b4f9e", "#55626f", "#86670a", "#a02c6d")
_LIGHT, _DARK = (0x5B, 0x94, 0xA6), (0x07, 0x2E, 0x38)
_DASHES = ([5, 3], [1, 0], [9, 3, 2, 3], [2, 2], [12, 4], [6, 2, 2, 2, 2, 2])
_SHAPES = ("square", "circle", "diamond", "triangle-up", "cross", "triangle-down")
_NAME_HEIGHT = 16
_MOST_TICKS = 9
_ROOM_FOR_WIDER_FONTS = 30  # than the one that the names were measured in


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        name: What stands at its end.
        look: Which colour, dash and mark it has.
        points: x and estimate, ascending.
        strained: The x at which the server is overloaded; their marks are hollow.
    """

    name: str
    look: int
    points: tuple[tuple[float, Estimate], ...]
    strained: frozenset[float] = frozenset()


@dataclass(frozen=True, slots=True)
class Axis:
    """How an axis is divided.

    Attributes:
        title: What it shows, with its unit.
        log: Whether its steps are factors.
        at: Where its ticks are; None chooses round numbers.
    """

    title: str
    log: bool = False
    at: tuple[float, ...] | None = None


def line_chart(
    own: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    ranked: bool = False,
    across: Sequence[tuple[float, str]] = (),
    here: tuple[float, str] | None = None,
) -> Spec:
    """Lines with a band for the interval of each, named at their ends.

    Args:
        own: At least one, each of at least one point; values > 0 where `y` is logarithmic.
        x: The axis across.
        y: The axis up.
        ranked: The looks are steps of one quantity, least first: from light to dark.
        across: Values of y at which a line goes across, each with its name.
        here: Value of x at which a line goes up, with its name.
    """
    across_x = _x_scale(own, x, here)
    up = _y_scale(own, y, across)
    names = [line.name for line in own]
    rows: list[Spec] = [
        {
            "x": at,
            "value": value.estimate,
            "low": up.within(value.low),
            "high": up.within(value.high),
            "series": line.name,
            "strained": at in line.strained,
        }
        for line in own
        for at, value in line.points
    ]

    def series(values: Sequence[object]) -> Spec:
        chosen = [values[line.look % len(values)] for line in own]
        scale = {"domain": names, "range": chosen}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": None}

    colours = _ramp(1 + max(line.look for line in own)) if ranked else _COLOURS
    colour, dash, shape = series(colours), series(_DASHES), series(_SHAPES)
    ex, ey = {**across_x.spec, "field": "x"}, {**up.spec, "field": "value"}
    band = {"x": ex, "y": {**ey, "field": "low"}, "y2": {"field": "high"}, "fill": colour}
    point = {"type": "point", "size": 55, "opacity": 1, "strokeWidth": 1.8}
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "area", "opacity": 0.13},
            "encoding": band,
        },
        *_across(across, ey),
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.7},
            "encoding": {"x": ex, "y": ey, "color": colour, "strokeDash": dash},
        },
        {
            "data": {"values": [row for row in rows if row["strained"]]},
            "mark": {**point, "fill": "#fff"},
            "encoding": {"x": ex, "y": ey, "stroke": colour, "shape": shape},
        },
        {
            "data": {"values": [row for row in rows if not row["strained"]]},
            "mark": {**point, "filled": True},
            "encoding": {"x": ex, "y": ey, "color": colour, "shape": shape},
        },
        *_names_at_ends(own, across, across_x, up, colour),
    ]
    if here is not None:
        layers += reference(ex, here[0], here[1], right=across_x.share(here[0]) > 0.6)
    return {
        "width": WIDTH_OF_LINES,
        "height": HEIGHT,
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": _ROOM_FOR_WIDER_FONTS},
        "layer": layers,
    }


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with its ends."""

    spec: Spec
    low: float
    high: float
    log: bool

    def within(self, value: float) -> float:
        """The value, or the end of the axis that it is beyond."""
        return max(self.low, min(self.high, value))

    def share(self, value: float) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        low, high, at = self.low, self.high, self.within(value)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low) if high > low else 0.5


def _x_scale(own: Sequence[Line], axis: Axis, here: tuple[float, str] | None) -> Scale:
    every = sorted({at for line in own for at, _ in line.points})
    marked = every if here is None else sorted({*every, here[0]})
    low, high = marked[0], marked[-1]
    shown = axis.at if axis.at is not None else tuple(every)
    return scale_of(axis, low, high, [at for at in shown if low <= at <= high], across=True)


def _y_scale(own: Sequence[Line], axis: Axis, across: Sequence[tuple[float, str]]) -> Scale:
    """Round ends; a single wide interval does not flatten the rest, its band is cut off."""
    values = [value for line in own for _, value in line.points]
    largest = max(value.estimate for value in values)
    marked = [at for at, _ in across]
    high = max([min(1.5 * largest, max(value.high for value in values)), *marked])
    least = [value.low for value in values]
    if axis.log:
        chosen = round_ticks([min(value.estimate for value in values), high])
        return scale_of(axis, chosen[0], chosen[-1], chosen)
    low = min([*least, *marked]) if marked else 0.0
    low, high = round_range(low, high if high > low else low + 1)
    return scale_of(axis, low, high, None)


def scale_of(
    axis: Axis, low: float, high: float, at: Sequence[float] | None, *, across: bool = False
) -> Scale:
    """An axis between two ends.

    Args:
        axis: How it is divided.
        low: Its lower end; > 0 where it is logarithmic.
        high: Its upper end.
        at: Where its ticks are, thinned out where they are many; None chooses round numbers.
        across: Whether it is the one across; the one up has a grid.
    """
    drawn: Spec = {"title": axis.title, "grid": not across, "offset": 8}
    if at is None:
        drawn["tickCount"] = 6
    else:
        drawn |= {"values": list(at)[:: -(-len(at) // _MOST_TICKS)], "format": ".3~r"}
    kind: Spec = {"type": "log", "base": 2 if across else 10} if axis.log else {"type": "linear"}
    scale = {**kind, "domain": [low, high], "nice": False, "zero": False}
    return Scale({"type": "quantitative", "scale": scale, "axis": drawn}, low, high, axis.log)


def _ramp(count: int) -> list[str]:
    """From light to dark, each of 3:1 at least against the page."""
    steps = [i / (count - 1) if count > 1 else 1.0 for i in range(count)]
    return [
        "#" + "".join(f"{round(a + t * (b - a)):02x}" for a, b in zip(_LIGHT, _DARK, strict=True))
        for t in steps
    ]


def _names_at_ends(
    own: Sequence[Line], across: Sequence[tuple[float, str]], x: Scale, y: Scale, colour: Spec
) -> list[Spec]:
    """Each name beside its line's last point, moved apart where they would touch."""
    ends = [
        (
            HEIGHT * (1 - y.share(line.points[-1][1].estimate)),
            x.share(line.points[-1][0]),
            line.name,
        )
        for line in own
    ]
    crossing = [(HEIGHT * (1 - y.share(at)), 1.0, label) for at, label in across]
    both = sorted(ends + crossing)
    rows = [
        {"x": WIDTH_OF_LINES * right + 9, "y": height, "series": name}
        for height, (_, right, name) in zip(_apart([end[0] for end in both]), both, strict=True)
    ]
    told = {label for _, _, label in crossing}
    at_end: Spec = {
        "x": {"field": "x", "type": "quantitative", "scale": None},
        "y": {"field": "y", "type": "quantitative", "scale": None},
        "text": {"field": "series"},
    }
    text = {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12}
    return [
        {
            "data": {"values": [row for row in rows if row["series"] not in told]},
            "mark": {**text, "fontWeight": "bold"},
            "encoding": {**at_end, "color": colour},
        },
        {
            "data": {"values": [row for row in rows if row["series"] in told]},
            "mark": {**text, "color": MUTED},
            "encoding": at_end,
        },
    ]


def _apart(heights: Sequence[float]) -> list[float]:
    """Ascending heights with room for a name between each two, as near to their own as that lets.

    Names that would touch are moved together, so that the middle of them stays where it was.
    """
    groups: list[tuple[float, int]] = []  # first height, how many
    for height in heights:
        groups.append((height, 1))
        while len(groups) > 1:
            (first, n), (second, m) = groups[-2:]
            if second - first >= n * _NAME_HEIGHT:
                break
            shift = second - n * _NAME_HEIGHT  # where the group would begin were only these asked
            groups[-2:] = [((n * first + m * shift) / (n + m), n + m)]
    return [first + i * _NAME_HEIGHT for first, n in groups for i in range(n)]


def _across(marks: Sequence[tuple[float, str]], y: Spec) -> list[Spec]:
    rule = {"type": "rule", "color": MUTED, "strokeWidth": 1}
    data = {"values": [{"value": at} for at, _ in marks]}
    return [{"data": data, "mark": rule, "encoding": {"y": y}}] if marks else []
