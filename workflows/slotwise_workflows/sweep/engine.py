"""Where a sweep runs: this process, a few processes, or Ray."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from slotwise_workflows.ray_session import ray_is_missing
from slotwise_workflows.sweep.estimate import Estimate

EngineName = Literal["local", "ray"]

PROCESSES_START_S = 3.0
"""What starting further processes takes of the processors before they compute, with a margin."""

RAY_FROM_S = 120.0
"""From so much saved, the 5 s that a Ray of our own takes longer to start and stop do not matter.

On one machine it is no faster than processes: `benchmarks/sweep_engines.py`.
"""


@dataclass(frozen=True, slots=True)
class Engine:
    """Where the points are evaluated.

    Attributes:
        name: In this process or a few, or as Ray tasks.
        workers: Processes, or processors of a Ray of our own.
        address: Of an existing Ray cluster, or None.
        why: One sentence for a person: which engine, and why this one.
    """

    name: EngineName
    workers: int
    address: str | None
    why: str


def choose_engine(
    asked: Literal["auto", "local", "ray"],
    *,
    address: str | None,
    workers: int | None,
    estimate: Estimate,
) -> Engine:
    """Settles on an engine.

    ``auto`` takes a cluster whose address is given. Else it stays in this process while that is
    as fast, takes a few processes beyond, and a Ray of its own for long work, if it is installed.

    Args:
        asked: What the user asked for.
        address: Of an existing Ray cluster, or None.
        workers: How many; None is one for every processor this process may use.
        estimate: How long the points take.

    Raises:
        MissingExtraError: Ray was asked for and is not installed.
    """
    if asked == "ray" and find_spec("ray") is None:
        raise ray_is_missing("use --engine local")
    count = workers or available_processors()
    saved_s = estimate.seconds * (1 - 1 / count)
    takes = f"about {in_words(estimate.seconds)} of one processor"
    alone = saved_s < PROCESSES_START_S
    processors = "1 processor" if count == 1 else f"{count} processors"
    if asked == "ray" or (asked == "auto" and address is not None):
        place = f"the cluster at {address}" if address else f"{processors} of this machine"
        reason = "its address was given" if asked == "auto" else "asked for"
        return Engine("ray", count, address, f"engine ray on {place} ({reason}; {takes})")
    if asked == "auto" and not alone and saved_s >= RAY_FROM_S and find_spec("ray") is not None:
        why = f"engine ray on {processors} of this machine ({takes}: worth starting Ray)"
        return Engine("ray", count, None, why)
    reason = "asked for; " if asked == "local" else ""
    if alone:
        return Engine("local", 1, None, f"engine local in this process ({reason}{takes})")
    return Engine("local", count, None, f"engine local in {count} processes ({reason}{takes})")


def available_processors() -> int:
    """Processors this process may use, which a container's owner may have limited."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_words(seconds: float) -> str:
    """A length of time for a person: no more than two figures of it are known."""
    if seconds < 1:
        return "1 s" if seconds > 0 else "0 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:,.0f} h"
