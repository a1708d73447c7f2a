"""Keeps the published schema of `result.json` equal to its models.

``python -m slotwise_workflows.schemas`` writes it again after a change of `result.py`; a test fails
while the two differ. Works in a checkout only: an installed slotwise never changes its own files.
"""

from __future__ import annotations

import json
from pathlib import Path

from slotwise_workflows.resources import RESULT_SCHEMA
from slotwise_workflows.result import Result


def result_schema() -> str:
    """The JSON Schema of `result.json`, as the text of its file."""
    schema = Result.model_json_schema(by_alias=True, mode="serialization")
    published = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:slotwise:result:v1",
        **schema,
    }
    return json.dumps(published, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Writes the schema's file in the checkout."""
    path = Path(__file__).resolve().parents[2] / RESULT_SCHEMA
    path.write_text(result_schema(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
