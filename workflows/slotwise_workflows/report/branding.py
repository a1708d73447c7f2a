"""What a consultant puts on a report: names, a line on confidentiality, a colour, a logo."""

from __future__ import annotations

import base64
import io
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slotwise_workflows.errors import InputError
from slotwise_workflows.report.document import ACCENT, Branding, OwnAction
from slotwise_workflows.report.words import clean

BRAND_TEXTS = ("client", "prepared_by", "date", "document_number", "confidential")
LEAST_CONTRAST = 4.5  # of text to its ground: WCAG 2.2, success criterion 1.4.3

_MOST_FILE_BYTES = 5_000_000
_MOST_PIXELS = 50_000_000
_WIDTH, _HEIGHT = 1600, 360  # a logo is shown 12 mm high: fine enough for print
_MOST_LOGO_BYTES = 250_000  # a report is to stay below 500 KB
_URI = "data:image/png;base64,"
_PNG = b"\x89PNG\r\n\x1a\n"
_NOT_DRAWN = re.compile(rb"<(?:\w+:)?(text|image|foreignObject)\b")


def branding_of(settings: Mapping[str, Any], folder: Path) -> Branding:
    """The branding that settings describe: those of a workload file, of inputs, or of a run.

    Args:
        settings: By the keys of a workload file's ``report``; others are passed over.
        folder: Where a relative path of a logo starts from.

    Raises:
        InputError: The logo is no picture, or the colour cannot be read on white.
    """
    accent, logo = settings.get("accent"), settings.get("logo")
    try:
        colour = readable_on_white(accent) if accent else ACCENT
    except ValueError as error:
        raise InputError(f"accent {error}", where="report.accent") from None
    return Branding(
        **{name: str(settings.get(name) or "") for name in BRAND_TEXTS},
        accent=colour,
        logo=read_logo(logo, folder) if logo else "",
        notes=str(settings.get("notes") or ""),
        actions=tuple(OwnAction(**own) for own in settings.get("actions") or ()),
    )


def readable_on_white(colour: str) -> str:
    """A colour as ``#rrggbb`` in small letters.

    Raises:
        ValueError: It is none, or text in it could not be read on white; the message is a
            predicate and names the nearest darker colour that could.
    """
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
        raise ValueError(f"must be a colour such as {ACCENT}, not {clean(colour, 40)!r}")
    seen = _contrast_to_white(colour)
    if seen >= LEAST_CONTRAST:
        return colour.lower()
    darker = next(
        shade
        for share in range(99, -1, -1)
        if _contrast_to_white(shade := _darkened(colour, share / 100)) >= LEAST_CONTRAST
    )
    raise ValueError(
        f"has a contrast of {seen:.2f} to white, and text needs {LEAST_CONTRAST}: take {darker}"
    )


def _darkened(colour: str, share: float) -> str:
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{int(part * share):02x}" for part in parts)


def _contrast_to_white(colour: str) -> float:
    """The contrast ratio of WCAG 2.2, from 1 to 21; white has a relative luminance of 1."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def read_logo(said: str, folder: Path) -> str:
    """A logo as pixels, so that nothing in it can run or be fetched.

    Args:
        said: The path of a PNG or SVG file, or what this has returned before.
        folder: Where a relative path starts from.

    Returns:
        A PNG as a data URI, without what else the file held.

    Raises:
        InputError: It cannot be read, is no such picture, or is too large.
    """
    import vl_convert
    from PIL import Image, UnidentifiedImageError

    where = "report.logo" if said.startswith("data:") else str(folder / said)
    content = _content(said, folder)
    if not content.startswith(_PNG):
        content = vl_convert.svg_to_png(_framed(content, where))
    width, height = struct.unpack_from(">II", content.ljust(24, b"\0"), 16)  # of the header
    if width * height > _MOST_PIXELS:
        raise InputError(f"the logo has more than {_MOST_PIXELS:,} pixels", where=where)
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            drawn = picture.convert("RGBA")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InputError("the logo is a damaged PNG", where=where, why=clean(str(error))) from None
    box = drawn.getbbox()
    if box is None:
        raise InputError("nothing is drawn in the logo", where=where, hint="Export it as PNG")
    drawn = drawn.crop(box)
    drawn.thumbnail((_WIDTH, _HEIGHT))
    kept = io.BytesIO()
    drawn.save(kept, format="PNG", optimize=True)
    if kept.tell() > _MOST_LOGO_BYTES:
        raise InputError(
            f"the logo takes {kept.tell():,} bytes, and {_MOST_LOGO_BYTES:,} at most are put in",
            where=where,
            hint="Take a plainer one, with fewer colours",
        )
    return _URI + base64.b64encode(kept.getvalue()).decode("ascii")


def logo_bytes(logo: str) -> bytes:
    """The PNG in what `read_logo` returned."""
    return base64.b64decode(logo.removeprefix(_URI))


def _content(said: str, folder: Path) -> bytes:
    if said.startswith("data:"):
        try:
            return base64.b64decode(said.removeprefix(_URI), validate=True)
        except ValueError:
            raise InputError(
                "the logo that the run keeps is damaged", where="report.logo", hint="Name it again"
            ) from None
    path = folder / said
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(
            "the logo cannot be read", where=str(path), why=error.strerror or ""
        ) from None
    if len(content) > _MOST_FILE_BYTES:
        raise InputError(f"the logo has more than {_MOST_FILE_BYTES:,} bytes", where=str(path))
    return content


def _framed(svg: bytes, where: str) -> str:
    """An SVG inside another of known size: there, it may refer to nothing outside itself.

    Raises:
        InputError: It is no SVG, or holds what would not be drawn.
    """
    if b"<svg" not in svg:
        raise InputError("the logo is neither PNG nor SVG", where=where, hint="Export it as PNG")
    left_out = _NOT_DRAWN.search(svg)
    if left_out:
        raise InputError(
            f"the logo holds <{left_out[1].decode()}>, which needs fonts or files of its own",
            where=where,
            hint="Convert text to paths, or export it as PNG",
        )
    uri = "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f'<image {size} preserveAspectRatio="xMinYMid meet" href="{uri}"/></svg>'
    )
