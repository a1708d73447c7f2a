from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_sim import Continuous, Policy, Static
from slotwise_workflows.sweep.points import deal, points, seed_of

POLICIES: dict[str, Policy] = {"static": Static(), "continuous": Continuous()}
grids = st.tuples(
    st.lists(st.integers(1, 64), min_size=1, max_size=4),
    st.lists(st.floats(0.01, 100), min_size=1, max_size=4),
    st.integers(1, 4),
)


def test_the_grid_is_ordered_and_complete() -> None:
    grid = points([8, 4, 8], [2, 0.5], POLICIES, 2, seed=1)
    assert [(p.slots, p.load, p.replication) for p in grid] == [
        (slots, load, replication)
        for slots in (4, 8)
        for load in (0.5, 2.0)
        for replication in (0, 1)
    ]
    assert all(p.policies == tuple(POLICIES.items()) for p in grid)


@given(grids, st.integers(0, 2**32))
def test_a_seed_does_not_depend_on_the_rest_of_the_grid(
    grid: tuple[list[int], list[float], int], seed: int
) -> None:
    slots, loads, replications = grid
    small = points(slots[:1], loads[:1], {"continuous": Continuous()}, 1, seed=seed)
    large = points(slots, loads, POLICIES, replications, seed=seed)
    assert small[0].seed in {
        p.seed for p in large if (p.slots, p.load, p.replication) == (slots[0], loads[0], 0)
    }


def test_seeds_differ_between_points_and_runs() -> None:
    grid = points(range(1, 33), [0.5, 1, 2], POLICIES, 10, seed=0)
    other = points(range(1, 33), [0.5, 1, 2], POLICIES, 10, seed=1)
    assert len({p.seed for p in (*grid, *other)}) == len(grid) + len(other)


def test_seeds_are_stable() -> None:
    """Pinned: another Python, NumPy or machine must resume an old sweep with the same traffic."""
    assert seed_of(0, 8, 1.0, 0) == 5981367103378394639
    assert 0 <= seed_of(2**40, 1, 0.1, 99) < 2**63


@pytest.mark.parametrize(
    ("slots", "loads", "replications"),
    [
        ([], [1.0], 1),
        ([1], [], 1),
        ([1], [1.0], 0),
        ([0], [1.0], 1),
        ([1], [0.0], 1),
        ([1], [float("inf")], 1),
        ([1], [float("nan")], 1),
    ],
)
def test_what_is_no_grid(slots: list[int], loads: list[float], replications: int) -> None:
    with pytest.raises(ValueError, match=r"slots|load"):
        points(slots, loads, POLICIES, replications, seed=0)


@given(grids, st.integers(1, 9))
def test_every_point_is_dealt_once(grid: tuple[list[int], list[float], int], count: int) -> None:
    laid = points(*grid[:2], POLICIES, grid[2], seed=0)
    dealt = deal(laid, count)
    assert sorted((p for batch in dealt for p in batch), key=laid.index) == list(laid)
    assert len(dealt) <= count
    assert all(dealt)
    sizes = [len(batch) for batch in dealt]
    assert max(sizes) - min(sizes) <= 1
