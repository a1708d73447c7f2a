"""Renders icon.svg to the 512-pixel PNG that the manifest names.

Run it after a change of the drawing: ``python listing/assets/render.py``.
"""

from __future__ import annotations

from pathlib import Path

import vl_convert

_HERE = Path(__file__).resolve().parent


def icon_png() -> bytes:
    """The icon as PNG, 512 x 512."""
    return vl_convert.svg_to_png((_HERE / "icon.svg").read_text(encoding="utf-8"), scale=1)


if __name__ == "__main__":
    (_HERE / "icon-512.png").write_bytes(icon_png())
