"""Fits a step cost to what a server was seen to do, by simulating the very same requests.

Known of every request are its arrival, its first token, its end and its lengths. How long a request
waited, who ran beside it and who was preempted is the simulator's to find; no batch size is
assumed. Here is chosen which terms a run tells; `fitting` fits them, and `replay` simulates the
result and holds it against what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from slotwise_sim.costs import Step
from slotwise_sim.fitting import (
    MOST_SAVED,
    OVERHEAD,
    Fit,
    Problem,
    UnidentifiableError,
    batch_text,
    fit,
    half_widths,
    problem_of,
    spread,
    start_of,
    step_of,
)
from slotwise_sim.observed import Measured
from slotwise_sim.replay import Errors, Server, errors_of, replay
from slotwise_sim.workload import Bools

BENDS = (4, 8, 16, 32, 64, 128)
"""Batch sizes at which the cost of an iteration may bend."""

How = Literal["fitted", "given", "not_identified"]
_OF_STEP = tuple(field.name for field in fields(Step) if field.name != "pieces")
GIVABLE = (*_OF_STEP, "overhead_ms")
TERMS = (*GIVABLE, "bend")
"""The terms of a step cost, and two more.

``overhead_ms``: from a request's logged arrival to where the server can admit it, such as the
network, tokenisation, or a scheduler that plans one iteration ahead. It is no part of the cost.

``bend``: the share of ``base_ms`` that an empty batch would save. The saving shrinks with every
sequence and is gone at the bend, as in a mixture of experts once all experts are in use.
"""

_WORTH = 0.1  # of the squared residuals: what a further term must take away
_TOLD = 0.25  # half the width of an interval, as a share


@dataclass(frozen=True, slots=True)
class Term:
    """A term with its 95 % interval, which has no width where the term was not fitted."""

    value: float
    low: float
    high: float
    how: How


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted cost.

    Attributes:
        step: The cost.
        overhead_ms: See `TERMS`.
        terms: By name, as in `TERMS`; those that only a user can give, and a bend, if there.
        bend_seqs: The batch size at which the cost bends; None if it does not.
        batch: Sequences decoding at once on one server, 5th and 95th percentile over time.
        errors: On the requests it was fitted to.
        preemptions: In the simulation at this cost. Where there are any, the intervals are too
            narrow: see `half_widths`.
    """

    step: Step
    overhead_ms: float
    terms: Mapping[str, Term]
    bend_seqs: int | None
    batch: tuple[int, int]
    errors: Errors
    preemptions: int


@dataclass(frozen=True, slots=True)
class HoldOut:
    """What a calibration on the first requests says about the rest.

    Attributes:
        fitted: Requests it was fitted to.
        judged: The rest.
        errors: On the rest.
    """

    fitted: int
    judged: int
    errors: Errors


def calibrate(
    measured: Measured,
    server: Server,
    *,
    given: Mapping[str, float] | None = None,
    fit_rows: Bools | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Fits the cost of an iteration.

    Fitted are ``base_ms``, ``per_seq_ms``, ``per_prefill_token_ms`` (where prompts are known) and
    ``overhead_ms``. ``per_kv_token_ms`` or a bend over the batch size, and then the other of them,
    are added only if they take away a tenth of the squared residuals of the times from first token
    to end, and more than chance would. ``overhead_ms`` and then ``per_prefill_token_ms`` are left
    at 0 if their interval is wider than half an iteration. ``per_prefill_token2_ms`` and
    ``prefill_base_ms`` are not fitted.

    Args:
        measured: The requests.
        server: How they were served. Where no more requests were ever there than it has slots, its
            slots limited nothing, and limit nothing in the simulation.
        given: Terms that are not to be fitted, by names of `GIVABLE`.
        fit_rows: Requests whose residuals count, shape (n,); None is all. All are simulated.
        on_progress: Hears how many fits of at most how many are done.

    Raises:
        UnidentifiableError: Too few requests, or the batch was of much the same size throughout, so
            that ``base_ms`` and ``per_seq_ms`` cannot be told apart, or every term is given.
        ContradictionError: More requests were decoding at once than the server has slots.
        ValueError: A given term has no such name, or a value out of range.
        NeverFitsError: A request is larger than the memory.
    """
    given = dict(given or {})
    unknown = given.keys() - set(GIVABLE)
    if unknown:
        raise ValueError(f"{min(unknown)!r} cannot be given; what can is {', '.join(GIVABLE)}")
    problem = problem_of(measured, server, given, fit_rows)
    bends = [bend for bend in BENDS if bend < problem.batch[1]]
    at_most, done = 4 + len(bends) + max(1, len(bends)), 0

    def fitted(start: Mapping[str, float], bend: int | None = None) -> Fit:
        nonlocal done
        found = fit(problem, start, bend)
        done += 1
        if on_progress is not None:
            on_progress(done, at_most)
        return found

    best = _chosen(problem, bends, fitted)
    if half_widths(problem, best).get("per_seq_ms", 0.0) > _TOLD:
        beside = f" beside the given {' and '.join(given)}" if given else ""
        raise UnidentifiableError(
            f"per_seq_ms is not identifiable{beside}: its interval is wider than half an iteration"
            f" ({batch_text(problem.batch)})"
        )
    if on_progress is not None:
        on_progress(at_most, at_most)
    return _calibration(problem, best)


def hold_out(
    measured: Measured, server: Server, *, given: Mapping[str, float] | None = None
) -> HoldOut:
    """Fits the first half of the requests by arrival, simulates all, and judges the second half.

    Of the second half the fit sees arrivals and lengths. When its requests were served tells it one
    thing alone: in which stretches the server was empty, and whether its slots were ever short.

    Raises:
        UnidentifiableError: The first half does not tell what an iteration costs.
        ContradictionError: More requests were decoding at once than the server has slots.
    """
    n = len(measured.workload)
    first = np.zeros(n, dtype=np.bool_)
    first[np.argsort(measured.workload.arrival_s, kind="stable")[: n // 2]] = True
    calibration = calibrate(measured, server, given=given, fit_rows=first)
    return HoldOut(n // 2, n - n // 2, errors(calibration, measured, server, ~first))


def errors(calibration: Calibration, measured: Measured, server: Server, rows: Bools) -> Errors:
    """How far a simulation at a fitted cost is off, on some of the measured requests.

    Args:
        calibration: The cost.
        measured: All requests; all are simulated.
        server: How they were served.
        rows: Which are compared, shape (n,).
    """
    replayed = replay(calibration.step, calibration.overhead_ms, measured, server)
    return errors_of(replayed, measured, rows)


def _chosen(problem: Problem, bends: Sequence[int], fitted: Callable[..., Fit]) -> Fit:
    """Fits the terms that are always fitted, adds what is worth it, drops what is not told."""
    start = start_of(problem)
    if not start and "per_kv_token_ms" in problem.given:
        raise UnidentifiableError("every term is given: nothing is left to fit")
    simple = fitted(start)

    def held(of: Fit) -> list[Fit]:
        """With a cost of the tokens held, too."""
        shares = {**of.shares, "per_kv_token_ms": 0.05}
        return [] if "per_kv_token_ms" in problem.given else [fitted(shares, of.bend_seqs)]

    def bent(of: Fit) -> list[Fit]:
        """With a bend, too."""
        return [fitted({**of.shares, "bend": 0.05}, bend) for bend in bends]

    # Either may pass for the other, so that neither is tried only after the other is in.
    best = _worth_it(problem, simple, [*held(simple), *bent(simple)])
    if best is not simple:
        best = _worth_it(problem, best, held(best) if best.bend_seqs else bent(best))
    for term, told in (("overhead_ms", _TOLD / OVERHEAD * 2), ("per_prefill_token_ms", _TOLD)):
        if term in best.shares and half_widths(problem, best)[term] > told:
            less = {t: share for t, share in best.shares.items() if t != term}
            best = fitted(less, best.bend_seqs)
    return best


def _worth_it(problem: Problem, simple: Fit, others: Sequence[Fit]) -> Fit:
    """The best of the others if it is worth its further term, else the simple one."""
    scale = spread(simple.near.span)

    def cost(of: Fit) -> float:
        return float((np.sqrt(1 + (of.near.span / scale) ** 2) - 1).sum())

    if not others:
        return simple
    best = min(others, key=cost)
    worth = max(_WORTH, 10 / int(problem.rows.sum()))
    return best if cost(best) < (1 - worth) * cost(simple) else simple


def _calibration(problem: Problem, best: Fit) -> Calibration:
    wide = half_widths(problem, best)
    values = {term: share * problem.unit[term] for term, share in best.shares.items()}
    terms = {}
    for term in TERMS:
        if term in values:
            value, half = values[term], wide[term] * problem.unit[term]
            most = MOST_SAVED if term == "bend" else math.inf
            terms[term] = Term(value, max(0.0, value - half), min(most, value + half), "fitted")
        elif term in problem.given:
            value = problem.given[term]
            terms[term] = Term(value, value, value, "given")
        elif term in problem.unit and term != "bend":
            terms[term] = Term(0.0, 0.0, 0.0, "not_identified")
    step, overhead_ms = step_of({**values, **problem.given}, best.bend_seqs)
    replayed = replay(step, overhead_ms, problem.measured, problem.server)
    return Calibration(
        step=step,
        overhead_ms=overhead_ms,
        terms=terms,
        bend_seqs=best.bend_seqs,
        batch=(math.ceil(problem.batch[0]), math.ceil(problem.batch[1])),
        errors=errors_of(replayed, problem.measured, problem.rows),
        preemptions=replayed.preemptions,
    )
