"""The points that are finished, on disk: what a sweep that is run again need not compute again.

A point is known by its content: the traffic, what is compared, the cost, the setting, the seed, and
the code that computed it. Anything that changes in them makes another point of it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import slotwise_sim
from slotwise_workflows import compare
from slotwise_workflows.errors import InputError
from slotwise_workflows.sweep.evaluate import Done
from slotwise_workflows.sweep.points import Point
from slotwise_workflows.sweep.rows import Limit, Row
from slotwise_workflows.sweep.scenario import Scenario

_MARK = 0x510750FE  # SQLite's application id: a file of ours
_BUSY_S = 60.0  # another sweep may be writing into the same directory
_CURES = {
    "SQLITE_BUSY": "Another sweep writes there: let it end, or choose another --output-dir",
    "SQLITE_FULL": "Make room on the disk; what is kept already is safe",
    "SQLITE_READONLY": "Choose an --output-dir that can be written",
    "SQLITE_CANTOPEN": "Choose an --output-dir that can be written",
}
_LIBRARIES = ("numpy", "numba", "scipy")


class Store:
    """An open file of finished points.

    Args:
        connection: Of the file.
        path: Where it is, for errors.
        key: Of a point.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, key: Callable[[Point], str]
    ) -> None:
        self._connection = connection
        self._path = path
        self._key = key

    def finished(self, grid: Sequence[Point]) -> list[Done]:
        """Those of the points that are finished, in no particular order."""
        wanted = {self._key(point): point for point in grid}
        with _told(self._path):
            kept = self._connection.execute("SELECT key, rows FROM points")
            return [
                Done(wanted[key], _rows(wanted[key], json.loads(rows)))
                for key, rows in kept
                if key in wanted
            ]

    def drop_stale(self) -> None:
        """Makes room: what another version computed is of no use to this one."""
        with _told(self._path), self._connection:
            self._connection.execute("DELETE FROM points WHERE code != ?", (state_of_the_code(),))

    def keep(self, done: Iterable[Done]) -> None:
        """Keeps what is finished, all of it or nothing; what failed is not finished."""
        rows = [
            (
                self._key(own.point),
                state_of_the_code(),
                json.dumps([astuple(row) for row in own.rows]),
            )
            for own in done
            if not own.failure
        ]
        with _told(self._path), self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO points VALUES (?, ?, ?)", rows)


def _rows(point: Point, found: list[list[Any]]) -> tuple[Row, ...] | tuple[Limit, ...]:
    if point.search:
        return tuple(Limit(*values) for values in found)
    return tuple(Row(*values) for values in found)


@contextmanager
def open_store(path: Path, scenario: Scenario) -> Iterator[Store]:
    """Opens the file of finished points, or makes it.

    SQLite's journal is left as it is by default, a file beside it: the faster one does not work on
    network drives. Every commit is on the disk before it counts.

    Args:
        path: The file.
        scenario: What is swept.

    Raises:
        InputError: The file cannot be used, or is not one of ours.
    """
    with _told(path):
        connection = sqlite3.connect(path, timeout=_BUSY_S)
    try:
        with _told(path):
            _prepare(connection, path)
        yield Store(connection, path, key_of(scenario))
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    [mark] = connection.execute("PRAGMA application_id").fetchone()
    if mark == _MARK:
        return
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        raise _not_ours(path, "it is a database of something else")
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS points"
            " (key TEXT PRIMARY KEY, code TEXT NOT NULL, rows TEXT NOT NULL)"
        )
        connection.execute(f"PRAGMA application_id = {_MARK}")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turns SQLite's faults into ours."""
    try:
        yield
    except sqlite3.Error as error:
        hint = _CURES.get(error.sqlite_errorname)
        raise _not_ours(path, str(error), *([hint] if hint else [])) from None


def _not_ours(
    path: Path, why: str, hint: str = "Move that file away, or choose another --output-dir"
) -> InputError:
    what = "the finished points cannot be kept here"
    return InputError(what, where=str(path), why=why, hint=hint)


def key_of(scenario: Scenario) -> Callable[[Point], str]:
    """What the points of a scenario are known by.

    Args:
        scenario: What is swept.

    Returns:
        A function from a point to its key: 40 hexadecimal digits.
    """
    shared = hashlib.blake2b(state_of_the_code().encode())
    workload = scenario.workload
    for field in fields(workload):
        column = getattr(workload, field.name)
        if column is not None:
            shared.update(f"{field.name} {column.dtype.str} {len(column)}".encode())
            shared.update(column.tobytes())
    told_of_all = (
        dict(scenario.policies),
        dict(scenario.prediction_errors),
        scenario.run,
        scenario.thinking,
    )
    told_of_searches = (
        dict(scenario.objectives),
        scenario.gain_adopt,
        scenario.waiting_adopt,
    )
    shared.update(repr(told_of_all).encode())

    def key(point: Point) -> str:
        own = shared.copy()
        setting = point.setting
        own.update(repr((point, scenario.cost(setting), scenario.memory_of(setting))).encode())
        if point.search:
            own.update(repr(told_of_searches).encode())
        return own.hexdigest()[:40]

    return key


@cache
def state_of_the_code() -> str:
    """Tells one state of the code that computes points from any other."""
    digest = hashlib.blake2b()
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    workflows = Path(compare.__file__).parents[1]
    sources = [
        *Path(slotwise_sim.__file__).parent.rglob("*.py"),
        *Path(compare.__file__).parent.glob("*.py"),
        *(workflows / "sweep").glob("*.py"),
        workflows / "outcome.py",
        workflows / "thinking.py",
    ]
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()
