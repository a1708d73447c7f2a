"""How likely each way of serving is, by what it forbids and by how often that was seen."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import betaln, gammaln

from slotwise_workflows.observe.starts import MOST_SERVERS, Counts

# Shares, as beta distributions: of what is forbidden and yet seen, since stamps and rows are never
# all right (mean 2 %); of what happens nearly always; of what mostly happens; of anything.
FORBIDDEN, SELDOM, ANY = (1.0, 49.0), (1.0, 4.0), (1.0, 1.0)
MOSTLY, ALWAYS, MOSTLY_HELD = (2.0, 1.0), (9.0, 1.0), (49.0, 1.0)
# Neighbours in a log are not independent: however long it is, it counts as so many.
COUNTED = 200
# By chance, but chance is not known exactly: as after so many seen.
AS_AFTER = 20.0
# How far from nothing the slowing by others is expected to lie, in standard errors.
PACE_SPREAD = 3.0
# Neighbours share more than a regression knows of: its errors are taken to be so many times larger.
PACE_ERRORS = 3.0

KINDS = ("serial", "static", "dynamic", "continuous", "several")


def likelihoods(found: Counts, pace: float, replicas: int | None) -> Mapping[str, float]:
    """The share of each way of serving in what explains a log; they sum to one.

    Args:
        found: What was counted.
        pace: By how many standard errors others slow a request down.
        replicas: How many servers there are; None is unknown: then several servers of any other
            kind than continuous stand beside the others.
    """
    alone = (replicas or 1) == 1
    fewest = range(1, (replicas or 1) + 1)
    engines = _servers(found, dict.fromkeys(fewest, 1.0))
    more = {r: 1.0 / r for r in range(len(fewest) + 1, MOST_SERVERS + 2)}
    held = [
        _of(found.held, int(found.joined[0]) + found.held, share)
        for share in (MOSTLY_HELD, ANY, SELDOM)
    ]
    together = _of(found.beside, found.waited, MOSTLY) + _of(found.paced, found.queued, SELDOM)
    one_by_one = _of(found.beside, found.waited, FORBIDDEN) + _of(found.paced, found.queued, ALWAYS)
    by_batch, by_chance = _tied(found)
    released = _either(by_batch, by_chance)
    full, by_delay = _full(found)
    logs = {
        "serial": engines
        + held[0 if alone else 1]
        + (one_by_one if alone else together)
        + by_chance
        + by_delay,
        "static": engines + held[0 if alone else 1] + together + released + full,
        "dynamic": engines + held[0 if alone else 1] + together + released + by_delay,
        "continuous": _servers(found, more)
        + _of_pace(pace / PACE_ERRORS)
        + held[2]
        + together
        + by_chance
        + by_delay,
        "several": -math.inf
        if replicas
        else _servers(found, {r: w for r, w in more.items() if r <= MOST_SERVERS})
        + held[1]
        + together
        + released
        + by_delay,
    }
    top = max(logs.values())
    weights = {kind: math.exp(value - top) for kind, value in logs.items()}
    total = sum(weights.values())
    return {kind: weight / total for kind, weight in weights.items()}


def _servers(found: Counts, prior: Mapping[int, float]) -> float:
    """Log likelihood that so many batches run at once at most, over a prior.

    Where at most r do, no start has r that began before and run on; any share has fewer.
    """
    trials = [found.met, *(int(j) for j in found.joined)]
    total = sum(prior.values())
    found_logs = []
    for most, weight in prior.items():
        passed = [_perhaps(trials[r], trials[r - 1]) for r in range(1, most)]
        stopped = 0.0 if most > MOST_SERVERS else _of(trials[most], trials[most - 1], FORBIDDEN)
        found_logs.append(math.log(weight / total) + sum(passed) + stopped)
    return float(np.logaddexp.reduce(found_logs))


def _perhaps(seen: int, trials: int) -> float:
    """A server that lets requests in can be too full to, or too empty: few speak for nothing."""
    return _either(_of(seen, trials, ANY), _of(seen, trials, FORBIDDEN))


def _either(*logs: float) -> float:
    return float(np.logaddexp(*logs)) - math.log(2)


def _full(found: Counts) -> tuple[float, float]:
    """Log likelihood of the batches' sizes, of a server that waits for full ones and of any other.

    Under a heavy load all are full whoever forms them, so full ones tell only where they were
    waited for, and short ones (of rows that are missing) only where they are many.
    """
    few, any_share = _of(found.short, found.batches, SELDOM), _of(found.short, found.batches, ANY)
    waits, starts = (_of(found.filled, found.idled, share) for share in (ALWAYS, ANY))
    return few + waits, _either(few, any_share) + starts


def _tied(found: Counts) -> tuple[float, float]:
    """Log likelihood of the ends that fall together, of batches answered together and by chance."""
    if not found.apart:
        return 0.0, 0.0
    chance = found.expected / found.apart
    if chance > 0.5:
        return 0.0, 0.0
    by_chance = (AS_AFTER * chance + 0.5, AS_AFTER * (1 - chance) + 0.5)
    return _of(found.tied, found.apart, MOSTLY), _of(found.tied, found.apart, by_chance)


def _of_pace(score: float) -> float:
    """Log Bayes factor of a score that is normal with a spread, over one that is standard normal.

    Never below 0: an engine whose batch costs nothing shows no slowing.
    """
    spread2 = PACE_SPREAD**2
    factor = (score**2 * spread2 / (1 + spread2) - math.log(1 + spread2)) / 2
    return max(0.0, factor) if score > 0 else 0.0


def _of(seen: int, trials: int, share: tuple[float, float]) -> float:
    """Log beta-binomial likelihood of ``seen`` of ``trials``; of so many as count at most."""
    times = min(1.0, COUNTED / trials) if trials else 1.0
    k, n, (a, b) = seen * times, trials * times, share
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return float(choose + betaln(k + a, n - k + b) - betaln(a, b))
