"""The report a client is handed: a `Result` in words and pictures, as HTML and as Markdown."""

from __future__ import annotations

from slotwise_workflows.report.document import Branding, OwnAction
from slotwise_workflows.report.render import FORMATS, Report, render_report
from slotwise_workflows.report.words import Words, clean, load_words
from slotwise_workflows.report.write import FILES, write_report

__all__ = [
    "FILES",
    "FORMATS",
    "Branding",
    "OwnAction",
    "Report",
    "Words",
    "clean",
    "load_words",
    "render_report",
    "write_report",
]
