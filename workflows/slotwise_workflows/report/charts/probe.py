"""The requests of a probe over time, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slotwise_workflows.report.charts.common import BATCH, CONTINUOUS, WIDTH, Spec
from slotwise_workflows.report.svg import INK
from slotwise_workflows.result import TimelineRow

_ROW = 22

HATCH = (
    '<pattern id="waiting" patternUnits="userSpaceOnUse" width="6" height="6" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fcefe4"/>'
    f'<rect width="2" height="6" fill="{BATCH}"/></pattern>'
)


def requests_over_time(
    requests: Sequence[TimelineRow], names: Sequence[str], labels: Mapping[str, str]
) -> Spec:
    """A row a request: hatched until its first token, filled to its last.

    A line marks the end of the first request: whoever begins before it has joined a running batch.
    Needs `HATCH` among the picture's definitions.

    Args:
        requests: In the order they were sent, at least one.
        names: What each is called.
        labels: waiting, answering, axis, end.
    """
    spans = [
        {"name": name, "from": begin, "to": end, "state": labels[state]}
        for own, name in zip(requests, names, strict=True)
        for state, begin, end in (
            ("waiting", own.sent_s, own.first_token_s),
            ("answering", own.first_token_s, own.last_token_s),
        )
        if end > begin
    ]
    last = max(own.last_token_s for own in requests)
    x = {"type": "quantitative", "scale": {"domain": [0, last], "nice": False}}
    y = {"field": "name", "type": "ordinal", "sort": list(names), "axis": {"title": None}}
    states = [labels["waiting"], labels["answering"]]
    colour: Spec = {"field": "state", "type": "nominal", "legend": {"symbolType": "square"}}
    end = [{"at": requests[0].last_token_s, "label": labels["end"]}]
    right = requests[0].last_token_s > 0.7 * last
    text = {"type": "text", "align": "right" if right else "left", "dx": -5 if right else 5}
    at = {"x": {**x, "field": "at"}}
    return {
        "width": WIDTH,
        "height": _ROW * len(requests),
        "layer": [
            {
                "data": {"values": spans},
                "mark": {"type": "rect", "strokeWidth": 0.8},
                "encoding": {
                    "x": {**x, "field": "from", "axis": {"title": labels["axis"]}},
                    "x2": {"field": "to"},
                    "y": {**y, "scale": {"paddingInner": 0.3, "paddingOuter": 0.2}},
                    "fill": {
                        **colour,
                        "scale": {"domain": states, "range": ["url(#waiting)", CONTINUOUS]},
                    },
                    "stroke": {
                        **colour,
                        "scale": {"domain": states, "range": [BATCH, CONTINUOUS]},
                    },
                },
            },
            {
                "data": {"values": end},
                "mark": {"type": "rule", "color": INK, "strokeDash": [4, 3], "strokeWidth": 1.3},
                "encoding": at,
            },
            {
                "data": {"values": end},
                "mark": {**text, "fontSize": 11, "color": INK, "baseline": "bottom", "dy": -4},
                "encoding": {**at, "y": {"value": 0}, "text": {"field": "label"}},
            },
        ],
    }
