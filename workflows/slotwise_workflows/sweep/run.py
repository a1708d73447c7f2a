"""A sweep from its grid to what was found, on whichever engine; what is finished is kept."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

from slotwise_workflows.sweep.batches import deal
from slotwise_workflows.sweep.engine import Engine, EngineName
from slotwise_workflows.sweep.estimate import Estimate
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.local import run_local
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.ray_engine import run_ray
from slotwise_workflows.sweep.scenario import Scenario
from slotwise_workflows.sweep.store import open_store

OnProgress = Callable[[int, int], None]
"""Told how many points are done, of how many."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep.

    Attributes:
        engine: What it ran on; what was found does not depend on it.
        done: Its points in the order of the grid, those that failed among them.
        reused: How many of them an earlier run had finished.
    """

    engine: EngineName
    done: tuple[Done, ...]
    reused: int


def sweep(
    scenario: Scenario,
    grid: Sequence[Point],
    engine: Engine,
    estimate: Estimate,
    *,
    store: Path | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> Sweep:
    """Evaluates every point of the grid that is not finished yet.

    The engine, its workers and their order leave no trace in what is found. Interrupted, it keeps
    what is done: run again, it goes on from there.

    Args:
        scenario: What all points share.
        grid: What `slotwise_workflows.sweep.points.points` laid out.
        engine: Where to evaluate.
        estimate: How long the points take.
        store: File of the points that are finished; None keeps nothing.
        on_progress: Told how many points are done, of how many.

    Raises:
        InputError: The store cannot be used.
        MissingExtraError: Ray was asked for and is not installed.
        EndpointError: The Ray cluster cannot be reached, or does not match.
        SlotwiseError: Ray was lost.
    """
    found: dict[Point, Done] = {}
    with nullcontext() if store is None else open_store(store, scenario) as kept:
        if kept is not None:
            kept.drop_stale()
            found.update((own.point, own) for own in kept.finished(grid))
        reused = len(found)
        on_progress(reused, len(grid))
        missing = [point for point in grid if point not in found]
        with closing(_run(scenario, missing, engine, estimate)) as running:
            for batch in running:
                if kept is not None:
                    kept.keep(batch)
                found.update((own.point, own) for own in batch)
                on_progress(len(found), len(grid))
    return Sweep(engine.name, tuple(found[point] for point in grid), reused)


def unfinished(scenario: Scenario, grid: Sequence[Point], store: Path) -> list[Point]:
    """The points that are still to be computed.

    Args:
        scenario: What all points share.
        grid: The points.
        store: File of the points that are finished; it need not be there.

    Raises:
        InputError: The file cannot be used.
    """
    if not store.exists():
        return list(grid)
    with open_store(store, scenario) as kept:
        finished = {own.point for own in kept.finished(grid)}
    return [point for point in grid if point not in finished]


def _run(
    scenario: Scenario, points: Sequence[Point], engine: Engine, estimate: Estimate
) -> Generator[Sequence[Done], None, None]:
    if not points:
        return
    batches = deal(points, estimate, workers=engine.workers)
    if engine.name == "ray":
        yield from run_ray(scenario, batches, workers=engine.workers, address=engine.address)
    else:
        yield from run_local(scenario, batches, workers=engine.workers)
