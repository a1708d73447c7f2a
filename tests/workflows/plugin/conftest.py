"""Helpers for runs as a host asks for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from slotwise_workflows.host.finished import Finished
from slotwise_workflows.host.run import run_workflow
from slotwise_workflows.resources import EVENT_SCHEMA, load_json

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@dataclass
class HostedRun:
    """A folder with an inputs file, an output directory and an events file."""

    folder: Path
    inputs: dict[str, Any] = field(default_factory=lambda: {"traffic_log": "log.csv"})
    workflow: str = "diagnose"
    events_name: str = "events.jsonl"

    @property
    def output_dir(self) -> Path:
        return self.folder / "out"

    @property
    def events_file(self) -> Path:
        return self.folder / self.events_name

    def start(self) -> Finished:
        inputs_file = self.folder / "inputs.json"
        inputs_file.write_text(json.dumps(self.inputs), encoding="utf-8")
        return run_workflow(
            self.workflow,
            inputs_file=inputs_file,
            output_dir=self.output_dir,
            events_file=self.events_file,
            command=["slotwise", "run", self.workflow],
            now=lambda: NOON,
        )

    def events(self) -> list[dict[str, Any]]:
        """The lines of the events file, each valid, in an order that holds for every run."""
        content = self.events_file.read_bytes()
        assert content.endswith(b"\n")
        events = [json.loads(line) for line in content.decode().splitlines()]
        validator = Draft202012Validator(load_json(EVENT_SCHEMA))
        for event in events:
            validator.validate(event)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        kinds = [event["event"] for event in events]
        assert kinds[0] == "run.started"
        assert [kind for kind in kinds if kind in ("run.finished", "error")] == kinds[-1:]
        return events


@pytest.fixture
def hosted_run(tmp_path: Path) -> HostedRun:
    return HostedRun(tmp_path)
