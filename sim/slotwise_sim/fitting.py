"""Least squares over simulations: what of a step cost fits measured first tokens and ends best.

The server is simulated with a guessed cost, and the guess is improved until first tokens and ends
fall where they were seen: a robust least squares (soft L1) over two residuals a request, the
instant of its first token and the time from there to its end.

How well an instant can be told falls with the iterations it took to get there, so a residual over
a time t counts in units of ``sqrt(t * iteration)``, and then in the median of its kind.

Terms are fitted as shares: 1 is the value at which a term alone fills an average iteration. So one
width and one notion of "wide" serve them all. Shares and their units are rounded: instants jump as
costs move, so the last bits, in which the linear algebra of two machines differs, would lead to
two fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from slotwise_sim.costs import Piece, Step
from slotwise_sim.observed import (
    Measured,
    apart,
    batch_range,
    shared,
    spans_s,
    stretches,
    uncached_tokens,
)
from slotwise_sim.replay import Server, as_met, simulated
from slotwise_sim.workload import Bools, Floats, rows_of

FEWEST_REQUESTS = 20
OVERHEAD = 10
"""Iterations: a share of 1 of ``overhead_ms``."""

MOST_SAVED = 0.95
"""The most that a bend may save of ``base_ms``, as a share."""

_ALIKE = 1.5  # batches that differ by less tell nothing of what a sequence costs
_WIDER = 1.5  # intervals, until they cover simulated truths; see `half_widths`
_BLOCKS = 10
_BEND = 5.0  # a share of 1: its effect is small, since few iterations run nearly empty
_WIDE, _NARROW = 0.06, 0.007  # shares over which slopes and residuals are averaged
_MOST_STEPS, _STILL = 12, 0.002
_SHARE_DIGITS, _UNIT_DIGITS = 6, 9


class UnidentifiableError(ValueError):
    """The requests do not tell what an iteration costs; the text says why."""


class TooFewError(UnidentifiableError):
    """There are too few requests to fit a cost to."""


class ContradictionError(ValueError):
    """The requests cannot have been served as is told of the server; the text says why."""


# --- the problem ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    """What of a fit does not change while it runs.

    Attributes:
        measured: As it was measured.
        apart: The same, with idle stretches in between drawn out.
        server: As it is simulated.
        given: Terms that are not fitted.
        rows: Requests whose residuals count.
        iteration_s: What an iteration takes, about.
        unit: A share of 1 of each term.
        batch: Sequences decoding at once on one server; see `batch_range`.
    """

    measured: Measured
    apart: Measured
    server: Server
    given: Mapping[str, float]
    rows: Bools
    iteration_s: float
    unit: Mapping[str, float]
    batch: tuple[float, float]

    @property
    def spans(self) -> Bools:
        """Rows whose time from first token to end counts."""
        return self.rows & (self.measured.workload.output_tokens > 1)


def problem_of(
    measured: Measured, server: Server, given: Mapping[str, float], fit_rows: Bools | None
) -> Problem:
    """What is to be fitted, of what is told; the arguments are those of `calibrate`.

    Raises:
        UnidentifiableError: Too few requests, or all batches were of much the same size.
        ContradictionError: More requests were decoding at once than the server has slots.
    """
    workload = measured.workload
    rows = np.ones(len(workload), dtype=np.bool_) if fit_rows is None else fit_rows
    longer = int((rows & (workload.output_tokens > 1)).sum())
    if longer < FEWEST_REQUESTS:
        raise TooFewError(
            f"a cost is fitted to at least {FEWEST_REQUESTS} requests of two tokens and more,"
            f" and there are {longer}"
        )
    counted = _only(measured, rows)
    beside = shared(counted, server.replicas)
    if not len(beside.rows):
        raise UnidentifiableError("first and last tokens came together: there is nothing to fit")
    _check_slots(measured, server)
    batch = batch_range(counted, server.replicas)
    if not {"base_ms", "per_seq_ms"} & given.keys() and batch[1] < _ALIKE * batch[0]:
        raise UnidentifiableError(
            f"all the same batch size: per_seq_ms is not identifiable ({batch_text(batch)})"
        )
    iteration_s = float(np.percentile(beside.span_s / beside.iterations, 10))
    time_ms = 1000 * float(beside.span_s.sum())

    def alone(per_iteration: Floats) -> float:
        """The milliseconds of each at which these alone took all the time."""
        return time_ms / max(1.0, float(per_iteration.sum()))

    prompts = max(1.0, float(uncached_tokens(counted.workload).sum()))
    busy_s = float(spans_s(stretches(counted), counted.workload.arrival_s, counted.end_s).sum())
    most_s = OVERHEAD * iteration_s * int(rows.sum())  # where prompts are few, so long for each
    unit = {
        "base_ms": alone(beside.iterations),
        "per_seq_ms": alone(beside.sequences),
        "per_kv_token_ms": alone(beside.held_tokens),
        "per_prefill_token_ms": min(busy_s, most_s) * 1000 * server.replicas / prompts,
        "overhead_ms": 1000 * iteration_s * OVERHEAD,
        "bend": _BEND,
    }
    return Problem(
        measured=measured,
        apart=apart(measured),
        server=as_met(server, measured),
        given=given,
        rows=rows,
        iteration_s=iteration_s,
        unit={term: float(f"{one:.{_UNIT_DIGITS}g}") for term, one in unit.items()},
        batch=batch,
    )


def _check_slots(measured: Measured, server: Server) -> None:
    """Refuses more sequences at once than slots; clocks may be off in a twentieth of the time.

    A preempted request counts too: before it runs again, no other is admitted in its place.
    """
    most, slots = batch_range(measured)[1], server.slots * server.replicas
    if most > slots:
        raise ContradictionError(
            f"{most:g} requests were between first token and end at once, in a twentieth of the"
            f" time or more, and {server.replicas} x {server.slots} slots are told"
        )


def _only(measured: Measured, rows: Bools) -> Measured:
    chosen = np.flatnonzero(rows)
    return Measured(
        rows_of(measured.workload, chosen), measured.first_token_s[chosen], measured.end_s[chosen]
    )


def batch_text(batch: tuple[float, float]) -> str:
    """A range of batch sizes, for people."""
    low, high = (f"{size:.3g}" for size in batch)
    size = low if low == high else f"{low} to {high}"
    sequences = "sequence" if size == "1" else "sequences"
    return f"{size} {sequences} decoded in 90 % of the time"


def start_of(problem: Problem) -> dict[str, float]:
    """Shares to start from: a regression of each span on what ran beside it."""
    from scipy.optimize import nnls

    counted = _only(problem.measured, problem.rows)
    beside = shared(counted, problem.server.replicas)
    columns = {
        "base_ms": beside.iterations,
        "per_seq_ms": beside.sequences,
        "per_kv_token_ms": beside.held_tokens,
        "per_prefill_token_ms": beside.prefilled_tokens,
    }
    start = {} if "overhead_ms" in problem.given else {"overhead_ms": 0.05}
    fitted = ["base_ms", "per_seq_ms"]
    if uncached_tokens(counted.workload).any():
        fitted.append("per_prefill_token_ms")
    free = [term for term in fitted if term not in problem.given]
    if not free:
        return start
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
        weight = (1 + (off / spread(off)) ** 2) ** -0.25
    return dict(zip(free, np.maximum(shares, 0.02).tolist(), strict=True)) | start


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
class Fit:
    """Where a fit ended."""

    shares: Mapping[str, float]
    bend_seqs: int | None
    near: _Near


def fit(problem: Problem, start: Mapping[str, float], bend_seqs: int | None) -> Fit:
    """Fits the terms that have a start: Gauss-Newton, each step a least squares over shares >= 0.

    Args:
        problem: What is fitted to.
        start: Shares to start from, of each free term.
        bend_seqs: The batch size at which the cost bends, where ``bend`` is among the terms.
    """
    from scipy.optimize import nnls

    free = list(start)
    most = np.array([MOST_SAVED / _BEND if term == "bend" else np.inf for term in free])
    near = _explore(problem, free, np.array(list(start.values())).round(_SHARE_DIGITS), bend_seqs)
    for _ in range(_MOST_STEPS if free else 0):
        root = np.sqrt(near.weight)
        aim = nnls(near.slopes * root[:, None], (near.slopes @ near.shares - near.off) * root)[0]
        step = np.clip(np.minimum(aim, most) - near.shares, -0.3, 0.3)
        near = _explore(problem, free, (near.shares + step).round(_SHARE_DIGITS), bend_seqs)
        if np.abs(step).max() < _STILL:
            break
    return Fit(dict(zip(free, near.shares.tolist(), strict=True)), bend_seqs, near)


def _explore(problem: Problem, free: Sequence[str], shares: Floats, bend_seqs: int | None) -> _Near:
    """Residuals and slopes by two-level factorial designs, in which every run tells every slope.

    Simulated instants jump by an iteration as shares move. Over 2^k runs the jumps average out:
    over a narrow width for the residuals, over a wide one for the slopes.
    """
    signs = np.array(list(product((-1.0, 1.0), repeat=len(free))))

    def runs(width: float) -> Floats:
        around = np.maximum(shares, width) + width * signs
        return np.array([np.concatenate(_residuals(problem, free, x, bend_seqs)) for x in around])

    first, span = np.split(runs(_NARROW).mean(axis=0), [int(problem.rows.sum())])
    scale = np.repeat([spread(first), spread(span)], [len(first), len(span)])
    slopes = runs(_WIDE).T @ signs / (len(signs) * _WIDE)
    return _Near(shares, first, span, scale, slopes / scale[:, None])


def spread(residuals: Floats) -> float:
    """A standard deviation that outliers do not move."""
    return max(1e-6, 1.4826 * float(np.median(np.abs(residuals))))


def _residuals(
    problem: Problem, free: Sequence[str], shares: Floats, bend_seqs: int | None
) -> tuple[Floats, Floats]:
    """Of first tokens and of spans, simulated less measured, for the requests that count."""
    seen = problem.apart
    values = dict(zip(free, (shares * [problem.unit[term] for term in free]).tolist(), strict=True))
    step, overhead_ms = step_of({**values, **problem.given}, bend_seqs)
    outcome = simulated(step, overhead_ms, seen.workload, problem.server)
    first_s, end_s = outcome.first_token_s, outcome.end_s
    wait_s = (seen.first_token_s - seen.workload.arrival_s)[problem.rows]
    span_s = (seen.end_s - seen.first_token_s)[problem.spans]
    first = (first_s - seen.first_token_s)[problem.rows]
    span = (end_s - first_s)[problem.spans] - span_s
    one_s = problem.iteration_s
    return first / np.sqrt(one_s * (wait_s + one_s)), span / np.sqrt(one_s * (span_s + one_s))


def step_of(values: Mapping[str, float], bend_seqs: int | None) -> tuple[Step, float]:
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
    saved_ms = min(values["bend"], MOST_SAVED) * plain.base_ms
    beyond = Piece(bend_seqs, plain.base_ms, plain.per_seq_ms, plain.per_kv_token_ms)
    bent = replace(
        plain,
        base_ms=plain.base_ms - saved_ms,
        per_seq_ms=plain.per_seq_ms + saved_ms / bend_seqs,
        pieces=(beyond,),
    )
    return bent, overhead_ms


def half_widths(problem: Problem, found: Fit) -> Mapping[str, float]:
    """Half the 95 % intervals, as shares.

    The sandwich estimator (White, 1982) over blocks of consecutive arrivals, as requests that ran
    together err together. On simulated truths it covers too little, since what is left of the jumps
    in the slopes makes them look steeper than they are; widened by half, it covers some 92 %, and
    far less where requests are preempted (docs/validation/calibration_intervals.md).
    """
    from scipy.stats import t as student

    near = found.near
    arrival_s = problem.measured.workload.arrival_s
    row = np.concatenate([np.flatnonzero(problem.rows), np.flatnonzero(problem.spans)])
    n = int(problem.rows.sum())
    order = np.empty(len(arrival_s), dtype=np.int64)
    counted = np.flatnonzero(problem.rows)
    order[counted[np.argsort(arrival_s[counted], kind="stable")]] = np.arange(n)
    scores = np.zeros((_BLOCKS, len(found.shares)))
    np.add.at(scores, order[row] * _BLOCKS // n, near.slopes * (near.weight * near.off)[:, None])
    bread = np.linalg.pinv(near.slopes.T @ (near.slopes * near.weight[:, None]))
    variance = np.diag(bread @ scores.T @ scores @ bread) * _BLOCKS / (_BLOCKS - 1)
    wide = _WIDER * student.ppf(0.975, _BLOCKS - 1) * np.sqrt(np.maximum(variance, 0.0))
    return dict(zip(found.shares, wide.tolist(), strict=True))
