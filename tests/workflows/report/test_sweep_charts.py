"""Names at the ends of lines stay apart and in place; the region ends where it was found to."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.record import Estimate
from slotwise_workflows.report.charts import lines as line_charts
from slotwise_workflows.report.charts import plane as plane_chart
from slotwise_workflows.report.charts.lines import Axis, Line
from slotwise_workflows.report.charts.plane import Edge

LABELS = {key: key for key in ("axis", "y", "capacity", "waiting", "here", "none")}


def estimate(value: float, half: float = 0.0) -> Estimate:
    return Estimate(estimate=value, low=value - half, high=value + half)


def marks(spec: dict, kind: str) -> list[dict]:  # type: ignore[type-arg]
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


@given(st.lists(st.floats(0, 250), min_size=1, max_size=9).map(sorted))
def test_names_do_not_touch_and_their_middle_stays(heights: list[float]) -> None:
    apart = line_charts._apart(heights)
    assert all(b - a >= 16 - 1e-6 for a, b in pairwise(apart))
    assert sum(apart) / len(apart) == pytest.approx(sum(heights) / len(heights), abs=1e-6)
    if all(b - a >= 16 for a, b in pairwise(heights)):
        assert apart == pytest.approx(heights)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_every_colour_of_a_picture_can_be_told_from_the_page(count: int) -> None:
    """A contrast of 3:1 against white, by the formula of WCAG 2."""
    for colour in (*line_charts._ramp(count), *line_charts._COLOURS):
        channels = [int(part, 16) / 255 for part in re.findall("[0-9a-f]{2}", colour)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert 1.05 / (light + 0.05) >= 3


def test_lines_differ_in_more_than_colour_and_overload_is_hollow() -> None:
    own = [
        Line("static", 0, ((0.5, estimate(2.0)), (1.0, estimate(9.0))), frozenset({1.0})),
        Line("continuous", 1, ((0.5, estimate(1.0)), (1.0, estimate(1.5)))),
    ]
    spec = line_charts.line_chart(own, Axis("x", log=True), Axis("y", log=True), here=(1.0, "here"))
    drawn = marks(spec, "line")[0]["encoding"]
    for channel in ("color", "strokeDash"):
        scale = drawn[channel]["scale"]
        assert scale["domain"] == ["static", "continuous"]
        assert scale["range"][0] != scale["range"][1]
    hollow, filled = marks(spec, "point")
    assert [(r["series"], r["x"]) for r in hollow["data"]["values"]] == [("static", 1.0)]
    assert len(filled["data"]["values"]) == 3


def test_one_wide_interval_does_not_flatten_the_lines() -> None:
    own = [Line("continuous", 1, ((4.0, estimate(2.0)), (8.0, estimate(3.0, 2.9))))]
    spec = line_charts.line_chart(own, Axis("x", log=True), Axis("y"), across=[(1.0, "no gain")])
    bottom, top = marks(spec, "line")[0]["encoding"]["y"]["scale"]["domain"]
    assert top <= 1.5 * 3.0 + 1
    band = marks(spec, "area")[0]["data"]["values"]
    assert all(bottom <= row["low"] <= row["high"] <= top for row in band)


def test_the_region_changes_its_kind_where_the_gain_crosses_the_threshold() -> None:
    edges = [
        Edge(0.0, estimate(0.8), estimate(1.6), 1.0),
        Edge(1.0, estimate(0.2), None, 2.0),
    ]
    spec = plane_chart.plane(edges, (1.0, 0.7), [], 1.2, LABELS, "plane")
    waiting, capacity = (layer["data"]["values"] for layer in marks(spec, "area"))
    # A fifth of the way from a gain of 1 to one of 2, on a logarithmic axis of load.
    assert waiting[-1]["cv"] == capacity[0]["cv"] == pytest.approx(0.2)
    assert waiting[-1]["load"] == pytest.approx(0.8 * (0.2 / 0.8) ** 0.2)
    # Where only waiting falls there is an end; where capacity is gained, the picture's own.
    assert [row["end"] for row in waiting] == [1.6, 1.6]
    right = marks(spec, "area")[0]["encoding"]["x"]["scale"]["domain"][1]
    assert [row["end"] for row in capacity] == [right, right]
    assert right > 1.6
    fills = [layer["mark"]["fill"] for layer in marks(spec, "area")]
    assert fills[0] == "url(#plane-hatch)"
    assert 'id="plane-hatch"' in plane_chart.hatch("plane")


def test_no_region_where_no_load_was_found() -> None:
    edges = [
        Edge(0.0, None, None, 1.0),
        Edge(0.5, estimate(0.4), None, 1.5),
        Edge(1.0, estimate(0.3), None, 2.0),
        Edge(2.0, None, None, 3.0),
    ]
    spec = plane_chart.plane(edges, (1.0, 0.7), [2.0], 1.2, LABELS, "plane")
    corners = [row["cv"] for layer in marks(spec, "area") for row in layer["data"]["values"]]
    assert corners == [0.5, 1.0]
    none = [
        row["cv"]
        for layer in marks(spec, "text")
        for row in layer["data"]["values"]
        if row["label"] == "none"
    ]
    assert none == [0.0, 2.0]


def test_a_gap_in_between_parts_the_region() -> None:
    found = [Edge(cv, estimate(0.4), None, 1.5) for cv in (0.0, 0.5, 1.5, 2.0)]
    spec = plane_chart.plane(
        [*found[:2], Edge(1.0, None, None, 1.5), *found[2:]], (1.0, 0.7), [], 1.2, LABELS, "plane"
    )
    regions = [[row["cv"] for row in layer["data"]["values"]] for layer in marks(spec, "area")]
    assert regions == [[0.0, 0.5], [1.5, 2.0]]


@pytest.mark.parametrize(("below", "above"), [(1.25, 1.4), (1.0, 1.15), (1.2, 1.2)])
def test_kinds_that_change_beside_the_threshold_still_meet(below: float, above: float) -> None:
    """Means over replications may lie on the other side of it than one of them."""
    edges = [Edge(0.0, estimate(0.8), estimate(1.6), below), Edge(1.0, estimate(0.2), None, above)]
    spec = plane_chart.plane(edges, (1.0, 0.7), [], 1.2, LABELS, "plane")
    waiting, capacity = (layer["data"]["values"] for layer in marks(spec, "area"))
    assert 0 <= waiting[-1]["cv"] == capacity[0]["cv"] <= 1


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=5),
    st.floats(1e-3, 1e3),
)
def test_everything_lies_within_the_plane(loads: list[float], other: float) -> None:
    edges = [
        Edge(0.5 * i, estimate(load), estimate(2 * load) if i % 2 else None, 2.0)
        for i, load in enumerate(loads)
    ]
    spec = plane_chart.plane(edges, (1.0, 0.7), [other], 1.2, LABELS, "plane")
    area = marks(spec, "area")[0]
    low, high = area["encoding"]["x"]["scale"]["domain"]
    assert low < high
    assert math.log2(high / low) <= 10
    assert all(low <= row["load"] <= high for row in area["data"]["values"])
    assert all(row["load"] <= row["end"] <= high for row in area["data"]["values"])
    assert high >= max(1.0, other, *loads)
