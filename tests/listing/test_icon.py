"""The icon: 512 pixels, and what its drawing says."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[2] / "listing" / "assets"


def _render() -> bytes:
    spec = importlib.util.spec_from_file_location("icon_render", ASSETS / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    png: bytes = module.icon_png()
    return png


def _size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png[12:16] == b"IHDR"
    return struct.unpack(">II", png[16:24])


def test_the_icon_is_512_pixels_square() -> None:
    assert _size((ASSETS / "icon-512.png").read_bytes()) == (512, 512)


def test_the_drawing_renders_to_the_icon() -> None:
    # By size alone: another version of the renderer may smooth edges differently.
    assert _size(_render()) == (512, 512)


def test_the_drawing_is_self_contained() -> None:
    text = (ASSETS / "icon.svg").read_text(encoding="utf-8")
    assert text.count("http") == 1  # the namespace
    assert "<script" not in text
    assert "<title" in text
    assert "<desc" in text
