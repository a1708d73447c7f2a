"""How likely each way of serving is, by what it forbids and by how often that was seen."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import betaln, gammaln

from slotwise_workflows.observe.starts import MOST_SERVERS, Counts

# Shares, as beta distributions: of what is forbidden and yet seen, since stamps and rows are never
# all right (mean 2 %); of what happens nearly always; of what mostly happens; of anything.
FORBIDDEN, ALWAYS, MOSTLY, ANY = (1.0, 49.0), (4.0, 1.0), (2.0, 1.0), (1.0, 1.0)
# Neighbours in a log are not independent: however long it is, it counts as so many.
COUNTED = 200
# By chance, but chance is not known exactly: as after so many seen.
AS_AFTER = 20.0
# How far from nothing the slowing by others is expected to lie, in standard errors.
PACE_SPREAD = 3.0

KINDS = ("serial", "static", "dynamic", "continuous", "several")


def likelihoods(found: Counts, pace: float, replicas: int | None) -> Mapping[str, float]:
    """The share of each way of serving in what explains a log; they sum to one.

    Args:
        found: What was counted.
        pace: By how many standard errors others slow a request down.
        replicas: How many servers there are; None is unknown: then several servers of any other
            kind than continuous stand beside the others.
    """
    single = _servers(found, {1: 1.0} if replicas is None else dict.fromkeys(range(1, replicas + 1), 1.0))
    many = {r: 1.0 / r for r in range(max(2, (replicas or 1) + 1), MOST_SERVERS + 2)}
    tied, untied = _tied(found)
    released = float(np.logaddexp(tied, untied)) - math.log(2)
    apart = _of(found.beside, found.waited, FORBIDDEN if (replicas or 1) == 1 else MOSTLY)
    beside = _of(found.beside, found.waited, MOSTLY)
    always_full, by_delay = (_of(found.short, found.short + found.filled, b) for b in ((1.0, 19.0), ANY))
    several = _servers(found, {r: w for r, w in many.items() if r <= MOST_SERVERS})
    tried = int(found.joined[0]) + found.held
    never, rarely = (_of(found.held, tried, b) for b in ((49.0, 1.0), (1.0, 4.0)))
    logs = {
        "serial": single + never + apart + untied + by_delay,
        "static": single + never + beside + released + always_full,
        "dynamic": single + never + beside + released + by_delay,
        "continuous": _servers(found, many) + rarely + _of_pace(pace) + beside + untied + by_delay,
        "several": -math.inf if replicas else several + _of(found.held, tried, ANY) + beside + released + by_delay,
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
        passed = [_of(trials[r], trials[r - 1], ANY) if r > 1 else _perhaps(*trials[1::-1]) for r in range(1, most)]
        stopped = 0.0 if most > MOST_SERVERS else _of(trials[most], trials[most - 1], FORBIDDEN)
        found_logs.append(math.log(weight / total) + sum(passed) + stopped)
    return float(np.logaddexp.reduce(found_logs))


def _perhaps(seen: int, trials: int) -> float:
    """A server that lets requests in can be too full to: few joins speak for nothing."""
    return float(np.logaddexp(_of(seen, trials, ANY), _of(seen, trials, FORBIDDEN))) - math.log(2)


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
