"""The grid of a sweep as values: one point is one paired comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slotwise_sim.policies import Policy

OnProgress = Callable[[int, int], None]
"""Told how many points are done, of how many."""


@dataclass(frozen=True, slots=True)
class Point:
    """One resampled traffic, replayed under every policy on the same slots.

    It is the smallest piece of work that is still a fair comparison, and it carries all it needs
    but the workload and the cost: any worker, at any time, in any order, finds the same rows.

    Attributes:
        slots: Requests one server runs at once.
        load: Times the workload's own arrival rate.
        replication: Which resampling of the traffic, from 0.
        seed: Of the resampling; see `seed_of`.
        policies: The policies compared, by name, in the order of the workload file.
    """

    slots: int
    load: float
    replication: int
    seed: int
    policies: tuple[tuple[str, Policy], ...]


def points(
    slots: Sequence[int],
    loads: Sequence[float],
    policies: Mapping[str, Policy],
    replications: int,
    *,
    seed: int,
) -> tuple[Point, ...]:
    """Lay out the grid: every number of slots at every load, ``replications`` times.

    Repeated values count once; the order of the values given does not matter.

    Args:
        slots: Numbers of slots, each >= 1.
        loads: Factors on the arrival rate, each finite and > 0.
        policies: What to compare, by name; at least one.
        replications: Resamplings per slots and load, >= 1.
        seed: The run's seed, >= 0.

    Returns:
        The points by slots, then load, then replication, all ascending.

    Raises:
        ValueError: A value is out of range, or there is nothing to do.
    """
    if not (slots and loads and policies) or replications < 1:
        raise ValueError("a sweep needs slots, loads, policies and a replication")
    if min(slots) < 1:
        raise ValueError("slots must be >= 1")
    if not all(0 < load < float("inf") for load in loads):
        raise ValueError("loads must be finite and > 0")
    named = tuple(policies.items())
    return tuple(
        Point(size, load, replication, seed_of(seed, size, load, replication), named)
        for size in sorted({int(size) for size in slots})
        for load in sorted({float(load) for load in loads})
        for replication in range(replications)
    )


def seed_of(seed: int, slots: int, load: float, replication: int) -> int:
    """The seed of one point: a function of the point and the run's seed, of nothing else.

    Neither the worker, nor the order, nor the rest of the grid enters, so that a grid can be
    widened or finished elsewhere without moving a single row. The policies do not enter either:
    all of them meet the same traffic. The point's values are hashed (BLAKE2b over their exact
    text, stable across versions, platforms and ``PYTHONHASHSEED``) into the entropy of a
    `numpy.random.SeedSequence`, which mixes it with the run's seed.

    Args:
        seed: The run's seed, >= 0.
        slots: The point's slots.
        load: The point's load.
        replication: The point's replication.

    Returns:
        An integer of 63 bits: every reader of Parquet can hold it.
    """
    text = f"slots={slots} load={float(load).hex()} replication={replication}"
    digest = hashlib.blake2b(text.encode("ascii"), digest_size=16).digest()
    mixed = np.random.SeedSequence([seed, int.from_bytes(digest, "big")])
    return int(mixed.generate_state(1, np.uint64)[0] >> np.uint64(1))


def deal(grid: Sequence[Point], count: int) -> list[tuple[Point, ...]]:
    """Deal the points out into at most ``count`` batches; neighbours go to different ones.

    Neighbouring points take alike long, so dealing them out evens the batches.

    Args:
        grid: The points.
        count: Batches wanted, >= 1.

    Returns:
        The batches, none of them empty.
    """
    return [tuple(grid[first::count]) for first in range(min(count, len(grid)))]
