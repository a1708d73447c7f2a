"""What was seen to run on a measured server: who decoded beside whom, read off the instants.

No simulation: between its first token and its end a request decodes, at the rate at which it came
through. That is near enough to tell whether batches differ at all, and to start a fit from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slotwise_sim.workload import Floats, Ints, Workload


@dataclass(frozen=True, slots=True)
class Measured:
    """Requests and when they were seen; seconds by the clock of ``workload.arrival_s``.

    Attributes:
        workload: n requests.
        first_token_s: When each first token came, shape (n,).
        end_s: When each answer ended, shape (n,).

    Raises:
        ValueError: Shapes differ, or a request's arrival, first token and end do not ascend.
    """

    workload: Workload
    first_token_s: Floats
    end_s: Floats

    def __post_init__(self) -> None:
        n = len(self.workload)
        if self.first_token_s.shape != (n,) or self.end_s.shape != (n,):
            raise ValueError("all columns of a measurement must have shape (n,)")
        arrivals_lead = (self.workload.arrival_s <= self.first_token_s).all()
        if not (arrivals_lead and (self.first_token_s <= self.end_s).all()):
            raise ValueError("a request's arrival, first token and end must ascend")


def apart(measured: Measured) -> Measured:
    """Moves the stretches in which the server was never empty apart, by three times their length.

    A client that waits for answers before it sends more would otherwise meet, in a simulation a
    little slower than its server, requests still running that had long ended.
    """
    arrival_s, stretch = measured.workload.arrival_s, stretches(measured)
    lengths_s = spans_s(stretch, arrival_s, measured.end_s)
    shift_s = np.append(0.0, np.cumsum(3 * lengths_s[:-1]))[stretch]
    return Measured(
        replace(measured.workload, arrival_s=arrival_s + shift_s),
        measured.first_token_s + shift_s,
        measured.end_s + shift_s,
    )


def stretches(measured: Measured) -> Ints:
    """In which of the stretches without an empty server each request was, from 0, shape (n,)."""
    arrival_s = measured.workload.arrival_s
    order = np.argsort(arrival_s, kind="stable")
    busy_until = np.maximum.accumulate(measured.end_s[order])
    begins = np.append(False, arrival_s[order][1:] > busy_until[:-1])
    stretch = np.empty(len(order), dtype=np.int64)
    stretch[order] = np.cumsum(begins)
    return stretch


def spans_s(stretch: Ints, begin_s: Floats, end_s: Floats) -> Floats:
    """From the first begin to the last end in each stretch that has a request, in their order."""
    _, place = np.unique(stretch, return_inverse=True)
    first, last = np.full(place.max() + 1, np.inf), np.full(place.max() + 1, -np.inf)
    np.minimum.at(first, place, begin_s)
    np.maximum.at(last, place, end_s)
    return np.asarray(last - first, dtype=np.float64)


def most_at_once(measured: Measured) -> int:
    """The most requests that were there at once, waiting or running."""
    arrivals, ends = np.sort(measured.workload.arrival_s), np.sort(measured.end_s)
    gone = np.searchsorted(ends, arrivals, side="right")
    return int((np.arange(1, len(arrivals) + 1) - gone).max())


def batch_range(measured: Measured, replicas: int = 1) -> tuple[float, float]:
    """Sequences decoding at once on one server: the 5th and 95th percentile over time.

    Of several servers each is taken to have its part of all, which need not be whole.
    """
    clock = _clock(measured)
    there = clock.seqs > 0
    seqs, seconds = clock.seqs[there], np.diff(clock.instants)[there]
    order = np.argsort(seqs, kind="stable")
    passed = np.cumsum(seconds[order]) / seconds.sum()
    low, high = seqs[order][np.searchsorted(passed, (0.05, 0.95))] / replicas
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Shared:
    """What each request's decoding shared its iterations with: sums over those iterations.

    Attributes:
        rows: Requests of two tokens and more.
        span_s: Seconds from first token to end, of those rows, like all columns.
        iterations: Tokens after the first.
        sequences: Sequences decoding, itself included.
        held_tokens: Tokens those held.
        prefilled_tokens: Prompt tokens prefilled meanwhile.
    """

    rows: Ints
    span_s: Floats
    iterations: Floats
    sequences: Floats
    held_tokens: Floats
    prefilled_tokens: Floats


def shared(measured: Measured, replicas: int = 1) -> Shared:
    """Sums up what ran beside each request; several servers are taken to have run alike."""
    workload, clock = measured.workload, _clock(measured)
    rows = np.flatnonzero(clock.own_rate > 0)
    first, end = clock.first[rows], clock.end[rows]
    iterations = (workload.output_tokens[rows] - 1).astype(np.float64)

    def over_iterations(per_iteration: Floats) -> Floats:
        """Sums over each row's iterations of a value that holds between two instants."""
        passed = np.append(0.0, np.cumsum(clock.rate * np.diff(clock.instants)))
        total = np.append(0.0, np.cumsum(per_iteration * np.diff(passed)))
        share = iterations / np.maximum(passed[end] - passed[first], 1e-12)
        return np.asarray((total[end] - total[first]) * share / replicas, dtype=np.float64)

    prefilled = np.zeros(len(clock.instants))
    np.add.at(prefilled, clock.first, uncached_tokens(workload))
    prefilled = np.cumsum(prefilled)
    return Shared(
        rows=rows,
        span_s=measured.end_s[rows] - measured.first_token_s[rows],
        iterations=iterations,
        sequences=over_iterations(clock.seqs),
        held_tokens=over_iterations(clock.held),
        prefilled_tokens=(prefilled[end] - prefilled[first]) / replicas,
    )


def uncached_tokens(workload: Workload) -> Floats:
    """Prompt tokens that must be prefilled, shape (n,)."""
    cached = 0 if workload.cached_tokens is None else workload.cached_tokens
    return np.asarray(workload.prompt_tokens - cached, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Clock:
    """First tokens and ends as instants; ``seqs``, ``held`` and ``rate`` hold between two of them.

    Attributes:
        instants: Ascending seconds, shape (m,).
        first: Where in them each request's first token is, shape (n,).
        end: Where its end is, shape (n,).
        own_rate: Iterations a second that each request came through at; 0 for one token.
        seqs: Sequences decoding, shape (m - 1,).
        held: Tokens they hold.
        rate: Iterations a second, the mean of theirs.
    """

    instants: Floats
    first: Ints
    end: Ints
    own_rate: Floats
    seqs: Floats
    held: Floats
    rate: Floats


def _clock(measured: Measured) -> _Clock:
    workload = measured.workload
    instants = np.unique(np.concatenate([measured.first_token_s, measured.end_s]))
    first = np.searchsorted(instants, measured.first_token_s)
    end = np.searchsorted(instants, measured.end_s)
    span_s = measured.end_s - measured.first_token_s
    decodes = (workload.output_tokens > 1) & (span_s > 0)
    own_rate = np.where(decodes, workload.output_tokens - 1, 0) / np.where(decodes, span_s, 1.0)

    def between(of_each: Floats) -> Floats:
        """The sum over the requests that decode between two instants."""
        change = np.zeros(len(instants))
        np.add.at(change, first, of_each * decodes)
        np.add.at(change, end, -of_each * decodes)
        return np.cumsum(change)[:-1]

    seqs = np.rint(between(np.ones(len(first))))
    rates = between(own_rate)
    middle_s = (instants[1:] + instants[:-1]) / 2
    # Each holds its prompt and what it has made: a line in time.
    held = between(workload.prompt_tokens - own_rate * measured.first_token_s) + rates * middle_s
    return _Clock(instants, first, end, own_rate, seqs, held, rates / np.maximum(seqs, 1))
