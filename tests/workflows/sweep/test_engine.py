from __future__ import annotations

import sys

import pytest

from slotwise_workflows.errors import MissingExtraError
from slotwise_workflows.sweep.engine import (
    RAY_FROM_S,
    available_processors,
    choose_engine,
    in_words,
)
from slotwise_workflows.sweep.estimate import Estimate

CLUSTER = "10.0.0.1:6379"


def work(seconds: float) -> Estimate:
    return Estimate(replay_s=0.1, search_s=1, seconds=seconds, memory_bytes=1)


@pytest.mark.parametrize(
    ("asked", "address", "seconds", "name", "workers"),
    [
        ("auto", None, 1, "local", 1),
        ("auto", None, 30, "local", 3),
        ("auto", None, 10 * RAY_FROM_S, "ray", 3),
        ("auto", CLUSTER, 1, "ray", 3),
        ("local", CLUSTER, 30, "local", 3),
        ("local", None, 10 * RAY_FROM_S, "local", 3),
        ("ray", None, 1, "ray", 3),
    ],
)
def test_the_engine_chosen(
    asked: str, address: str | None, seconds: float, name: str, workers: int
) -> None:
    engine = choose_engine(asked, address=address, workers=3, estimate=work(seconds))  # type: ignore[arg-type]
    assert (engine.name, engine.workers) == (name, workers)
    assert engine.address == (CLUSTER if name == "ray" and address else None)
    assert f"engine {name}" in engine.why
    assert "of one processor" in engine.why
    assert ("asked for" in engine.why) == (asked == name)


def test_one_processor_needs_no_second_process() -> None:
    engine = choose_engine("auto", address=None, workers=1, estimate=work(1e6))
    assert (engine.name, engine.workers) == ("local", 1)


def test_without_ray_long_work_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    engine = choose_engine("auto", address=None, workers=2, estimate=work(1e6))
    assert (engine.name, engine.workers) == ("local", 2)
    with pytest.raises(MissingExtraError, match="uv sync --extra ray") as error:
        choose_engine("ray", address=None, workers=2, estimate=work(1))
    assert error.value.exit_code == 6


def test_all_processors_are_used() -> None:
    engine = choose_engine("local", address=None, workers=None, estimate=work(1e6))
    assert engine.workers == available_processors() >= 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.2, "1 s"),
        (12.4, "12 s"),
        (600, "10 min"),
        (7200, "2.0 h"),
        (720_000, "200 h"),
    ],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
