"""The files a host reads - manifest, workflow definitions, schemas - wherever slotwise runs from.

Their names are the same everywhere: relative to the top of the repository, to the top of a
bundle, and to the `data` folder of the installed package. Cheap to import; reads nothing before it
is asked.
"""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

MANIFEST = "template.yaml"
TEMPLATE_SCHEMA = "workflows/schemas/template.v1.schema.json"
WORKFLOW_SCHEMA = "workflows/schemas/workflow.v1.schema.json"
EVENT_SCHEMA = "workflows/schemas/event.v1.schema.json"
RESULT_SCHEMA = "workflows/schemas/result.v1.schema.json"
CALIBRATION_SCHEMA = "workflows/schemas/calibration.v1.schema.json"
COMPARISON_SCHEMA = "workflows/schemas/comparison.v1.schema.json"
SWEEP_SCHEMA = "workflows/schemas/sweep.v1.schema.json"


def read_text(name: str) -> str:
    """Reads one of the files, by its name in the repository, e.g. ``workflows/diagnose.yaml``.

    Raises:
        FileNotFoundError: There is no such file.
    """
    return _root().joinpath(*name.split("/")).read_text(encoding="utf-8")


def load_yaml(name: str) -> dict[str, Any]:
    """Reads one of the YAML files as plain data."""
    loaded: dict[str, Any] = yaml.load(read_text(name), Loader=_LOADER)  # noqa: S506 - a safe one
    return loaded


def load_json(name: str) -> dict[str, Any]:
    """Reads one of the JSON files as plain data."""
    loaded: dict[str, Any] = json.loads(read_text(name))
    return loaded


def _root() -> Traversable:
    """The installed data, or the repository when slotwise runs from its sources."""
    installed = files("slotwise_workflows").joinpath("data")
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2]


# The parser in C where PyYAML was built with it: this runs whenever a host looks around.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
