"""Fits a step cost to what a server was seen to do, by simulating the very same requests.

Known of every request are its arrival, its first token, its end and its lengths. The server is
simulated with a guessed cost, and the guess is improved until first tokens and ends fall where they
were seen: a robust least squares (soft L1) over two residuals a request, the instant of its first
token and the time from there to its end. How long a request waited, who ran beside it and who was
preempted is the simulator's to find; no batch size is assumed.

How well an instant can be told falls with the iterations it took to get there, so a residual over
a time t counts in units of ``sqrt(t * iteration)``, and then in the median of its kind.

Terms are fitted as shares: 1 is the value at which a term alone fills an average iteration. So one
width and one notion of "wide" serve them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Literal

import numpy as np

from slotwise_sim.costs import Piece, Step
from slotwise_sim.memory import Memory
from slotwise_sim.observed import (
    Measured,
    apart,
    batch_range,
    busy_s,
    most_at_once,
    shared,
    uncached_tokens,
)
from slotwise_sim.policies import Continuous, Policy
from slotwise_sim.simulation import simulate
from slotwise_sim.workload import Bools, Floats, rows_of

FEWEST_REQUESTS = 20
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

_ALIKE = 1.5  # batches that differ by less tell nothing of what a sequence costs
_WORTH = 0.1  # of the squared residuals: what a further term must take away
_TOLD = 0.25  # half the width of an interval, as a share
_WIDER = 1.5  # intervals, until they cover simulated truths; see `_half_widths`
_BLOCKS = 10
_OVERHEAD = 10  # iterations: a share of 1
_BEND = 5.0  # likewise: its effect is small, since few iterations run nearly empty
_MOST_SAVED = 0.95
_WIDE, _NARROW = 0.06, 0.007  # shares over which slopes and residuals are averaged
_MOST_STEPS, _STILL = 12, 0.002


class UnidentifiableError(ValueError):
    """The requests do not tell what an iteration costs; the text says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that was measured, as it is simulated; see `simulate`."""

    policy: Policy
    slots: int
    replicas: int = 1
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A term with its 95 % interval, which has no width where the term was not fitted."""

    value: float
    low: float
    high: float
    how: How


@dataclass(frozen=True, slots=True)
class Errors:
    """Simulated over measured, less one: relative errors of what a user feels.

    ``makespan`` is that of the last end, counted from the first arrival.
    """

    latency_mean: float
    latency_p95: float
    ttft_mean: float
    makespan: float


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
    """

    step: Step
    overhead_ms: float
    terms: Mapping[str, Term]
    bend_seqs: int | None
    batch: tuple[int, int]
    errors: Errors


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
    ``overhead_ms``. ``per_kv_token_ms``, and then a bend over the batch size, are added only if
    they take away a tenth of the squared residuals of the times from first token to end, and more
    than chance would. ``overhead_ms`` and then ``per_prefill_token_ms`` are left at 0 if their
    interval is wider than half an iteration. ``per_prefill_token2_ms`` and ``prefill_base_ms`` are
    not fitted.

    Args:
        measured: The requests.
        server: How they were served. Where no more requests were ever there than it has slots, its
            slots limited nothing, and limit nothing in the simulation.
        given: Terms that are not to be fitted, by names of `GIVABLE`.
        fit_rows: Requests whose residuals count, shape (n,); None is all. All are simulated.
        on_progress: Hears how many fits of at most how many are done.

    Raises:
        UnidentifiableError: Too few requests, or the batch was of much the same size throughout, so
            that ``base_ms`` and ``per_seq_ms`` cannot be told apart.
        ValueError: A given term has no such name, or a value out of range.
        NeverFitsError: A request is larger than the memory.
    """
    problem = _problem(measured, server, dict(given or {}), fit_rows)
    bends = [bend for bend in BENDS if bend < problem.batch[1]]
    at_most = 4 + len(bends)
    done = 0

    def fitted(free: Sequence[str], start: Mapping[str, float], bend: int | None = None) -> _Fit:
        nonlocal done
        fit = _fit(problem, free, start, bend)
        done += 1
        if on_progress is not None:
            on_progress(done, at_most)
        return fit

    start = _start(problem)
    best = fitted(list(start), start)
    if "per_kv_token_ms" not in problem.given:
        more = {**best.shares, "per_kv_token_ms": 0.05}
        best = _worth_it(problem, best, [fitted(list(more), more)])
    if bends:
        more = {**best.shares, "bend": 0.05}
        best = _worth_it(problem, best, [fitted(list(more), more, bend) for bend in bends])
    for term, told in (("overhead_ms", _TOLD / _OVERHEAD * 2), ("per_prefill_token_ms", _TOLD)):
        if term in best.shares and _half_widths(problem, best)[term] > told:
            less = {t: share for t, share in best.shares.items() if t != term}
            best = fitted(list(less), less, best.bend_seqs)
    if _half_widths(problem, best).get("per_seq_ms", 0.0) > _TOLD:
        raise UnidentifiableError(
            "per_seq_ms is not identifiable: its interval is wider than half an iteration"
            f" ({_many(problem.batch)} sequences decoded in 90 % of the time)"
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
    return _errors(calibration.step, calibration.overhead_ms, measured, server, rows)


# --- the problem ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    """What of a fit does not change while it runs.

    Attributes:
        measured: As it was measured.
        apart: The same, with idle stretches in between drawn out.
        server: As it is simulated.
        given: Terms that are not fitted.
        rows: Requests whose residuals count.
        iteration_s: What an iteration takes, about.
        unit: A share of 1 of each term.
        batch: See `Calibration`.
    """

    measured: Measured
    apart: Measured
    server: Server
    given: Mapping[str, float]
    rows: Bools
    iteration_s: float
    unit: Mapping[str, float]
    batch: tuple[int, int]

    @property
    def spans(self) -> Bools:
        """Rows whose time from first token to end counts."""
        return self.rows & (self.measured.workload.output_tokens > 1)


def _problem(
    measured: Measured, server: Server, given: Mapping[str, float], fit_rows: Bools | None
) -> _Problem:
    unknown = given.keys() - set(GIVABLE)
    if unknown:
        raise ValueError(f"{min(unknown)!r} cannot be given; what can is {', '.join(GIVABLE)}")
    workload = measured.workload
    rows = np.ones(len(workload), dtype=np.bool_) if fit_rows is None else fit_rows
    longer = int((rows & (workload.output_tokens > 1)).sum())
    if longer < FEWEST_REQUESTS:
        raise UnidentifiableError(
            f"a cost is fitted to at least {FEWEST_REQUESTS} requests of two tokens and more,"
            f" and there are {longer}"
        )
    counted = _only(measured, rows)
    beside = shared(counted, server.replicas)
    if not len(beside.rows):
        raise UnidentifiableError("first and last tokens came together: there is nothing to fit")
    batch = batch_range(counted, server.replicas)
    if not {"base_ms", "per_seq_ms"} & given.keys() and batch[1] < _ALIKE * batch[0]:
        raise UnidentifiableError(
            "all the same batch size: per_seq_ms is not identifiable"
            f" ({_many(batch)} sequences decoded in 90 % of the time)"
        )
    iteration_s = float(np.percentile(beside.span_s / beside.iterations, 10))
    time_ms = 1000 * float(beside.span_s.sum())

    def alone(per_iteration: Floats) -> float:
        """The milliseconds of each at which these alone took all the time."""
        return time_ms / max(1.0, float(per_iteration.sum()))

    prompts = max(1.0, float(uncached_tokens(counted.workload).sum()))
    most_s = _OVERHEAD * iteration_s * int(rows.sum())  # where prompts are few, so long for each
    return _Problem(
        measured=measured,
        apart=apart(measured),
        server=_as_met(server, measured),
        given=given,
        rows=rows,
        iteration_s=iteration_s,
        unit={
            "base_ms": alone(beside.iterations),
            "per_seq_ms": alone(beside.sequences),
            "per_kv_token_ms": alone(beside.held_tokens),
            "per_prefill_token_ms": min(busy_s(counted), most_s) * 1000 * server.replicas / prompts,
            "overhead_ms": 1000 * iteration_s * _OVERHEAD,
            "bend": _BEND,
        },
        batch=batch,
    )


def _only(measured: Measured, rows: Bools) -> Measured:
    chosen = np.flatnonzero(rows)
    return Measured(
        rows_of(measured.workload, chosen), measured.first_token_s[chosen], measured.end_s[chosen]
    )


def _as_met(server: Server, measured: Measured) -> Server:
    """The server without its limit of slots where that limit was never met."""
    unlimited = isinstance(server.policy, Continuous) and (
        most_at_once(measured) <= server.slots * server.replicas
    )
    return replace(server, slots=len(measured.workload)) if unlimited else server


def _many(batch: tuple[int, int]) -> str:
    return f"{batch[0]}" if batch[0] == batch[1] else f"{batch[0]} to {batch[1]}"


def _start(problem: _Problem) -> dict[str, float]:
    """Shares to start from: a regression of each span on what ran beside it."""
    from scipy.optimize import nnls

    counted = _only(problem.measured, problem.rows)
    beside = shared(counted, problem.server.replicas)
    columns = {
        "base_ms": beside.iterations,
        "per_seq_ms": beside.sequences,
        "per_prefill_token_ms": beside.prefilled_tokens,
    }
    if not uncached_tokens(counted.workload).any():
        del columns["per_prefill_token_ms"]
    free = [term for term in columns if term not in problem.given]
    left_s = beside.span_s - sum(
        problem.given[term] * column / 1000
        for term, column in columns.items()
        if term in problem.given
    )
    design = np.stack([columns[t] * problem.unit[t] / 1000 for t in free], axis=1)
    scale = np.sqrt(problem.iteration_s * beside.span_s)
    design, left = design / scale[:, None], left_s / scale
    weight = np.ones(len(left))
    shares = np.zeros(len(free))
    for _ in range(5):
        shares = nnls(design * weight[:, None], left * weight)[0]
        off = design @ shares - left
        weight = (1 + (off / _spread(off)) ** 2) ** -0.25
    start = dict(zip(free, np.maximum(shares, 0.02).tolist(), strict=True))
    if "overhead_ms" not in problem.given:
        start["overhead_ms"] = 0.05
    return start


# --- one fit -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Near:
    """The residuals near some shares, those of first tokens before those of spans.

    Attributes:
        shares: Where.
        first: Of first tokens, in their units.
        span: Of spans, in theirs.
        scale: The median of their kind, for each of both in a row.
        slopes: By shares, over the scale.
    """

    shares: Floats
    first: Floats
    span: Floats
    scale: Floats
    slopes: Floats

    @property
    def off(self) -> Floats:
        """Residuals over their scale."""
        return np.concatenate([self.first, self.span]) / self.scale

    @property
    def weight(self) -> Floats:
        """What makes soft L1 of a square."""
        return np.asarray(1 / np.sqrt(1 + self.off**2))


@dataclass(frozen=True, slots=True)
class _Fit:
    """Where a fit ended."""

    shares: Mapping[str, float]
    bend_seqs: int | None
    near: _Near


def _fit(
    problem: _Problem, free: Sequence[str], start: Mapping[str, float], bend_seqs: int | None
) -> _Fit:
    """Gauss-Newton steps, each a weighted least squares over shares >= 0."""
    from scipy.optimize import nnls

    most = np.array([_MOST_SAVED / _BEND if term == "bend" else np.inf for term in free])
    near = _explore(problem, free, np.array([start[term] for term in free]), bend_seqs)
    for _ in range(_MOST_STEPS):
        root = np.sqrt(near.weight)
        aim = nnls(near.slopes * root[:, None], (near.slopes @ near.shares - near.off) * root)[0]
        step = np.clip(np.minimum(aim, most) - near.shares, -0.3, 0.3)
        near = _explore(problem, free, near.shares + step, bend_seqs)
        if np.abs(step).max() < _STILL:
            break
    return _Fit(dict(zip(free, near.shares.tolist(), strict=True)), bend_seqs, near)


def _explore(
    problem: _Problem, free: Sequence[str], shares: Floats, bend_seqs: int | None
) -> _Near:
    """Residuals and slopes by two-level factorial designs, in which every run tells every slope.

    Simulated instants jump by an iteration as shares move. Over 2^k runs the jumps average out:
    over a narrow width for the residuals, over a wide one for the slopes.
    """
    signs = np.array(list(product((-1.0, 1.0), repeat=len(free))))

    def runs(width: float) -> Floats:
        around = np.maximum(shares, width) + width * signs
        return np.array([np.concatenate(_residuals(problem, free, x, bend_seqs)) for x in around])

    first, span = np.split(runs(_NARROW).mean(axis=0), [int(problem.rows.sum())])
    scale = np.repeat([_spread(first), _spread(span)], [len(first), len(span)])
    slopes = runs(_WIDE).T @ signs / (len(signs) * _WIDE)
    return _Near(shares, first, span, scale, slopes / scale[:, None])


def _spread(residuals: Floats) -> float:
    """A standard deviation that outliers do not move."""
    return max(1e-6, 1.4826 * float(np.median(np.abs(residuals))))


def _residuals(
    problem: _Problem, free: Sequence[str], shares: Floats, bend_seqs: int | None
) -> tuple[Floats, Floats]:
    """Of first tokens and of spans, simulated less measured, for the requests that count."""
    seen = problem.apart
    values = dict(zip(free, (shares * [problem.unit[term] for term in free]).tolist(), strict=True))
    step, overhead_ms = _step({**values, **problem.given}, bend_seqs)
    first_s, end_s = _replay(step, overhead_ms, seen, problem.server)
    wait_s = (seen.first_token_s - seen.workload.arrival_s)[problem.rows]
    span_s = (seen.end_s - seen.first_token_s)[problem.spans]
    first = (first_s - seen.first_token_s)[problem.rows]
    span = (end_s - first_s)[problem.spans] - span_s
    one_s = problem.iteration_s
    return first / np.sqrt(one_s * (wait_s + one_s)), span / np.sqrt(one_s * (span_s + one_s))


def _replay(
    step: Step, overhead_ms: float, seen: Measured, server: Server
) -> tuple[Floats, Floats]:
    """Simulated instants of first tokens and ends; requests reach the server late."""
    late = replace(seen.workload, arrival_s=seen.workload.arrival_s + overhead_ms / 1000)
    outcome = simulate(
        late,
        server.policy,
        step,
        slots=server.slots,
        replicas=server.replicas,
        memory=server.memory,
    )
    return outcome.first_token_s, outcome.end_s


def _step(values: Mapping[str, float], bend_seqs: int | None) -> tuple[Step, float]:
    """The cost and the overhead that terms stand for."""
    overhead_ms = values.get("overhead_ms", 0.0)
    plain = Step(
        base_ms=max(values["base_ms"], 1e-6),
        per_seq_ms=values.get("per_seq_ms", 0.0),
        per_kv_token_ms=values.get("per_kv_token_ms", 0.0),
        per_prefill_token_ms=values.get("per_prefill_token_ms", 0.0),
        per_prefill_token2_ms=values.get("per_prefill_token2_ms", 0.0),
        prefill_base_ms=values.get("prefill_base_ms"),
    )
    if bend_seqs is None:
        return plain, overhead_ms
    saved_ms = min(values["bend"], _MOST_SAVED) * plain.base_ms
    beyond = Piece(bend_seqs, plain.base_ms, plain.per_seq_ms, plain.per_kv_token_ms)
    bent = replace(
        plain,
        base_ms=plain.base_ms - saved_ms,
        per_seq_ms=plain.per_seq_ms + saved_ms / bend_seqs,
        pieces=(beyond,),
    )
    return bent, overhead_ms


def _worth_it(problem: _Problem, simple: _Fit, others: Sequence[_Fit]) -> _Fit:
    """The best of the others if it is worth its further term, else the simple one."""
    spread = _spread(simple.near.span)

    def cost(fit: _Fit) -> float:
        return float((np.sqrt(1 + (fit.near.span / spread) ** 2) - 1).sum())

    best = min(others, key=cost)
    worth = max(_WORTH, 10 / int(problem.rows.sum()))
    return best if cost(best) < (1 - worth) * cost(simple) else simple


# --- what comes of it ----------------------------------------------------------------------------


def _half_widths(problem: _Problem, fit: _Fit) -> Mapping[str, float]:
    """Half the 95 % intervals, as shares.

    The sandwich estimator (White, 1982) over blocks of consecutive arrivals, as requests that ran
    together err together. On simulated truths it covers too little, since what is left of the jumps
    in the slopes makes them look steeper than they are; widened by half, it covers some 92 %, and
    less where requests are preempted.
    """
    from scipy.stats import t as student

    near = fit.near
    arrival_s = problem.measured.workload.arrival_s
    row = np.concatenate([np.flatnonzero(problem.rows), np.flatnonzero(problem.spans)])
    n = int(problem.rows.sum())
    order = np.empty(len(arrival_s), dtype=np.int64)
    counted = np.flatnonzero(problem.rows)
    order[counted[np.argsort(arrival_s[counted], kind="stable")]] = np.arange(n)
    scores = np.zeros((_BLOCKS, len(fit.shares)))
    np.add.at(scores, order[row] * _BLOCKS // n, near.slopes * (near.weight * near.off)[:, None])
    bread = np.linalg.pinv(near.slopes.T @ (near.slopes * near.weight[:, None]))
    variance = np.diag(bread @ scores.T @ scores @ bread) * _BLOCKS / (_BLOCKS - 1)
    wide = _WIDER * student.ppf(0.975, _BLOCKS - 1) * np.sqrt(np.maximum(variance, 0.0))
    return dict(zip(fit.shares, wide.tolist(), strict=True))


def _calibration(problem: _Problem, fit: _Fit) -> Calibration:
    wide = _half_widths(problem, fit)
    values = {term: share * problem.unit[term] for term, share in fit.shares.items()}
    terms = {}
    for term in TERMS:
        if term in values:
            value, half = values[term], wide[term] * problem.unit[term]
            terms[term] = Term(value, max(0.0, value - half), value + half, "fitted")
        elif term in problem.given:
            value = problem.given[term]
            terms[term] = Term(value, value, value, "given")
        elif term in problem.unit and term != "bend":
            terms[term] = Term(0.0, 0.0, 0.0, "not_identified")
    step, overhead_ms = _step({**values, **problem.given}, fit.bend_seqs)
    return Calibration(
        step=step,
        overhead_ms=overhead_ms,
        terms=terms,
        bend_seqs=fit.bend_seqs,
        batch=problem.batch,
        errors=_errors(step, overhead_ms, problem.measured, problem.server, problem.rows),
    )


def _errors(
    step: Step, overhead_ms: float, measured: Measured, server: Server, rows: Bools
) -> Errors:
    moved = apart(measured)
    shift_s = moved.workload.arrival_s - measured.workload.arrival_s
    first_s, end_s = (
        (instants - shift_s)[rows]
        for instants in _replay(step, overhead_ms, moved, _as_met(server, measured))
    )
    arrival_s = measured.workload.arrival_s[rows]
    seen_first_s, seen_end_s = measured.first_token_s[rows], measured.end_s[rows]
    origin_s = measured.workload.arrival_s.min()
    return Errors(
        latency_mean=_off((end_s - arrival_s).mean(), (seen_end_s - arrival_s).mean()),
        latency_p95=_off(_p95(end_s - arrival_s), _p95(seen_end_s - arrival_s)),
        ttft_mean=_off((first_s - arrival_s).mean(), (seen_first_s - arrival_s).mean()),
        makespan=_off(end_s.max() - origin_s, seen_end_s.max() - origin_s),
    )


def _off(simulated: float, seen: float) -> float:
    return float(simulated / seen - 1) if seen > 0 else 0.0


def _p95(values: Floats) -> float:
    return float(np.sort(values)[math.ceil(0.95 * (len(values) - 1))])
