"""Every log format that is read, one declarative entry each.

To add one: write its `Format` in the file of its family, add a case under
``tests/data/traffic/cases/`` and a section in ``docs/reference/log-formats.md``.
"""

from __future__ import annotations

from slotwise_workflows.traffic.formats import apis, clients, engines, gateways, own, traces
from slotwise_workflows.traffic.formats.format import COUNTS, DURATIONS, FIELDS, TIMES, Format

FORMATS: tuple[Format, ...] = (
    *traces.FORMATS,
    *engines.FORMATS,
    *clients.FORMATS,
    *apis.FORMATS,
    *gateways.FORMATS,
    *own.FORMATS,
)

__all__ = ["COUNTS", "DURATIONS", "FIELDS", "FORMATS", "TIMES", "Format"]
