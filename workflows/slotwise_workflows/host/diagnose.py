"""`diagnose` as a host runs it: inputs to settings, the shared pipeline, outputs from the result.

A setting comes from the inputs, else from the workload file they name, else from the workflow's
defaults; what nobody says is estimated from the log or carried as a range.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slotwise_workflows.config import (
    WorkloadFile,
    base_directory,
    load_workload,
    resolved,
    to_given,
    to_read_options,
)
from slotwise_workflows.costs.named import named_cost
from slotwise_workflows.errors import NOT_ENOUGH_DATA, InputError
from slotwise_workflows.events import OnEvent
from slotwise_workflows.given import Given
from slotwise_workflows.host.finished import Finished
from slotwise_workflows.pipeline import run_diagnose
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.report import BRAND_TEXTS, DEFAULT_FORMATS, branding_of, require_pdf
from slotwise_workflows.result import Result
from slotwise_workflows.traffic import ReadOptions
from slotwise_workflows.traffic.paths import log_name


def run(
    inputs: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    base: Path,
    output_dir: Path,
    command: Sequence[str],
    on_event: OnEvent,
) -> Finished:
    """Diagnoses the traffic that checked inputs describe.

    Args:
        inputs: What the inputs file says, valid against the workflow's schema.
        defaults: The schema's defaults.
        base: The folder that relative paths of the inputs start from.
        output_dir: An empty directory for the artifacts.
        command: The command line, for provenance.
        on_event: Hears of steps, progress and artifacts.

    Raises:
        InputError: A log or the workload file cannot be used.
    """
    workload = load_workload(base / inputs["workload"]) if "workload" in inputs else None
    logs = [str(base / log) for log in _as_list(inputs["traffic_log"])]
    said = {**defaults, **_said_by(workload), **inputs}
    branding = branding_of(
        said, base if workload is None or "logo" in inputs else base_directory(workload)
    )
    if said.get("pdf"):
        require_pdf()
    result = run_diagnose(
        logs=logs,
        read_options=read_options(inputs, workload),
        given=given(inputs, workload, base),
        thresholds=workload.thresholds if workload else Thresholds(),
        name=said.get("name") or log_name(logs[0]),
        seed=int(said["seed"]),
        output_dir=output_dir,
        language=said["language"],
        formats=(*DEFAULT_FORMATS, "pdf") if said.get("pdf") else DEFAULT_FORMATS,
        branding=branding,
        command=command,
        config=_in_force({**said, "logo": branding.logo} if branding.logo else said, workload),
        on_event=on_event,
    )
    exit_code = NOT_ENOUGH_DATA if result.verdict == "insufficient_data" else 0
    return Finished(exit_code, outputs(result))


def read_options(inputs: Mapping[str, Any], workload: WorkloadFile | None) -> ReadOptions:
    """How to read the log: the inputs' word over the workload file's."""
    said = {
        name: inputs[name]
        for name in ("format", "map", "time_unit", "timezone", "decimal", "allow_truncated")
        if name in inputs
    }
    if "where" in inputs:
        said["where"] = tuple(_as_list(inputs["where"]))
    if "segment" in inputs:
        said["segments"] = tuple(_as_list(inputs["segment"]))
    return dataclasses.replace(to_read_options(workload) if workload else ReadOptions(), **said)


def given(inputs: Mapping[str, Any], workload: WorkloadFile | None, base: Path) -> Given:
    """What is known of the server: the inputs' word over the workload file's.

    Raises:
        InputError: The inputs name two costs, or one that is not there.
    """
    facts = {field.name for field in dataclasses.fields(Given)}
    said = {name: value for name, value in inputs.items() if name in facts}
    for count in ("replicas", "slots"):
        if count in said:
            said[count] = int(said[count])  # 8.0 is a whole number to JSON Schema
    named = named_cost(
        ms_per_token=inputs.get("ms_per_token"),
        preset=inputs.get("preset"),
        calibration=inputs.get("calibration"),
        base=base,
        fault=InputError,
    )
    return dataclasses.replace(to_given(workload) if workload else Given(), **{**said, **named})


def outputs(result: Result) -> dict[str, Any]:
    """The few values a host shows without opening a file."""
    return {
        "verdict": result.verdict,
        "confidence": result.confidence,
        "requests": result.requests,
        "gain": result.gain.model_dump() if result.gain else None,
    }


def _said_by(workload: WorkloadFile | None) -> dict[str, Any]:
    if workload is None:
        return {}
    report = workload.report
    said = {
        "name": workload.name,
        "language": report.language,
        "notes": report.notes,
        "actions": [own.model_dump() for own in report.actions],
        "accent": report.accent,
        "logo": report.logo,
        **{name: getattr(report, name) for name in BRAND_TEXTS},
        "pdf": "pdf" in report.formats,
    }
    return {name: value for name, value in said.items() if value}


def _in_force(said: dict[str, Any], workload: WorkloadFile | None) -> dict[str, Any]:
    return (
        {"inputs": said} if workload is None else {"inputs": said, "workload": resolved(workload)}
    )


def _as_list(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
