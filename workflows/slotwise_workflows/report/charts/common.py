"""What several pictures share: width, colours, axes, lines of reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from slotwise_workflows.report.svg import INK

Spec = dict[str, Any]

WIDTH = 580
BATCH = "#a8480f"
CONTINUOUS = "#0b6b7d"
BARS = "#5f8aa3"


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


def round_range(low: float, high: float) -> tuple[float, float]:
    """The range of gains widened to whole steps of 1, 2 or 5, about six of them."""
    step = next(tick for tick in round_ticks([(high - low) / 6] * 2) if tick >= (high - low) / 6)
    bottom = low if low >= 1 else math.floor(low / step) * step  # never from 1 down to 0
    return bottom, math.ceil(high / step) * step


def round_ticks(values: Sequence[float]) -> list[float]:
    """1, 2, 5 in every decade, from the last at or below the least value to the first above all."""
    low, high = min(values), max(values)
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 2)
    every = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]
    first = max(i for i, tick in enumerate(every) if tick <= low)
    last = min(i for i, tick in enumerate(every) if tick >= high)
    return every[first : max(last, first + 1) + 1]
