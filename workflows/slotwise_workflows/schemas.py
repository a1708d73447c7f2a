"""Keeps the published schemas of the JSON files equal to their models.

``python -m slotwise_workflows.schemas`` writes them again after a change of `result.py`,
`sweep/record.py`, `calibrate/file.py` or `report/compare.py`; a test fails while one differs. Works
in a checkout only: an installed slotwise never changes its own files.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from slotwise_workflows.calibrate.file import CalibrationFile
from slotwise_workflows.report.compare import Comparison
from slotwise_workflows.resources import (
    CALIBRATION_SCHEMA,
    COMPARISON_SCHEMA,
    RESULT_SCHEMA,
    SWEEP_SCHEMA,
)
from slotwise_workflows.result import Result
from slotwise_workflows.sweep.record import SweepReport


def result_schema() -> str:
    """The JSON Schema of `result.json`, as the text of its file."""
    return _schema(Result, "urn:slotwise:result:v1")


def calibration_schema() -> str:
    """The JSON Schema of `calibration.json`, as the text of its file."""
    return _schema(CalibrationFile, "urn:slotwise:calibration:v1")


def sweep_schema() -> str:
    """The JSON Schema of `sweep.json`, as the text of its file."""
    return _schema(SweepReport, "urn:slotwise:sweep:v1")


def comparison_schema() -> str:
    """The JSON Schema of `comparison.json`, as the text of its file."""
    return _schema(Comparison, "urn:slotwise:comparison:v1")


def _schema(model: type[BaseModel], name: str) -> str:
    published = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": name,
        **model.model_json_schema(by_alias=True, mode="serialization"),
    }
    return json.dumps(published, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Writes the schemas' files in the checkout."""
    top = Path(__file__).resolve().parents[2]
    for path, text in (
        (RESULT_SCHEMA, result_schema()),
        (CALIBRATION_SCHEMA, calibration_schema()),
        (SWEEP_SCHEMA, sweep_schema()),
        (COMPARISON_SCHEMA, comparison_schema()),
    ):
        (top / path).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
