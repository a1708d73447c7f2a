"""Fits, holds out, and says how good the fit is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal, NoReturn

from slotwise_sim.calibration import Calibration, HoldOut
from slotwise_sim.fitting import ContradictionError, TooFewError, UnidentifiableError
from slotwise_sim.memory import NeverFitsError
from slotwise_sim.policies import Continuous, Dynamic, Policy
from slotwise_sim.replay import Errors, Server
from slotwise_workflows.calibrate.file import (
    RELIABLE,
    AssumedServer,
    CalibrationFile,
    ErrorShares,
    FittedTerm,
    HeldOut,
    percent,
)
from slotwise_workflows.calibrate.timings import Timings, timings_of
from slotwise_workflows.errors import InputError
from slotwise_workflows.given import MOST_MS_PER_TOKEN
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
    except (UnidentifiableError, ContradictionError, NeverFitsError) as error:
        _refuse(error, timings, traffic, given or {})
    _check_unit(fitted, traffic)
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
    unreliable = _unreliable(fitted, judged)
    if unreliable:
        notes.append(f"{unreliable}: check --slots, --replicas, --kv-tokens and how it batched")
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
        quality="; ".join(filter(None, (unreliable, _quality(fitted, judged)))),
    )


def _refuse(
    error: UnidentifiableError | ContradictionError | NeverFitsError,
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
    where = _names(traffic)
    if isinstance(error, ContradictionError):
        raise InputError(
            "contradicts what is told of the server",
            where=where,
            why=str(error),
            hint="Correct --slots or --replicas",
        ) from None
    if isinstance(error, TooFewError):
        raise InputError(
            "is too short", where=where, why=str(error), hint="Give a longer run"
        ) from None
    raise InputError(
        "does not tell what an iteration costs",
        where=where,
        why=str(error),
        hint=f"{_check(given)}. {_MEASURE_MORE}" if given else _MEASURE_MORE,
    ) from None


def _check_unit(fitted: Calibration, traffic: Traffic) -> None:
    """Refuses a term that no server has, and no workload file may state."""
    values = {name: term.value for name, term in fitted.terms.items() if term.how == "fitted"}
    if fitted.bend_seqs is not None:
        values["per_seq_ms"] = fitted.step.per_seq_ms  # below the bend, where it is larger
    for name, value in values.items():
        if value > MOST_MS_PER_TOKEN:
            raise InputError(
                "its times look like another unit",
                where=_names(traffic),
                why=f"{name} would be {value:.4g} ms, and {MOST_MS_PER_TOKEN:g} is the most",
                hint="Tell it: --time-unit, or --map 'latency=COLUMN [ms]'",
            )


def _names(traffic: Traffic) -> str:
    return ", ".join(file.name for file in traffic.files)


def _check(given: Mapping[str, float]) -> str:
    return f"Correct or leave out {', '.join(f'--fix {term}={ms:g}' for term, ms in given.items())}"


def _assumed(server: Server) -> AssumedServer:
    policy, memory = server.policy, server.memory
    return AssumedServer(
        policy=_policy_name(policy),
        max_delay_ms=policy.max_delay_ms if isinstance(policy, Dynamic) else None,
        release=None if isinstance(policy, Continuous) else policy.release,
        pad=None if isinstance(policy, Continuous) else policy.pad,
        prefill=policy.prefill if isinstance(policy, Continuous) else None,
        slots=server.slots,
        replicas=server.replicas,
        max_batched_tokens=policy.max_batched_tokens if isinstance(policy, Continuous) else None,
        kv_tokens=memory.kv_tokens if memory else None,
        block_tokens=memory.block_tokens if memory else None,
    )


def _policy_name(policy: Policy) -> Literal["continuous", "static", "dynamic"]:
    if isinstance(policy, Continuous):
        return "continuous"
    return "dynamic" if isinstance(policy, Dynamic) else "static"


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
        return f"on the requests it was fitted to: {_percentages(fitted.errors)}; no hold-out"
    return (
        f"on the {judged.judged} requests that were held out of the fit:"
        f" {_percentages(judged.errors)}"
    )


def _unreliable(fitted: Calibration, judged: HoldOut | None) -> str:
    """That a fit is not to be relied on, and why; empty where nothing speaks against it."""
    for of, requests in ((fitted, "it was fitted to"), (judged, "that were held out")):
        off = {n: e for n, e in _named(of.errors).items() if abs(e) > RELIABLE} if of else {}
        if off:
            return f"not to be relied on: {_told(off)} off on the requests {requests}"
    return ""


def _percentages(errors: Errors) -> str:
    busy = {} if errors.busy is None else {"time busy": errors.busy}
    return _told(_named(errors) | busy)


def _named(errors: Errors) -> dict[str, float]:
    return {
        "mean latency": errors.latency_mean,
        "p95 latency": errors.latency_p95,
        "mean time to first token": errors.ttft_mean,
    }


def _told(errors: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {percent(error)}" for name, error in errors.items())
