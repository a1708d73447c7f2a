"""What a probe leaves in its directory: ``probe.json`` and a row a request in ``probe.jsonl``."""

from __future__ import annotations

import json
from pathlib import Path

from slotwise_workflows.files import write_file
from slotwise_workflows.probe.model import ProbeResult
from slotwise_workflows.run_directory import as_json

RESULT = "probe.json"
REQUESTS = "probe.jsonl"


def write_probe(result: ProbeResult, directory: Path) -> list[Path]:
    """Writes both files; neither holds a prompt, an answer or a key.

    Args:
        result: What `slotwise_workflows.probe.probe` returned.
        directory: Where; it exists.

    Returns:
        Their paths.

    Raises:
        InputError: The directory cannot be written.
    """
    return [
        write_file(directory / REQUESTS, requests_jsonl(result)),
        write_file(directory / RESULT, as_json(result)),
    ]


def requests_jsonl(result: ProbeResult) -> bytes:
    """One request a line, as `Sample` names its fields."""
    lines = (json.dumps(s.model_dump(mode="json"), allow_nan=False) for s in result.samples)
    return "".join(f"{line}\n" for line in lines).encode("ascii")
