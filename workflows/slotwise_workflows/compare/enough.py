"""How much is enough: the fewest servers, the highest load, the point at which an answer turns.

Each search asks one yes-or-no question of a replay again and again. Finite traffic answers with
some noise near the point that is looked for; what is found is right to `WITHIN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from slotwise_sim import Outcome
from slotwise_sim.metrics import percentile

MOST_SERVERS = 1024
WITHIN = 0.01
# Downward from where a search begins: so many halvings.
_HALVINGS = 10


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
    enough: Callable[[int], bool], carrying: int, most: int = MOST_SERVERS
) -> int | None:
    """Fewest servers that are enough; None where ``most`` are not, nor those that carry the load.

    Args:
        enough: Whether so many servers meet every objective.
        carrying: Fewest servers that carry the load at all.
        most: Where the search ends.
    """
    if enough(carrying):
        return carrying
    last = min(most, MOST_SERVERS)
    least, most = carrying + 1, min(2 * carrying, last)
    while least > most or not enough(most):
        if most >= last:
            return None
        least, most = most + 1, min(2 * most, last)
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle + 1, most)
    return most


def batches_of(requests: int, slots: int) -> int:
    """Servers that get a full batch each; with more, finite traffic tells nothing of them.

    A server that waits for full batches would wait for ever; in a replay the end of the traffic
    comes to its rescue.
    """
    return requests // slots


def highest(holds: Callable[[float], bool], most: float) -> float:
    """The highest value up to ``most`` at which something holds; 0 where it does nowhere.

    It need not hold at low values: a server that waits for full batches is slow at a low load, too.
    So the first value that does is looked for from above, in steps of the square root of 2.
    """
    above = most
    for step in range(2 * _HALVINGS + 1):
        value = most * 2 ** (-step / 2)
        if holds(value):
            return value if step == 0 else edge(holds, value, above)
        above = value
    return 0.0


def lowest(holds: Callable[[float], bool], most: float) -> float:
    """The lowest value from which on something holds up to ``most``, where it is known to.

    0 where it holds ten halvings below, too.
    """
    held = most
    for _ in range(_HALVINGS):
        if not holds(held / 2):
            return edge(holds, held, held / 2)
        held /= 2
    return 0.0


def edge(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last value at which something holds, between one where it does and one where not."""
    while max(inside, outside) > min(inside, outside) * (1 + WITHIN):
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside
