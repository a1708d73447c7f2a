from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.sweep.points import Axes, points, seed_of

numbers = st.lists(st.integers(1, 64), min_size=1, max_size=3)
axes = st.builds(
    Axes,
    slots=numbers,
    replicas=numbers,
    balancers=st.sampled_from([("round_robin",), ("round_robin", "least_busy")]),
    length_cvs=st.lists(st.none() | st.floats(0, 4), min_size=1, max_size=3),
    loads=st.lists(st.floats(0.01, 100), min_size=1, max_size=3),
    users=st.lists(st.integers(1, 64), max_size=2),
    offline=st.booleans(),
    searches=st.booleans(),
)


def test_the_grid_is_ordered_and_complete() -> None:
    grid = points(Axes([8, 4, 8], loads=[2, 0.5]), 2, seed=1)
    assert [(p.setting.slots, p.setting.load, p.replication) for p in grid] == [
        (slots, load, replication)
        for slots in (4, 8)
        for load in (0.5, 2.0)
        for replication in (0, 1)
    ]


def test_every_way_of_arriving_is_a_setting_of_its_own() -> None:
    grid = points(Axes([4], loads=[1], users=[16, 8], offline=True), 1, seed=0)
    assert [(p.setting.arrivals, p.setting.load, p.setting.users) for p in grid] == [
        ("open", 1.0, None),
        ("closed", None, 8),
        ("closed", None, 16),
        ("offline", None, None),
    ]


def test_a_single_server_has_no_balancer_to_vary() -> None:
    axes = Axes([4], replicas=[1, 2], balancers=("round_robin", "least_busy"), loads=[1])
    found = [(p.setting.replicas, p.setting.balancer) for p in points(axes, 1, seed=0)]
    assert found == [(1, "round_robin"), (2, "round_robin"), (2, "least_busy")]


def test_limits_are_searched_once_a_server_and_at_the_lengths_own_variation_too() -> None:
    grid = points(Axes([4], length_cvs=[1.0, 0.5], loads=[1, 2], searches=True), 1, seed=0)
    searched = [p.setting for p in grid if p.search]
    assert {own.length_cv for own in searched} == {None, 0.5, 1.0}
    assert len(searched) == 3
    assert {(own.load, own.users) for own in searched} == {(None, None)}
    assert [p.search for p in grid] == sorted(p.search for p in grid)


@given(axes, st.integers(1, 3), st.integers(0, 2**32))
def test_the_grid_has_every_point_once(axes: Axes, replications: int, seed: int) -> None:
    grid = points(axes, replications, seed=seed)
    assert len(set(grid)) == len(grid)
    replayed = [p for p in grid if not p.search]
    assert len(replayed) <= len(grid) <= axes.size() * replications
    assert {p.seed for p in grid} == {seed_of(seed, r) for r in range(replications)}


@given(axes, st.integers(0, 2**32))
def test_a_wider_grid_keeps_every_point(axes: Axes, seed: int) -> None:
    small = points(axes, 1, seed=seed)
    wide = Axes(
        slots=[*axes.slots, 99],
        replicas=[*axes.replicas, 99],
        balancers=axes.balancers,
        length_cvs=[*axes.length_cvs, 5.0],
        loads=[*axes.loads, 200.0],
        users=[*axes.users, 99],
        offline=True,
        searches=True,
    )
    assert set(small) <= set(points(wide, 2, seed=seed))


@given(axes, st.integers(1, 12), st.integers(0, 9))
def test_a_sample_is_some_settings_of_the_grid_whole(axes: Axes, sample: int, seed: int) -> None:
    whole = points(axes, 2, seed=seed)
    some = points(axes, 2, seed=seed, sample=sample)
    assert some == points(axes, 2, seed=seed, sample=sample)
    assert set(some) <= set(whole)
    settings = {p.setting for p in some if not p.search}
    assert len(settings) == min(sample, len({p.setting for p in whole if not p.search}))
    assert sum(not p.search for p in some) == 2 * len(settings)
    assert list(some) == [p for p in whole if p in set(some)]
    searched = {p.setting.server() for p in some if p.search}
    assert {replace(s, length_cv=None) for s in searched} == (
        {replace(s.server(), length_cv=None) for s in settings} if axes.searches else set()
    )
    assert len(searched) <= 2 * len(settings)


def test_samples_of_other_seeds_differ() -> None:
    axes = Axes(list(range(1, 101)), loads=[1])
    assert points(axes, 1, seed=1, sample=10) != points(axes, 1, seed=2, sample=10)


def test_seeds_are_stable() -> None:
    """Pinned: another Python, NumPy or machine must resume an old sweep with the same traffic."""
    assert seed_of(0, 0) == 385258171916575560
    assert 0 <= seed_of(2**40, 99) < 2**63
    assert len({seed_of(run, r) for run in (0, 1) for r in range(100)}) == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": []},
        {"slots": [0]},
        {"replicas": [0]},
        {"loads": []},
        {"loads": [0.0]},
        {"loads": [float("inf")]},
        {"loads": [float("nan")]},
        {"users": [0]},
        {"length_cvs": [-0.1]},
        {"length_cvs": [float("nan")]},
        {"length_cvs": []},
        {"costs": []},
    ],
)
def test_what_is_no_grid(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"slots|load|variation"):
        Axes(**{"slots": [4], "loads": [1.0], **wrong})


@pytest.mark.parametrize(("replications", "sample"), [(0, None), (1, 0)])
def test_nothing_to_do(replications: int, sample: int | None) -> None:
    with pytest.raises(ValueError, match="needs a replication"):
        points(Axes([4], loads=[1]), replications, seed=0, sample=sample)
