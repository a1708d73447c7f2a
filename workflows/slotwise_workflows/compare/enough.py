"""How much is enough: the fewest servers, the highest load, the point at which an answer turns.

Each search asks one yes-or-no question of a replay again and again. Finite traffic answers with
some noise near the point that is looked for; what is found is right to `WITHIN`. A search goes in
steps, and what holds only between two of them is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from slotwise_sim import Outcome
from slotwise_sim.metrics import percentile

MOST_SERVERS = 1024
WITHIN = 0.01
# So far down from where a search begins.
_DOWN = 1024.0
_STEP, _CLOSE_STEP = math.sqrt(2), 1.1


class Band(NamedTuple):
    """Where something holds: from ``low`` to ``high``; both None where it does nowhere."""

    low: float | None
    high: float | None


def meets(outcome: Outcome, objectives: Mapping[str, float]) -> bool:
    """Whether the 95th percentiles stay within what users are promised.

    Args:
        outcome: Of a replay.
        objectives: Seconds by name (`latency`, `ttft`).
    """
    reached = {
        "latency": outcome.end_s - outcome.arrival_s,
        "ttft": outcome.first_token_s - outcome.arrival_s,
    }
    return all(percentile(reached[name], 95) <= limit for name, limit in objectives.items())


def fewest_servers(
    enough: Callable[[int], bool],
    carrying: int,
    most: int = MOST_SERVERS,
    *,
    closely: bool = False,
) -> int | None:
    """Fewest servers that are enough; None where ``most`` are not, nor those that carry the load.

    Args:
        enough: Whether so many servers meet every objective.
        carrying: Fewest servers that carry the load at all.
        most: Where the search ends.
        closely: Whether more servers may be worse than fewer: then they are tried a tenth more at a
            time, one more while they are few; else twice as many.
    """
    factor = _CLOSE_STEP if closely else 2.0
    last = max(carrying, min(most, MOST_SERVERS))
    before, servers = carrying - 1, carrying
    while not enough(servers):
        if servers == last:
            return None
        before, servers = servers, min(max(servers + 1, int(servers * factor)), last)
    while servers - before > 1:
        middle = (before + servers) // 2
        before, servers = (before, middle) if enough(middle) else (middle, servers)
    return servers


def batches_of(requests: int, slots: int) -> int:
    """Servers that get a full batch each; with more, finite traffic tells nothing of them.

    A server that waits for full batches would wait for ever; in a replay the end of the traffic
    comes to its rescue.
    """
    return requests // slots


def highest(holds: Callable[[float], bool], most: float, *, closely: bool = False) -> float:
    """The highest value up to ``most`` at which something holds; 0 where it does nowhere.

    Args:
        holds: Whether it does.
        most: Where the search begins; it goes down from there.
        closely: Whether it may hold in a narrow band only, as of a server that waits for full
            batches: the steps are then a tenth, and not the square root of 2.
    """
    above = most
    for value in _down(most, _CLOSE_STEP if closely else _STEP):
        if holds(value):
            return value if value == most else edge(holds, value, above)
        above = value
    return 0.0


def lowest(holds: Callable[[float], bool], most: float) -> float:
    """The lowest value from which on something holds up to ``most``, where it is known to.

    0 where it holds all the way down.
    """
    held = most
    for value in _down(most, 2.0):
        if value < most and not holds(value):
            return edge(holds, held, value)
        held = value
    return 0.0


def band(holds: Callable[[float], bool], most: float) -> Band:
    """The highest band of values up to ``most`` in which something holds."""
    high = highest(holds, most)
    return Band(None, None) if high == 0 else Band(lowest(holds, high), high)


def first(holds: Callable[[float], bool], most: float) -> float | None:
    """The lowest value at which something holds, looked for from below; None up to ``most``.

    0 where it holds at the very beginning.
    """
    below = 0.0
    for value in reversed(list(_down(most, 2.0))):
        if holds(value):
            return 0.0 if below == 0 else edge(holds, value, below)
        below = value
    return None


def edge(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last value at which something holds, between one where it does and one where not."""
    while max(inside, outside) > min(inside, outside) * (1 + WITHIN):
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def _down(most: float, step: float) -> Iterator[float]:
    """Values from ``most`` downward."""
    for power in range(int(math.log(_DOWN) / math.log(step)) + 1):
        yield most / step**power
