"""``calibration.json``: a step cost fitted to a measured server, with all that tells its worth."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, astuple
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from slotwise_sim.costs import Step
from slotwise_workflows.config.sections.server import StepCost
from slotwise_workflows.errors import InputError
from slotwise_workflows.files import write_file
from slotwise_workflows.record import Record
from slotwise_workflows.result import InputFile
from slotwise_workflows.run_directory import as_json

SCHEMA: Literal["slotwise/calibration/v1"] = "slotwise/calibration/v1"
NAME = "calibration.json"
RELIABLE = 0.15
"""The largest error, as a share, at which a fit still says something: twice the largest that a
server rightly told had in docs/validation/measured_servers.md, and a fifth of those of one whose
memory was left out."""
_LARGEST = 16 << 20
_SAME = 1e-9  # relative: of a cost to what its terms make of it


def percent(share: float) -> str:
    """An error with its sign; what rounds to nothing has none."""
    told = f"{100 * share:+.1f}"
    return f"{'0.0' if float(told) == 0 else told} %"


def _in_bounds(cost: Step) -> Step:
    """A cost that a workload file could state."""
    try:
        StepCost.model_validate(asdict(cost))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        term = ".".join(str(step) for step in fault["loc"])
        raise ValueError(f"{term}: {fault['msg']}") from None
    return cost


class FittedTerm(Record):
    """A term of the cost with its 95 % interval."""

    value: float
    low: float
    high: float
    how: Literal["fitted", "given", "not_identified"] = Field(
        description="not_identified: left at 0, as the run does not tell it"
    )


class AssumedServer(Record):
    """How the measured server was simulated."""

    policy: Literal["continuous", "static", "dynamic"]
    max_delay_ms: float | None = Field(None, description="of a dynamic one")
    release: Literal["batch", "own"] | None = Field(description="of either but continuous, as pad")
    pad: bool | None
    prefill: Literal["mixed", "separate"] | None = Field(
        description="of a continuous one, as are all below replicas"
    )
    slots: int = Field(ge=1)
    replicas: int = Field(ge=1)
    max_batched_tokens: int | None = Field(ge=1)
    kv_tokens: int | None = Field(ge=1)
    block_tokens: int | None = Field(ge=1)


class ErrorShares(Record):
    """Simulated over measured, less one."""

    latency_mean: float
    latency_p95: float
    ttft_mean: float
    busy: float | None = Field(
        description="time with some request there; null where arrivals decide it"
    )


class HeldOut(Record):
    """What a fit to the first requests says about the rest."""

    fitted: int
    judged: int
    errors: ErrorShares


class CalibrationFile(Record):
    """The content of ``calibration.json`` and of ``calibrate --json``."""

    schema_: Literal["slotwise/calibration/v1"] = Field(SCHEMA, alias="schema")
    slotwise: str = Field(description="the version that fitted it")
    files: list[InputFile]
    format: str = Field(description="of the log")
    model: str | None = Field(description="that was served, where the log names one")
    measured_on: str | None = Field(description="first arrival, where the log's clock tells")
    requests: int = Field(description="that it was fitted to")
    left_out: dict[str, int] = Field(description="rows of the log that were not, by reason")
    server: AssumedServer
    batch: tuple[int, int] = Field(
        description="sequences decoding at once on one server, 5th and 95th percentile over time"
    )
    terms: dict[str, FittedTerm] = Field(description="in milliseconds; bend as a share of base_ms")
    bend_seqs: int | None = Field(description="batch size at which the cost bends")
    cost: Annotated[Step, AfterValidator(_in_bounds)] = Field(
        description="as the simulator takes it; milliseconds"
    )
    errors: ErrorShares = Field(description="on the requests it was fitted to")
    preemptions: int = Field(
        description="in the simulation of those; then intervals are too narrow"
    )
    hold_out: HeldOut | None = Field(description="null where half of the run tells too little")
    notes: list[str] = Field(description="what a reader of the figures must know")
    quality: str = Field(description="how good it is, in one line")

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )

    @model_validator(mode="after")
    def _follows(self) -> CalibrationFile:
        from slotwise_sim.fitting import step_of

        values = {name: term.value for name, term in self.terms.items()}
        needed = {"base_ms"} if self.bend_seqs is None else {"base_ms", "bend"}
        told = needed <= values.keys() and step_of(values, self.bend_seqs)[0]
        if not (told and _same(told, self.cost)):
            raise ValueError("cost does not follow from terms: edited by hand?")
        return self

    @property
    def reliable(self) -> bool:
        """Whether no error is above `RELIABLE`: of what it was fitted to, and what was held out."""
        return self.off <= RELIABLE

    @property
    def off(self) -> float:
        """The largest of those errors, as a share without sign."""
        judged = [self.errors] if self.hold_out is None else [self.errors, self.hold_out.errors]
        return max(
            abs(error)
            for errors in judged
            for error in (errors.latency_mean, errors.latency_p95, errors.ttft_mean)
        )

    @property
    def source(self) -> str:
        """What it was fitted to, in one line."""
        served = f"{self.model}, " if self.model else ""
        day = f", measured on {self.measured_on[:10]}" if self.measured_on else ""
        names = ", ".join(file.name for file in self.files)
        return f"slotwise calibrate: {served}{self.requests} requests of {names}{day}"

    @property
    def kv_tokens(self) -> int | None:
        """What the measured server's KV cache held, if told."""
        return self.server.kv_tokens


def _same(one: Step, other: Step) -> bool:
    """Whether two costs are equal but for rounding."""
    figures, others = (
        [-1.0 if figure is None else figure for figure in (*plain, *chain(*pieces))]
        for *plain, pieces in (astuple(one), astuple(other))
    )
    return len(figures) == len(others) and all(
        math.isclose(figure, same, rel_tol=_SAME)
        for figure, same in zip(figures, others, strict=True)
    )


def write_calibration(calibration: CalibrationFile, path: Path) -> Path:
    """Writes the file in one step; the same calibration gives the same bytes.

    Raises:
        InputError: The place cannot be written.
    """
    return write_file(path, as_json(calibration))


def read_calibration(path: Path) -> CalibrationFile:
    """Reads back what `write_calibration` wrote.

    Raises:
        InputError: There is no such file, or it is no calibration of this version.
    """
    again = "Run `slotwise calibrate` again"
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError("is too large for a calibration", where=str(path))
        content = path.read_bytes()
        plain = json.loads(content)
    except FileNotFoundError:
        raise InputError(
            "no such file", where=str(path), hint="`slotwise calibrate RUN` writes one"
        ) from None
    except OSError as error:
        raise InputError("cannot be read", where=str(path), why=error.strerror or "") from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON", where=str(path), hint=again) from None
    if not isinstance(plain, dict) or "schema" not in plain:
        raise InputError("is not a calibration", where=str(path), hint=again)
    found = plain["schema"]
    if found != SCHEMA:
        raise InputError(
            f"has schema {str(found)[:60]!r}",
            where=str(path),
            why=f"this version reads {SCHEMA}",
            hint=again,
        )
    try:
        return CalibrationFile.model_validate_json(content, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in fault["loc"])
        raise InputError(
            f"{field[:120]} is wrong" if field else "is not a calibration",
            where=str(path),
            why=str(fault["msg"]).removeprefix("Value error, "),
            hint=again,
        ) from None
