"""The report as PDF, set by Typst: A4, tagged, with bookmarks, in fonts that are installed with it.

The template gets the document as data; no text of a log or a person is ever read as markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from slotwise_workflows.errors import MissingExtraError
from slotwise_workflows.report.branding import logo_bytes
from slotwise_workflows.report.document import Document

# Of OFL fonts, a wheel each: Typst makes no bold of a regular one.
_FONTS = ("noto_cjk_sans_jp_regular", "noto_cjk_sans_jp_bold")


def as_pdf(document: Document, created: str | None) -> bytes:
    """The same words, numbers and pictures on pages of A4.

    Accessible (PDF/UA-1), unless a text holds a character that none of the fonts has: then fonts
    of the machine stand in, and the file may differ from machine to machine.

    Args:
        document: What the report consists of.
        created: When, by RFC 3339, as the PDF says of itself; 1970 where it is not known.

    Returns:
        The file; the same arguments give the same bytes.

    Raises:
        MissingExtraError: What sets it is not installed.
    """
    require_pdf()
    import typst

    told = {**_data(document), "logo": list(logo_bytes(document.brand.logo))}
    given: dict[str, Any] = {
        "input": files(__package__).joinpath("templates", "report.typ").read_bytes(),
        "sys_inputs": {"document": json.dumps(told, ensure_ascii=False)},
        "font_paths": [str(files(name)) for name in _FONTS],
        "timestamp": _moment(created),
    }
    try:
        made = typst.compile(**given, ignore_system_fonts=True, pdf_standards=["ua-1"])
    except typst.TypstError as error:
        if "could not be displayed with" not in str(error):  # anything but a glyph that is missing
            raise
        made = typst.compile(**given)
    return bytes(made)


def require_pdf() -> None:
    """Refuses a PDF that could not be written, before anything else is done.

    Raises:
        MissingExtraError: What sets it is not installed.
    """
    if any(find_spec(name) is None for name in ("typst", *_FONTS)):
        raise MissingExtraError(
            "a PDF report needs Typst and its fonts, which are not installed",
            where="formats",
            hint="Install them with: pip install 'slotwise[pdf]'",
        )


def _moment(created: str | None) -> datetime:
    try:
        return datetime.fromisoformat(created or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)


def _data(value: object) -> Any:
    """A document as JSON holds it: a block with its kind."""
    if is_dataclass(value):
        own = {field.name: _data(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **own}
    if isinstance(value, tuple):
        return [_data(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _data(item) for key, item in value.items()}
    return value
