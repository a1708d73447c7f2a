"""Fits, holds out, and says how good the fit is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from slotwise_sim.calibration import Calibration, HoldOut
from slotwise_sim.fitting import UnidentifiableError
from slotwise_sim.memory import NeverFitsError
from slotwise_sim.policies import Continuous
from slotwise_sim.replay import Server
from slotwise_workflows.calibrate.file import (
    AssumedServer,
    CalibrationFile,
    ErrorShares,
    FittedTerm,
    HeldOut,
)
from slotwise_workflows.calibrate.timings import Timings, timings_of
from slotwise_workflows.errors import InputError
from slotwise_workflows.provenance import version
from slotwise_workflows.result import InputFile
from slotwise_workflows.traffic import Traffic
from slotwise_workflows.traffic.times import rfc3339

OnProgress = Callable[[int, int], None]

_MEASURE_MORE = (
    "Measure the server at other numbers of requests at once (1, 2, 4, ...), lengths mixed, or"
    " tell what you know with --fix TERM=MS"
)
_ABSORBED = "per_kv_token_ms is not told apart from per_seq_ms, which holds its share at the"


def calibrate_run(
    traffic: Traffic,
    server: Server,
    *,
    given: Mapping[str, float] | None = None,
    on_progress: OnProgress | None = None,
) -> CalibrationFile:
    """Fits a step cost to the requests of a log that have timings.

    Args:
        traffic: The log of the measured run.
        server: How it served.
        given: Terms that are not to be fitted.
        on_progress: Hears how many fits of at most how many are done.

    Raises:
        InputError: The log cannot be fitted to, or does not tell what an iteration costs.
    """
    from slotwise_sim.calibration import calibrate, hold_out

    timings = timings_of(traffic)
    try:
        fitted = calibrate(timings.measured, server, given=given, on_progress=on_progress)
    except (UnidentifiableError, NeverFitsError) as error:
        _refuse(error, timings, traffic, given or {})
    judged, notes = None, list(timings.notes)
    try:
        judged = hold_out(timings.measured, server, given=given)
    except UnidentifiableError as error:
        notes.append(f"no hold-out: the first half of the run tells too little ({error})")
    if fitted.terms["per_kv_token_ms"].how == "not_identified":
        notes.append(f"{_ABSORBED} lengths of this run")
    if fitted.terms["overhead_ms"].how == "not_identified":
        notes.append("overhead_ms is not told apart from prefill, which holds its share")
    if fitted.preemptions:
        notes.append(
            f"intervals are too narrow: requests were preempted, {fitted.preemptions} times in the"
            " simulation"
        )
    return CalibrationFile(
        slotwise=version(),
        files=[
            InputFile(name=Path(f.name).name, sha256=f.sha256, bytes=f.size) for f in traffic.files
        ],
        format=traffic.format,
        model=_model(traffic),
        measured_on=_measured_on(traffic),
        requests=len(timings.measured.workload),
        left_out={**{r: n for r, n in traffic.excluded.items() if n}, **timings.left_out},
        server=_assumed(server),
        batch=fitted.batch,
        terms={name: FittedTerm(**asdict(term)) for name, term in fitted.terms.items()},
        bend_seqs=fitted.bend_seqs,
        cost=fitted.step,
        errors=ErrorShares(**asdict(fitted.errors)),
        preemptions=fitted.preemptions,
        hold_out=_held_out(judged),
        notes=notes,
        quality=_quality(fitted, judged),
    )


def _refuse(
    error: UnidentifiableError | NeverFitsError,
    timings: Timings,
    traffic: Traffic,
    given: Mapping[str, float],
) -> NoReturn:
    if isinstance(error, NeverFitsError):
        raise InputError(
            "a request can never run in this memory",
            where=timings.places[error.row],
            why=f"it needs {error.needs} {error.unit}, and there are {error.holds}",
            hint="Correct --kv-tokens",
        ) from None
    raise InputError(
        "does not tell what an iteration costs",
        where=", ".join(file.name for file in traffic.files),
        why=str(error),
        hint=f"{_check(given)}. {_MEASURE_MORE}" if given else _MEASURE_MORE,
    ) from None


def _check(given: Mapping[str, float]) -> str:
    return f"Correct or leave out {', '.join(f'--fix {term}={ms:g}' for term, ms in given.items())}"


def _assumed(server: Server) -> AssumedServer:
    policy, memory = server.policy, server.memory
    return AssumedServer(
        policy="continuous" if isinstance(policy, Continuous) else "static",
        release=None if isinstance(policy, Continuous) else policy.release,
        pad=None if isinstance(policy, Continuous) else policy.pad,
        prefill=policy.prefill if isinstance(policy, Continuous) else None,
        slots=server.slots,
        replicas=server.replicas,
        max_batched_tokens=policy.max_batched_tokens if isinstance(policy, Continuous) else None,
        kv_tokens=memory.kv_tokens if memory else None,
        block_tokens=memory.block_tokens if memory else None,
    )


def _model(traffic: Traffic) -> str | None:
    names = traffic.table["gen_ai.response.model"].fill_null(traffic.table["gen_ai.request.model"])
    unique = names.drop_nulls().unique().to_list()
    return str(unique[0]) if len(unique) == 1 else None


def _measured_on(traffic: Traffic) -> str | None:
    if traffic.clock != "epoch":
        return None
    first = traffic.table["start_time"].min()
    return rfc3339(first) if isinstance(first, int) else None


def _held_out(judged: HoldOut | None) -> HeldOut | None:
    if judged is None:
        return None
    return HeldOut(
        fitted=judged.fitted, judged=judged.judged, errors=ErrorShares(**asdict(judged.errors))
    )


def _quality(fitted: Calibration, judged: HoldOut | None) -> str:
    if judged is None:
        return f"{_percentages(fitted)} off on the requests it was fitted to; no hold-out"
    return (
        f"fitted to the first {judged.fitted} requests it is {_percentages(judged)} off on the"
        f" other {judged.judged}"
    )


def _percentages(of: Calibration | HoldOut) -> str:
    named = {
        "mean latency": of.errors.latency_mean,
        "p95 latency": of.errors.latency_p95,
        "mean time to first token": of.errors.ttft_mean,
        "time busy": of.errors.busy,
    }
    told = [f"{name} {100 * error:+.1f} %" for name, error in named.items() if error is not None]
    return ", ".join(told)
