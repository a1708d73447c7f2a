"""From a log to the instants between which each request must have started, and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from slotwise_sim.workload import Floats, Ints
from slotwise_workflows.traffic.model import Traffic

# Stamps that went through a network scatter; instants nearer than this are not told apart.
SCATTER_S = 0.1
# Nor are those nearer than this part of an ordinary answer's time.
RELATIVE = 0.02
# The fastest of answers: so many percent, for the very fastest may be of wrong stamps.
FAST, TURNS = 2, 20
# Lengths are alike where the ninth tenth is not so many times the first.
UNLIKE = 2
# Instants are far apart where hardly any gap is less than so much of an answer.
APART = 0.2
# A server's fastest pace is taken lower than the log's: its fastest answer need not be in the log.
# Nor is any where requests never came while so few others were there.
PACE_MARGIN = 0.7
FEWEST_TOKENS = 8
NEARLY_EMPTY = 2
FEWEST_EMPTY = 3
FEWEST_INSTANTS = 20
MOSTLY_TIMED = 0.9
FEWEST = 72
# No server decodes faster: such an answer was held back and came at once.
FASTEST_S_PER_TOKEN = 2e-4

Untimed = Literal["no_times", "too_few_requests"]


@dataclass(frozen=True, slots=True)
class Timed:
    """n requests in order of their latest start; seconds from the first arrival, shape (n,).

    Attributes:
        arrival: When each arrived.
        earliest: It started, or the answer began, no earlier than this.
        latest: And no later than this: its first token, or its end less its tokens at the pace.
        end: When its answer ended, by the log.
        tokens: Output tokens.
        streamed: Whether the log tells first tokens.
        pace: Seconds a token takes, at the fast end of what the log shows.
        tolerance: Seconds within which two instants are taken for one.
        in_turn: Whether answers are alike and hardly any two start, or end, soon after one another.
    """

    arrival: Floats
    earliest: Floats
    latest: Floats
    end: Floats
    tokens: Ints
    streamed: bool
    pace: float
    tolerance: float
    in_turn: bool

    def __len__(self) -> int:
        return len(self.end)

    def rows(self, rows: slice) -> Timed:
        """Consecutive requests."""
        return Timed(
            self.arrival[rows],
            self.earliest[rows],
            self.latest[rows],
            self.end[rows],
            self.tokens[rows],
            self.streamed,
            self.pace,
            self.tolerance,
            self.in_turn,
        )

    def surely_until(self) -> Floats:
        """Until when each surely ran: its own tokens at the pace, whatever its logged end.

        Logged ends are later than the server's where answers are checked, worked on or slowly read
        before they are logged: a slot may long have been another's by then. Without first tokens,
        nothing shows that.
        """
        if not self.streamed:
            return self.end
        return np.minimum(self.end, self.latest + self.pace * np.maximum(self.tokens - 1, 0))


def timed(traffic: Traffic) -> Timed | Untimed:
    """The requests with an arrival and an end, or why there are not enough of them."""
    if traffic.clock is None:
        return "no_times"
    table = traffic.table.select(
        arrival="start_time",
        latency="e2e_latency",
        ttft="gen_ai.response.time_to_first_chunk",
        tokens="gen_ai.usage.output_tokens",
    )
    kept = table.filter((pl.col("latency") > 0) & (pl.col("tokens") > 0))
    if kept.height < MOSTLY_TIMED * table.height:
        return "no_times"
    if kept.height < FEWEST:
        return "too_few_requests"
    arrival_ns = kept["arrival"].to_numpy().astype(np.int64)
    arrival = (arrival_ns - arrival_ns.min()) / 1e9
    latency, tokens = kept["latency"].to_numpy(), kept["tokens"].to_numpy().astype(np.int64)
    ttft = kept["ttft"].to_numpy().astype(np.float64)
    end = arrival + latency
    streamed = _streamed(ttft, latency, tokens)
    if streamed:
        latest = arrival + np.where(ttft <= latency, ttft, latency)
        earliest, pace = _let_in(arrival, latest, end), _pace(end - latest, tokens)
        service = end - latest
    else:
        pace = _fastest(arrival, end, tokens)
        latest = np.maximum(arrival, end - PACE_MARGIN * pace * tokens)
        earliest, service = arrival, pace * tokens
    resolution = max(_resolution_s(arrival_ns / 1e9), _resolution_s(latency))
    tolerance = max(SCATTER_S + 2 * resolution, RELATIVE * float(np.median(service)))
    apart = _far_apart(latest if streamed else end, service, tolerance)
    order = np.lexsort((arrival, latest))
    return Timed(
        arrival=arrival[order],
        earliest=earliest[order],
        latest=latest[order],
        end=end[order],
        tokens=tokens[order],
        streamed=streamed,
        pace=pace,
        tolerance=tolerance,
        in_turn=_alike(tokens) and apart,
    )


def _streamed(ttft: Floats, latency: Floats, tokens: Ints) -> bool:
    """Whether first tokens are told; one that comes with the end of many tokens tells nothing."""
    long = tokens > 1
    told = (ttft >= 0) & (latency - ttft >= FASTEST_S_PER_TOKEN * (tokens - 1))
    return bool(long.any() and told[long].mean() >= MOSTLY_TIMED)


def _pace(service: Floats, tokens: Ints) -> float:
    """Seconds a token takes, by the long answers that were served fastest.

    What the fastest short answers take beyond their tokens' time is no token's: ends that are
    logged so much later. It is found by turns with the pace, from nothing and a pace too slow.
    Lengths that are alike cannot show it: then the pace is taken faster by a margin.
    """
    steps, long = tokens - 1, tokens >= max(2, float(np.median(tokens)))
    short = ~long if (~long).any() else long
    if not long.any():
        return 0.0
    late = pace = 0.0
    for _ in range(TURNS):
        pace = float(np.percentile((service - late)[long] / steps[long], FAST))
        late = max(0.0, float(np.percentile((service - pace * steps)[short], FAST)))
    return max(0.0, PACE_MARGIN * pace if _alike(tokens) else pace)


def _alike(tokens: Ints) -> bool:
    few, many = np.percentile(tokens - 1, (10, 90))
    return bool(many <= UNLIKE * few)


def _far_apart(instants: Floats, service: Floats, tolerance: float) -> bool:
    """Whether hardly any two instants come within a good part of a service of one another.

    So those of a server come that serves requests, or batches, after one another. With answers all
    alike, ends that are all late by the same look like longer answers, and starts like joins.
    """
    gaps = np.diff(np.sort(instants))
    gaps = gaps[gaps > tolerance]
    return bool(len(gaps) and np.percentile(gaps, FAST) > APART * np.median(service))


def _fastest(arrival: Floats, end: Floats, tokens: Ints) -> float:
    """Seconds a token takes at least; 0 where all waited, so that no answer shows it.

    A batch that waits until it is full hides its pace from those that it waits for, not from the
    last: all answers count, if the log shows the server nearly empty at all. At its beginning it
    does not: who came before is not in it.
    """
    came = np.sort(arrival)
    there = np.arange(len(end)) - np.searchsorted(np.sort(end), came, side="right")
    known = came > came[0] + (end - arrival).max()
    long = tokens >= FEWEST_TOKENS
    if int((known & (there <= NEARLY_EMPTY)).sum()) < FEWEST_EMPTY or not long.any():
        return 0.0
    return float(((end - arrival) / tokens)[long].min())


def _let_in(arrival: Floats, first: Floats, end: Floats) -> Floats:
    """What let each request in: its own arrival, or the last answer that ended before it began.

    Between the two nothing changed, so whoever was let in then and whoever was let in there belong
    together, even where their prompts are prefilled one after the other.
    """
    ends = np.sort(end)
    before = np.searchsorted(ends, first, side="left") - 1
    freed = np.where(before >= 0, ends[before], -np.inf)
    return np.minimum(np.maximum(arrival, freed), first)


def _resolution_s(stamps: Floats) -> float:
    """The coarsest of 1 s, 0.1 s, ..., 1 us whose multiples nearly all stamps are; else 0.

    A handful of instants, at which clients sent many requests at once, show no resolution.
    """
    if len(np.unique(stamps)) < FEWEST_INSTANTS:
        return 0.0
    for digits in range(7):
        scaled = stamps * 10.0**digits
        off = np.abs(scaled - np.rint(scaled)) > 1e-6 * np.maximum(1.0, np.abs(scaled) * 1e-6)
        if off.mean() < 0.01:
            return float(10.0**-digits)
    return 0.0
