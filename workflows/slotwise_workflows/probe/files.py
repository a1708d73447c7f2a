"""What a probe leaves in its directory: ``probe.json`` and a row a request in ``probe.jsonl``.

Where the cost of an iteration was found it stands in ``calibration.json``, too, as `calibrate`
writes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from slotwise_workflows.calibrate.file import NAME as CALIBRATION
from slotwise_workflows.calibrate.file import write_calibration
from slotwise_workflows.files import write_file
from slotwise_workflows.probe.model import ProbeResult, Sample
from slotwise_workflows.run_directory import as_json
from slotwise_workflows.traffic import probe_log

RESULT = "probe.json"


def write_probe(result: ProbeResult, directory: Path) -> list[Path]:
    """Writes the files; none holds a prompt, an answer or a key.

    Args:
        result: The probe.
        directory: Where; it exists. The calibration of a probe that was there does not stay.

    Returns:
        Their paths.

    Raises:
        InputError: The directory cannot be written.
    """
    written = [write_file(directory / probe_log.NAME, requests_jsonl(result.samples))]
    calibration = None if result.cost is None else result.cost.calibration
    if calibration is None:
        _drop_calibration_of_earlier_probe(directory)
    else:
        written.append(write_calibration(calibration, directory / CALIBRATION))
    return [*written, write_file(directory / RESULT, as_json(result))]


def _drop_calibration_of_earlier_probe(directory: Path) -> None:
    """One that the probe before found, and not one that `calibrate` wrote there."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        earlier = json.loads((directory / RESULT).read_bytes())
        if earlier["cost"]["calibration"] == json.loads((directory / CALIBRATION).read_bytes()):
            (directory / CALIBRATION).unlink()


def requests_jsonl(samples: Sequence[Sample]) -> bytes:
    """One request a line, as `Sample` names its fields."""
    lines = (json.dumps(s.model_dump(mode="json"), allow_nan=False) for s in samples)
    return "".join(f"{line}\n" for line in lines).encode("ascii")
