"""A finished run as it may leave the house: the same numbers, with labels in place of names.

Names out of the log (values of segments, models, files) become labels; what tells of the machine it
ran on (command, settings, places, the endpoint's address) is left out. The client's name, the
author's, and what they wrote themselves stay: it is their report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field

from slotwise_workflows.costs import CostRecord
from slotwise_workflows.errors import UsageError
from slotwise_workflows.files import prepare_directory, write_file
from slotwise_workflows.record import Record
from slotwise_workflows.report import FILES, Branding, write_report
from slotwise_workflows.report.words import Language
from slotwise_workflows.result import (
    Diagnosis,
    Fact,
    InputFile,
    Inspection,
    ProbeFigures,
    Provenance,
    Reason,
    Result,
)
from slotwise_workflows.run_directory import RESULT, as_json

SHARE = "share"
SHARE_KEY = "share-key.json"
_LOG = "log"
_ENDPOINT = "endpoint"
_HIDDEN = "***"
_MODEL = "model"  # the segment whose values are the models' names
# Numbers of a reason that are words of its own, and no name out of the log.
_WORDS = {"segment", "name", "quality"}

_Diagnosed = TypeVar("_Diagnosed", bound=Diagnosis)


class ShareKey(Record):
    """What the labels of a shared folder stand for: the content of ``share-key.json``."""

    schema_: Literal["slotwise/share-key/v1"] = Field("slotwise/share-key/v1", alias="schema")
    name: str
    logs: dict[str, str]
    segments: dict[str, dict[str, str]] = Field(description="by segment: each label and its value")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True, slots=True)
class _Labels:
    """The label of each segment's each value."""

    of: Mapping[str, Mapping[str, str]]

    def model(self, name: str | None) -> str | None:
        return name and self.of[_MODEL][name]


def shareable(result: Result) -> tuple[Result, ShareKey]:
    """A result without the names in it, and what its labels stand for.

    Args:
        result: What a diagnosis found.

    Returns:
        The result that may be shared, and the key, which may not.
    """
    labels = _Labels(
        {name: _numbered(name, values) for name, values in _named_values(result).items()}
    )
    files = result.provenance.inputs
    logs = {f"{_LOG}-{i}": file.name for i, file in enumerate(files, 1)}
    shown = _diagnosis(result, labels).model_copy(
        update={
            "name": _LOG,
            "traffic": _traffic(result.traffic, labels),
            "models": [_diagnosis(own, labels) for own in result.models],
            "probe": result.probe and _probe(result.probe, labels),
            "provenance": _provenance(result.provenance, list(logs)),
            "control": None,
        }
    )
    segments = {
        name: {label: value for value, label in values.items()}
        for name, values in labels.of.items()
        if values
    }
    return shown, ShareKey(name=result.name, logs=logs, segments=segments)


def write_shared(
    result: Result,
    run: Path,
    directory: Path,
    *,
    language: Language,
    formats: Sequence[str],
    branding: Branding,
) -> list[Path]:
    """Writes the report, its tables and ``result.json`` to share, and the key into the run.

    Args:
        result: What the run found.
        run: The run's directory, which keeps ``share-key.json``.
        directory: The folder to share; holds nothing else afterwards.
        language: Of the report.
        formats: Of the report.
        branding: Whose report it is, for whom, and what they added.

    Returns:
        The files written into the folder.

    Raises:
        UsageError: The folder holds other files, which would be shared with it.
        InputError: It cannot be written.
    """
    prepare_directory(directory)
    known = {*FILES.values(), "tables", RESULT}
    other = sorted(path.name for path in directory.iterdir() if path.name not in known)
    if other:
        raise UsageError(
            "the folder to share holds other files",
            where=str(directory / other[0]),
            hint="Choose a new folder with --output-dir",
        )
    shown, key = shareable(result)
    written = write_report(shown, directory, language=language, formats=formats, branding=branding)
    written.append(write_file(directory / RESULT, as_json(shown)))
    write_file(run / SHARE_KEY, as_json(key))
    return written


def _named_values(result: Result) -> dict[str, list[str]]:
    """The values of each segment, in the order of the log's figures; of models, all there are."""
    named = {name: list(own.values) for name, own in result.traffic.segments.items()}
    probed = result.probe.model if result.probe else None
    models = [result.model, *(own.model for own in result.models), probed]
    named[_MODEL] = [*named.get(_MODEL, ()), *(name for name in models if name)]
    for reason in _reasons(result):
        if "segment" in reason.numbers and "value" in reason.numbers:
            numbers = reason.numbers
            named.setdefault(str(numbers["segment"]), []).append(str(numbers["value"]))
    return named


def _reasons(result: Result) -> Iterable[Reason]:
    for own in (result, *result.models):
        yield from (*own.reasons, *own.limits, *own.actions, *own.alternatives, *own.flip)


def _numbered(name: str, values: Iterable[str]) -> dict[str, str]:
    return {value: f"{name}-{i}" for i, value in enumerate(dict.fromkeys(values), 1)}


def _diagnosis(own: _Diagnosed, labels: _Labels) -> _Diagnosed:
    told = ("reasons", "limits", "actions", "alternatives", "flip")
    return own.model_copy(
        update={
            "model": labels.model(own.model),
            **{name: [_reason(reason, labels) for reason in getattr(own, name)] for name in told},
            "facts": [_fact(fact) for fact in own.facts],
            "cost": own.cost and _cost(own.cost),
        }
    )


def _reason(reason: Reason, labels: _Labels) -> Reason:
    """Its numbers as they are, its words where they are none of the log's or the endpoint's."""
    numbers: dict[str, Any] = {}
    for name, value in reason.numbers.items():
        if not isinstance(value, str) or name in _WORDS:
            numbers[name] = value
        elif name == "value" and "segment" in reason.numbers:
            numbers[name] = labels.of[str(reason.numbers["segment"])][value]
        else:
            numbers[name] = _HIDDEN
    return Reason(code=reason.code, numbers=numbers)


def _fact(fact: Fact) -> Fact:
    """A calibration is called by its file."""
    if fact.basis != "calibration":
        return fact
    return fact.model_copy(update={"value": "calibration", "detail": ""})


def _cost(cost: CostRecord) -> CostRecord:
    if cost.kind != "calibration":
        return cost
    return cost.model_copy(update={"name": "calibration", "source": ""})


def _traffic(traffic: Inspection, labels: _Labels) -> Inspection:
    """Notes are left out: they quote places of the log."""
    segments = {
        name: own.model_copy(
            update={"values": {labels.of[name][value]: one for value, one in own.values.items()}}
        )
        for name, own in traffic.segments.items()
    }
    return traffic.model_copy(update={"segments": segments, "notes": []})


def _probe(probe: ProbeFigures, labels: _Labels) -> ProbeFigures:
    return probe.model_copy(
        update={
            "url": _ENDPOINT,
            "model": labels.model(probe.model),
            "reason": _reason(probe.reason, labels),
            "remarks": [_reason(own, labels) for own in probe.remarks],
            "cost": probe.cost and _cost(probe.cost),
        }
    )


def _provenance(own: Provenance, logs: Sequence[str]) -> Provenance:
    """Versions, seed and hashes stay, so that whoever has the log can check them against it."""
    inputs = [
        InputFile(name=label, sha256=file.sha256, bytes=file.bytes)
        for label, file in zip(logs, own.inputs, strict=True)
    ]
    return own.model_copy(update={"command": [], "config": {}, "inputs": inputs})
