from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.sweep.batches import (
    LARGEST_S,
    MOST_DEATHS,
    TASKS_PER_WORKER,
    Task,
    after_a_death,
    deal,
    neighbours,
)
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.points import Axes, Point, points

axes = st.builds(
    Axes,
    slots=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    loads=st.lists(st.floats(0.01, 100), min_size=1, max_size=4),
    searches=st.booleans(),
)
seconds = st.floats(1e-6, 100)


def estimate(replay_s: float, search_s: float) -> Estimate:
    return Estimate(replay_s, search_s, seconds=0, memory_bytes=0)


@given(axes, st.integers(1, 4), seconds, seconds, st.integers(1, 16))
def test_every_point_is_dealt_once(
    axes: Axes, replications: int, replay_s: float, search_s: float, workers: int
) -> None:
    grid = points(axes, replications, seed=0)
    told = estimate(replay_s, search_s)
    dealt = deal(grid, told, workers=workers)
    assert sorted((p for batch in dealt for p in batch), key=grid.index) == list(grid)
    assert all(dealt)
    longest = max(replay_s, search_s)
    assert all(sum(map(told.of, batch)) <= LARGEST_S + longest for batch in dealt)


def test_work_is_shared_out_among_the_workers() -> None:
    grid = points(Axes([1], loads=range(1, 101)), 10, seed=0)
    assert len(deal(grid, estimate(0.001, 1), workers=2)) >= 2 * TASKS_PER_WORKER
    assert len(deal(grid, estimate(1.0, 1), workers=2)) == 1000


def test_the_longest_points_come_first_and_neighbours_stay_together() -> None:
    grid = points(Axes([1, 2], loads=[1, 2], searches=True), 2, seed=0)
    dealt = [p for batch in deal(grid, estimate(0.1, 1), workers=1) for p in batch]
    assert [p.search for p in dealt] == sorted((p.search for p in dealt), reverse=True)
    replayed = [(p.setting.slots, p.replication, p.setting.load) for p in dealt if not p.search]
    assert replayed == sorted(replayed)


def test_neighbours_share_a_server_and_a_replication() -> None:
    grid = points(Axes([1, 2], loads=[1, 2], users=[3]), 2, seed=0)
    shared = [(point.setting.server(), point.replication) for point in neighbours(grid)]
    assert len({*shared}) == 4
    assert shared == [one for one in dict.fromkeys(shared) for _ in range(3)]


@given(st.integers(1, 6), st.data())
def test_one_point_that_kills_is_all_that_is_given_up(size: int, data: st.DataObject) -> None:
    """Every worker dies that is sent it; the others finish what they are sent without it."""
    batch = points(Axes([1], loads=range(1, size + 1)), 1, seed=0)
    deadly = data.draw(st.sampled_from(batch))
    waiting, deaths = [Task(batch)], 0
    finished: list[Point] = []
    given_up: list[Point] = []
    while waiting:
        task = waiting.pop()
        if deadly not in task.batch:
            finished += task.batch
            continue
        deaths += 1
        again = after_a_death(task)
        waiting += again
        given_up += [] if again else task.batch
    assert given_up == [deadly]
    assert sorted(finished, key=batch.index) == [point for point in batch if point != deadly]
    assert deaths == (MOST_DEATHS if size == 1 else 2 * MOST_DEATHS)
