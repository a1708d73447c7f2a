"""How likely each way of serving is, by what it forbids and by how often that was seen."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import betaln, gammaln

from slotwise_workflows.observe.ends import Ends
from slotwise_workflows.observe.starts import MOST_SERVERS, Starts

# Shares, as beta distributions: of what is forbidden and yet seen, since stamps and rows are never
# all right (mean 2 %); of what happens nearly always; of what mostly happens; of anything.
FORBIDDEN, SELDOM, ANY = (1.0, 49.0), (1.0, 4.0), (1.0, 1.0)
MOSTLY, ALWAYS, HELD = (2.0, 1.0), (9.0, 1.0), (49.0, 1.0)
# That none of these explains a log is so likely beforehand, beside each of them: stamps worse than
# allowed for, or a cache that answers beside the server, show both what is forbidden to servers
# that let requests in, and what is forbidden to others.
UNEXPLAINED = 0.02
# Neighbours in a log are not independent: however long it is, it counts as so many.
COUNTED = 200
# By chance, but chance is not known exactly: as after so many seen.
AS_AFTER = 20.0
# How far from nothing the slowing by others is expected to lie, in standard errors.
SLOWING_SPREAD = 3.0
# Neighbours share more than a regression knows of: its errors are taken to be so many times larger.
SLOWING_ERRORS = 1.5


def likelihoods(
    starts: Starts, ends: Ends, slowing: float, replicas: int | None
) -> Mapping[str, float]:
    """The share of each way of serving in what explains a log; they sum to one.

    Args:
        starts: What the starts show.
        ends: What the ends show.
        slowing: By how many standard errors others slow a request down.
        replicas: How many servers there are; None is unknown: then several servers of any other
            kind than continuous stand beside the others.
    """
    alone = replicas in {None, 1}
    # Of several servers, one whose answers are read slowly shows its last batch beside the next.
    most = 1 if alone else min(2 * (replicas or 1), MOST_SERVERS + 1)
    more = {
        batches: 1.0 / batches for batches in range(min(most, MOST_SERVERS) + 1, MOST_SERVERS + 2)
    }
    held = _held(starts)
    together = _of(starts.beside, starts.waited, MOSTLY) + _of(ends.paced, ends.queued, SELDOM)
    one_by_one = _of(starts.beside, starts.waited, FORBIDDEN) + _of(ends.paced, ends.queued, ALWAYS)
    answered, untied = _tied(ends)
    full, any_size = _full(starts)
    joins = _servers(starts, more)
    no_joins = _servers(starts, dict.fromkeys(range(1, most + 1), 1.0))
    batches = no_joins + held["all" if alone else "some"]
    slowed = _of_slowing(slowing)
    odd = max(joins, no_joins) + held["any"] + max(together, one_by_one) + math.log(UNEXPLAINED)
    logs = {
        "serial": batches + (one_by_one if alone else together) + untied + any_size,
        "static": batches + together + answered + full,
        "dynamic": batches + together + answered + any_size,
        "continuous": joins + held["none"] + together + untied + any_size + slowed,
        "unexplained": odd + untied + any_size + slowed,
        "several": -math.inf,
    }
    if replicas is None:
        logs["several"] = joins + held["some"] + together + answered + any_size
    top = max(logs.values())
    weights = {kind: math.exp(value - top) for kind, value in logs.items()}
    total = sum(weights.values())
    return {kind: weight / total for kind, weight in weights.items()}


def _held(starts: Starts) -> Mapping[str, float]:
    """Log likelihood of the starts that waited for all that ran, of those that did or joined.

    A server that lets nobody in holds all, but for joins that are counted against it elsewhere; one
    that lets requests in hardly any; several servers some, or none where each takes one request.
    """
    tried = starts.let_in + starts.held
    every, none, any_share = (_of(starts.held, tried, share) for share in (HELD, FORBIDDEN, ANY))
    return {
        "all": _either(every, any_share),
        "none": none,
        "some": _either(any_share, none),
        "any": any_share,
    }


def _servers(starts: Starts, prior: Mapping[int, float]) -> float:
    """Log likelihood of the joins, if so many batches run at once at most, over a prior.

    Where r is the most, starts past which r or more ran on are forbidden, else any share is.
    """
    passed = [_perhaps(seen, starts.met) for seen in starts.joined]
    stopped = [_of(seen, starts.met, FORBIDDEN) for seen in starts.joined]
    stopped[MOST_SERVERS:] = passed[MOST_SERVERS:]  # that many or more
    total = sum(prior.values())
    logs = [
        math.log(weight / total) + stopped[most - 1] - passed[most - 1]
        for most, weight in prior.items()
    ]
    return float(np.logaddexp.reduce(logs)) + sum(passed)


def _perhaps(seen: int, trials: int) -> float:
    """A server that lets requests in can be too full to, or too empty: few speak for nothing."""
    return _either(_of(seen, trials, ANY), _of(seen, trials, FORBIDDEN))


def _either(one: float, other: float) -> float:
    return float(np.logaddexp(one, other)) - math.log(2)


def _full(starts: Starts) -> tuple[float, float]:
    """Log likelihood of the batches' sizes, of a server that waits for full ones and of any other.

    Under a heavy load all are full whoever forms them, so full ones tell only where they were
    waited for, and short ones (of rows that are missing) only where they are many.
    """
    few, any_share = (_of(starts.short, starts.batches, share) for share in (SELDOM, ANY))
    waits, begins = (_of(starts.filled, starts.idled, share) for share in (ALWAYS, ANY))
    return few + waits, _either(few, any_share) + begins


def _tied(ends: Ends) -> tuple[float, float]:
    """Log likelihood of the ends that fall together: of batches, answered so or not; by chance."""
    if not ends.apart:
        return 0.0, 0.0
    chance = ends.expected / ends.apart
    if chance > 0.5:
        return 0.0, 0.0
    by_chance = _of(ends.tied, ends.apart, _as_after(chance))
    return _either(_of(ends.tied, ends.apart, MOSTLY), by_chance), by_chance


def _as_after(chance: float) -> tuple[float, float]:
    return AS_AFTER * chance + 0.5, AS_AFTER * (1 - chance) + 0.5


def _of_slowing(slowing: float) -> float:
    """Log Bayes factor of a score that is normal with a spread, over one that is standard normal.

    Never below 0: an engine whose batch costs nothing slows nobody down.
    """
    if slowing <= 0:
        return 0.0
    score, variance = slowing / SLOWING_ERRORS, SLOWING_SPREAD**2
    factor = (score**2 * variance / (1 + variance) - math.log(1 + variance)) / 2
    return max(0.0, factor)


def _of(seen: int, trials: int, share: tuple[float, float]) -> float:
    """Log beta-binomial likelihood of ``seen`` of ``trials``; of so many as count at most."""
    times = min(1.0, COUNTED / trials) if trials else 1.0
    k, n, (a, b) = seen * times, trials * times, share
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return float(choose + betaln(k + a, n - k + b) - betaln(a, b))
