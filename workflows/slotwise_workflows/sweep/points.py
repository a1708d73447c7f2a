"""The points of a sweep as values: the grid, or a sample of it, and the seeds."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from slotwise_sim import Balancer

T = TypeVar("T", int, float)
SERVER = ("cost", "slots", "replicas", "balancer", "length_cv")
"""Fields of a `Setting` that tell the server and what it is sent."""
ARRIVING = ("load", "users")
"""Those that tell how requests come to it."""
Arrivals = Literal["open", "closed", "offline"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A server, and how requests come to it: what a line of the summary is about.

    Attributes:
        slots: Requests one server runs at once.
        replicas: Servers behind the balancer.
        balancer: How requests are spread over them.
        cost: What tokens or iterations cost, by its name among the costs of the sweep.
        length_cv: Coefficient of variation that output lengths are respread to, at the same mean;
            None leaves them as they are.
        load: Times the traffic's own arrival rate; None where its times are not used.
        users: How many take turns in a closed loop, in place of the traffic's own times; None where
            they do not.
    """

    slots: int
    replicas: int = 1
    balancer: Balancer = "round_robin"
    cost: str = ""
    length_cv: float | None = None
    load: float | None = None
    users: int | None = None

    @property
    def values(self) -> dict[str, Any]:
        """What is varied, by name: columns of both tables."""
        return {name: getattr(self, name) for name in (*SERVER, *ARRIVING)}

    def server(self) -> Setting:
        """The setting without the way in which requests come."""
        return replace(self, load=None, users=None)

    @property
    def arrivals(self) -> Arrivals:
        """At times of their own, as users get answers, or all from the start."""
        if self.load is not None:
            return "open"
        return "closed" if self.users is not None else "offline"


@dataclass(frozen=True, slots=True)
class Point:
    """One resampled traffic in one setting, under every policy.

    It is the smallest piece of work that is still a fair comparison, and it carries all it needs
    but the `slotwise_workflows.sweep.evaluate.Scenario`: any worker, at any time, in any order,
    finds the same rows.

    Attributes:
        setting: Where it is replayed. Of a search, neither load nor users are set.
        replication: Which resampling of the traffic, from 0.
        seed: Of the resampling; see `seed_of`.
        search: Whether the load and the number of servers at which a policy is just enough are
            looked for, in place of one replay.
    """

    setting: Setting
    replication: int
    seed: int
    search: bool = False


@dataclass(frozen=True, slots=True)
class Axes:
    """What is varied. Every combination of a server and a way of arriving is a setting.

    Attributes:
        slots: Numbers of slots, each >= 1.
        replicas: Numbers of servers, each >= 1.
        balancers: Ways of spreading requests; of no matter, and taken once, for a single server.
        costs: Names of costs.
        length_cvs: Coefficients of variation of the output lengths, >= 0, or None for their own.
        loads: Factors on the arrival rate, finite and > 0.
        users: Numbers of users of a closed loop, each >= 1.
        offline: Whether all requests are also replayed as one job, there from the start.
        searches: Whether limits are searched for, for each server.
    """

    slots: Sequence[int]
    replicas: Sequence[int] = (1,)
    balancers: Sequence[Balancer] = ("round_robin",)
    costs: Sequence[str] = ("",)
    length_cvs: Sequence[float | None] = (None,)
    loads: Sequence[float] = ()
    users: Sequence[int] = ()
    offline: bool = False
    searches: bool = False

    def __post_init__(self) -> None:
        if not (self.slots and self.replicas and self.balancers and self.costs):
            raise ValueError("a sweep needs slots, replicas, balancers and costs")
        if not (self.length_cvs and (self.loads or self.users or self.offline)):
            raise ValueError("a sweep needs lengths, and loads, users or an offline job")
        if min(*self.slots, *self.replicas, *self.users, 1) < 1:
            raise ValueError("slots, replicas and users must be >= 1")
        if not all(0 < load < float("inf") for load in self.loads):
            raise ValueError("loads must be finite and > 0")
        if not all(cv is None or 0 <= cv < float("inf") for cv in self.length_cvs):
            raise ValueError("coefficients of variation must be finite and >= 0")

    def size(self) -> int:
        """How many settings there are at most, those of searches included."""
        servers = len(self.slots) * len(self.replicas) * len(self.balancers) * len(self.costs)
        arrivals = len(self.loads) + len(self.users) + int(self.offline)
        searches = (len(self.length_cvs) + 1) if self.searches else 0
        return servers * (len(self.length_cvs) * arrivals + searches)


def points(
    axes: Axes, replications: int, *, seed: int, sample: int | None = None
) -> tuple[Point, ...]:
    """Lay out the grid, or a sample of it, ``replications`` times; then what is searched for.

    Repeated values count once; the order of the values given does not matter.

    Args:
        axes: What is varied.
        replications: Resamplings a setting, >= 1.
        seed: The run's seed, >= 0.
        sample: So many settings of the grid, drawn without replacement by the seed; None takes all.

    Returns:
        The points by setting, then replication; searches last.

    Raises:
        ValueError: ``replications`` or ``sample`` is below 1.
    """
    if replications < 1 or (sample is not None and sample < 1):
        raise ValueError("a sweep needs a replication and a point")
    settings = list(_settings(axes))
    if sample is not None and sample < len(settings):
        drawn = np.random.default_rng(seed).choice(len(settings), sample, replace=False)
        settings = [settings[place] for place in sorted(drawn)]
    searched = _searched(settings) if axes.searches else []
    return tuple(
        Point(setting, replication, seed_of(seed, replication), search)
        for search, own in ((False, settings), (True, searched))
        for setting in own
        for replication in range(replications)
    )


def _searched(settings: Sequence[Setting]) -> list[Setting]:
    """Each server once at every variation that it is sent, and first at the lengths' own."""
    found: dict[Setting, None] = {}
    for setting in settings:
        found |= {replace(setting.server(), length_cv=None): None, setting.server(): None}
    return list(found)


def seed_of(seed: int, replication: int) -> int:
    """The seed of one point: a function of its replication and the run's seed, of nothing else.

    Neither the worker, nor the order, nor the rest of the grid enters, so that a grid can be
    widened or finished elsewhere without moving a single row. Nor does the setting or the policy:
    in each replication all of them meet the same traffic, so that the luck of the draw cancels
    where two of them are compared. The replication is hashed (BLAKE2b, stable across versions,
    platforms and ``PYTHONHASHSEED``) into the entropy of a `numpy.random.SeedSequence`, which mixes
    it with the run's seed.

    Args:
        seed: The run's seed, >= 0.
        replication: The point's replication.

    Returns:
        An integer of 63 bits: every reader of Parquet can hold it.
    """
    digest = hashlib.blake2b(f"replication={replication}".encode("ascii"), digest_size=16).digest()
    mixed = np.random.SeedSequence([seed, int.from_bytes(digest, "big")])
    return int(mixed.generate_state(1, np.uint64)[0] >> np.uint64(1))


def _settings(axes: Axes) -> Iterator[Setting]:
    """Every server with every way of arriving."""
    for server in _servers(axes):
        for load in _distinct(axes.loads):
            yield replace(server, load=float(load))
        for users in _distinct(axes.users):
            yield replace(server, users=int(users))
        if axes.offline:
            yield server


def _servers(axes: Axes) -> Iterator[Setting]:
    own: list[float | None] = [None] if None in axes.length_cvs else []
    told = _distinct([float(cv) for cv in axes.length_cvs if cv is not None])
    for cost, slots, replicas in itertools.product(
        dict.fromkeys(axes.costs), _distinct(axes.slots), _distinct(axes.replicas)
    ):
        balancers = dict.fromkeys(axes.balancers) if replicas > 1 else ("round_robin",)
        for balancer, cv in itertools.product(balancers, [*own, *told]):
            yield Setting(int(slots), int(replicas), balancer, cost, cv)


def _distinct(values: Sequence[T]) -> list[T]:
    return sorted(set(values))
