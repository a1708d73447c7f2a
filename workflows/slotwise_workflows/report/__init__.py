"""The report a client is handed: a `Result` in words and pictures, as HTML, Markdown and PDF."""

from __future__ import annotations

from slotwise_workflows.report.branding import BRAND_TEXTS, branding_of, readable_on_white
from slotwise_workflows.report.document import Branding, OwnAction
from slotwise_workflows.report.pdf import require_pdf
from slotwise_workflows.report.render import DEFAULT_FORMATS, FORMATS, Report, render_report
from slotwise_workflows.report.words import Words, clean, load_words
from slotwise_workflows.report.write import FILES, write_report

__all__ = [
    "BRAND_TEXTS",
    "DEFAULT_FORMATS",
    "FILES",
    "FORMATS",
    "Branding",
    "OwnAction",
    "Report",
    "Words",
    "branding_of",
    "clean",
    "load_words",
    "readable_on_white",
    "render_report",
    "require_pdf",
    "write_report",
]
