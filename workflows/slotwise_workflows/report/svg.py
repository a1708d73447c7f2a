"""Vega-Lite specifications to small, accessible, self-contained SVG."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

FONTS = (
    "'Noto Sans JP', 'Hiragino Sans', 'Hiragino Kaku Gothic ProN', 'Yu Gothic', Meiryo, "
    "'Noto Sans CJK JP', system-ui, sans-serif"
)
INK = "#22303c"
MUTED = "#55626f"
GRID = "#e4e8ec"

# The Vega-Lite version is named, so that a newer renderer draws the same picture.
_VERSION = "5.20"

_CONFIG: dict[str, Any] = {
    "aria": False,
    "background": None,
    # Only measures text: the page names its own fonts. The renderer brings this one along, so that
    # it need not search the machine's fonts, and draws alike on every machine.
    "font": "Liberation Sans",
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": GRID,
        "domainColor": "#8a949e",
        "tickColor": "#8a949e",
        "labelFlush": False,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False},
    "legend": {
        "orient": "top",
        "title": None,
        "labelFontSize": 12,
        "labelColor": INK,
        "symbolSize": 120,
        "labelLimit": 400,
        "columnPadding": 18,
    },
    "title": {"anchor": "start", "fontSize": 13, "fontWeight": "bold", "color": INK, "offset": 4},
}

_TIDY: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'<path class="(?:foreground|background)"[^>]*d=""[^>]*/>'), ""),
    (re.compile(r'<path class="(?:foreground|background)"[^>]*d="M0,0h0v0h0Z"[^>]*/>'), ""),
    (re.compile(r' (?:class|role|aria-[a-z]+|pointer-events|font-family)="[^"]*"'), ""),
    (re.compile(r' (?:opacity="1"|display="none"|xmlns:xlink="[^"]*"|version="1.1")'), ""),
    (re.compile(r"<g>(\s*)</g>"), ""),
)

# Tenths of a pixel are enough; in attributes alone, so that no printed number loses a digit.
_ATTRIBUTE = re.compile(r'="[^"<>]*"')
_FRACTION = re.compile(r"\.(\d)\d*")


def draw(
    spec: Mapping[str, Any], *, name: str, title: str, description: str, defs: str = ""
) -> str:
    """Draws a Vega-Lite specification.

    Args:
        spec: Without schema and config, which are the same for all pictures.
        name: Prefix of the picture's ids, unique in the document.
        title: Read out as the picture's name.
        description: Read out after it.
        defs: Trusted SVG definitions the specification refers to.

    Returns:
        An ``<svg>`` element with a view box and no size of its own; text stays text.
    """
    import vl_convert

    full = {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{_VERSION}.json",
        "config": _CONFIG,
        **spec,
    }
    drawn = vl_convert.vegalite_to_svg(full, vl_version=_VERSION)
    start = drawn.index("<svg")
    head, body = drawn[start:].split(">", 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    if box is None:
        raise AssertionError("the renderer wrote no view box")
    for pattern, replacement in _TIDY:
        body = pattern.sub(replacement, body)
    body = _ATTRIBUTE.sub(_shorter, body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box[1]}" role="img" '
        f'aria-labelledby="{name}-name {name}-desc" font-family="{FONTS}">'
        f'<title id="{name}-name">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
        f"{f'<defs>{defs}</defs>' if defs else ''}{body}"
    )


def standalone(drawn: str) -> str:
    """A drawn picture as a file of its own: of its natural size, on white."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    if size is None:
        raise AssertionError("a drawn picture has a view box that starts at 0")
    sized = drawn.replace("<svg ", f'<svg width="{size[1]}" height="{size[2]}" ', 1)
    return sized.replace("</desc>", '</desc><rect width="100%" height="100%" fill="#fff"/>', 1)


def _shorter(attribute: re.Match[str]) -> str:
    return _FRACTION.sub(lambda m: "" if m[1] == "0" else f".{m[1]}", attribute[0])
