"""The workload file as frozen values: every key, its meaning, its bounds.

Nothing here reads a file. A key whose value is null counts as left out, so a section of which all
keys are commented out is valid. Which keys exist is what `Config` subclasses say; the reference
page and the JSON Schema are checked against them.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from slotwise_workflows.config.base import Config
from slotwise_workflows.config.sections.policies import PolicyEntry
from slotwise_workflows.config.sections.server import Server
from slotwise_workflows.config.sections.sweep import Execution, Sweep
from slotwise_workflows.config.sections.traffic import Traffic
from slotwise_workflows.given import MOST_HOUR_PRICE, MOST_OBJECTIVE_S
from slotwise_workflows.recommend.thresholds import Thresholds

MOST_CHARACTERS = 10_000  # of notes
SCHEMA_ID = "https://slotwise.invalid/schema/workload/v1.json"

Objective = Annotated[float, Field(gt=0, le=MOST_OBJECTIVE_S, allow_inf_nan=False)]


class Objectives(Config):
    """What the users are promised."""

    latency_p95_s: Objective | None = Field(None, description="p95 of the whole answer, seconds")
    ttft_p95_s: Objective | None = Field(None, description="p95 of the first token, seconds")


class OwnAction(Config):
    """An action that the consultant has agreed on."""

    what: Annotated[str, Field(min_length=1, max_length=300)] = Field(description="what is done")
    owner: str = Field("", max_length=100, description="by whom")
    due: str = Field("", description="until which day, as 2026-12-31")

    @field_validator("due")
    @classmethod
    def _a_day(cls, due: str) -> str:
        if due and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", due):
            raise ValueError(f"must be a day such as 2026-12-31, not {due!r:.40}")
        try:
            return due and date.fromisoformat(due).isoformat()
        except ValueError:
            raise ValueError(f"is no day of the calendar: {due}") from None


class Report(Config):
    """How the report looks and for whom it is."""

    language: Literal["ja", "en"] | None = Field(None, description="the locale's if left out")
    client: str = Field("", max_length=200, description="the client's name")
    prepared_by: str = Field("", max_length=200, description="who hands it over")
    date: str = Field("", max_length=200, description="the date that stands on the report")
    document_number: str = Field("", max_length=200, description="its number in your files")
    confidential: str = Field("", max_length=200, description="who may read it, on each page")
    accent: str = Field("", description="a colour such as #0b6b7d, readable on white")
    logo: str = Field("", description="your logo, a PNG or SVG file; relative to this file")
    formats: Annotated[tuple[Literal["html", "md", "pdf", "summary"], ...], Field(strict=False)] = (
        Field(("html", "md", "summary"), description="what is written")
    )
    gpu_hour_price: (
        Annotated[float, Field(gt=0, le=MOST_HOUR_PRICE, allow_inf_nan=False)] | None
    ) = Field(None, description="price of one server hour; no money is named without it")
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        "JPY", description="ISO 4217 code of that price"
    )
    notes: str = Field(
        "",
        max_length=MOST_CHARACTERS,
        description="the consultant's own words, as Markdown, in a section of their own",
    )
    actions: Annotated[tuple[OwnAction, ...], Field(strict=False)] = Field(
        (), max_length=50, description="what was agreed on: `what`, `owner`, `due`"
    )

    @field_validator("accent")
    @classmethod
    def _readable(cls, accent: str) -> str:
        from slotwise_workflows.report.branding import readable_on_white

        return accent and readable_on_white(accent)

    @field_validator("notes")
    @classmethod
    def _can_be_shown(cls, notes: str) -> str:
        from slotwise_workflows.report.notes import read_notes  # brings all of the report

        if notes:
            read_notes(notes)
        return notes


class WorkloadFile(Config):
    """A workload file: traffic, server, policies, objectives, and what to make of them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, title="slotwise workload file"
    )

    version: Literal[1] = Field(description="of this file's format")
    name: Annotated[str, Field(min_length=1, max_length=80)] = Field(
        "workload", description="what reports and the output directory are called"
    )
    traffic: Traffic = Field(description="the requests")
    server: Server = Field(Server(), description="the server")
    policies: Annotated[tuple[PolicyEntry, ...], Field(strict=False, min_length=1)] = Field(
        (PolicyEntry.model_validate("static"), PolicyEntry.model_validate("continuous")),
        description="ways of filling the slots, side by side",
    )
    objectives: Objectives = Field(Objectives(), description="what users are promised")
    sweep: Sweep = Field(Sweep(), description="the grid of `slotwise sweep`")
    execution: Execution = Field(Execution(), description="where a sweep runs")
    report: Report = Field(Report(), description="the report")
    thresholds: Thresholds = Field(
        Thresholds(), description="where one verdict ends and the next begins"
    )

    _source: Any = PrivateAttr(default=None)

    @field_validator("name")
    @classmethod
    def _one_line(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("must be one line of printable characters")
        return name
