"""A probe as a diagnosis uses it: what it says of the server, and what the report shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from slotwise_workflows.costs import CostRecord, StatedCost
from slotwise_workflows.costs.calibrated import cost_of
from slotwise_workflows.errors import InputError
from slotwise_workflows.given import Given
from slotwise_workflows.probe.files import RESULT
from slotwise_workflows.probe.findings import ReplayFigures, ReplayTimes
from slotwise_workflows.probe.model import SCHEMA, ProbeResult
from slotwise_workflows.result import Prediction, ProbeFigures

_LARGEST = 256 << 20
_AGAIN = "Run `slotwise probe URL --output-dir DIR` again"


def with_probe(given: Given, result: ProbeResult) -> Given:
    """What is given, with what a probe found where nothing was told.

    Args:
        given: What the user told; it wins.
        result: The probe.
    """
    probe = figures_of(result)
    if not probe.trusted:
        return replace(given, probe=probe)
    cost = _cost(result)
    told = given.cost is not None or given.ms_per_token is not None
    return replace(
        given,
        probe=probe,
        cost=given.cost if told or not probe.cost_counts else cost,
        release=given.release or result.release,
        max_delay_ms=result.delay_ms if given.max_delay_ms is None else given.max_delay_ms,
    )


def figures_of(result: ProbeResult) -> ProbeFigures:
    """What a report shows of a probe."""
    cost = _cost(result)
    held_out, errors = _errors(result)
    return ProbeFigures(
        url=result.url,
        kind=result.endpoint.kind,
        model=result.model,
        batching=result.batching,
        confidence=result.confidence,
        reason=result.reason,
        remarks=[own for own in result.remarks if own.code != result.reason.code],
        slots=result.slots,
        slots_at_least=result.slots_at_least,
        release=result.release,
        gather_s=result.gather_s,
        requests_sent=result.requests_sent,
        output_tokens=result.output_tokens,
        timeline=result.timeline,
        cost=None if cost is None else CostRecord.of(cost),
        held_out=held_out,
        cost_errors=errors,
        cost_counts=_reliable(result),
        prediction=None if result.replay is None else _prediction(result.replay),
    )


def read_probe(path: Path) -> ProbeResult:
    """Reads back what `slotwise probe` wrote.

    Args:
        path: The file, or the directory it is in.

    Raises:
        InputError: There is no such file, or it is no probe of this version.
    """
    file = path / RESULT if path.is_dir() else path
    try:
        if file.stat().st_size > _LARGEST:
            raise InputError("is too large for a probe", where=str(file))
        content = file.read_bytes()
        plain = json.loads(content)
    except FileNotFoundError:
        raise InputError(
            "no such file", where=str(file), hint="Give a URL, or what `slotwise probe` wrote"
        ) from None
    except OSError as error:
        raise InputError("cannot be read", where=str(file), why=error.strerror or "") from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON", where=str(file), hint=_AGAIN) from None
    found = plain.get("schema") if isinstance(plain, dict) else None
    if found != SCHEMA:
        raise InputError(
            "is not a probe", where=str(file), why=f"its schema is not {SCHEMA}", hint=_AGAIN
        )
    try:
        return ProbeResult.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in fault["loc"])
        raise InputError(
            f"{field[:120]} is wrong", where=str(file), why=str(fault["msg"]), hint=_AGAIN
        ) from None


def _cost(result: ProbeResult) -> StatedCost | None:
    if result.cost is None or result.cost.calibration is None:
        return None
    return cost_of(result.cost.calibration, result.url)


def _errors(result: ProbeResult) -> tuple[int, dict[str, float]]:
    """How many requests the fitted cost is judged by, and how far it is off on them."""
    calibration = None if result.cost is None else result.cost.calibration
    if calibration is None:
        return 0, {}
    judged = calibration.hold_out
    errors = calibration.errors if judged is None else judged.errors
    told = errors.model_dump(include={"latency_mean", "latency_p95", "ttft_mean"})
    return 0 if judged is None else judged.judged, told


def _reliable(result: ProbeResult) -> bool:
    calibration = None if result.cost is None else result.cost.calibration
    return calibration is not None and calibration.reliable


def _prediction(replay: ReplayFigures) -> Prediction:
    return Prediction(
        window=replay.window,
        requests=replay.answered,
        failed=replay.failed,
        rate_scale=replay.rate_scale,
        length_scale=replay.length_scale,
        measured=_known(replay.measured),
        simulated={} if replay.simulated is None else _known(replay.simulated),
        client_bottleneck=replay.client.client_bottleneck,
    )


def _known(times: ReplayTimes) -> dict[str, float]:
    return {name: value for name, value in times.model_dump().items() if value is not None}
