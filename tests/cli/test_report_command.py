"""`slotwise report`: finished runs with the consultant's words, shared, or side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from slotwise_workflows.run_directory import load_result

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

# Names that stand nowhere else, so that a search finds them where they leaked.
ROUTES = ("zebra-chat", "yak-summary", "quokka-agents")
MODELS = ("walrus-7b", "ocelot-70b")
FOLDER = "heron-holdings-logs"


def write_log(path: Path, *, seed: int = 1, sigma: float = 0.9, requests: int = 300) -> list[str]:
    """Writes a log with ids, routes and models; returns the ids."""
    draw = np.random.default_rng(seed)
    arrivals = 1_788_220_800 + np.cumsum(draw.exponential(0.5, requests))
    tokens = np.maximum(1, draw.lognormal(5, sigma, requests)).astype(int)
    ids = [f"req-{seed}-{i:06d}-lynx" for i in range(requests)]
    rows = [
        f"{arrivals[i]:.3f},{ids[i]},{tokens[i]},{ROUTES[i % 3]},{MODELS[i % 2]},user-{i % 7}-ibex"
        for i in range(requests)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["ts,id,completion_tokens,route,model,user", *rows]) + "\n")
    return ids


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> Path:
    """A finished run of a log whose every name is known."""
    log = tmp_path / FOLDER / "gnu-export.csv"
    write_log(log)
    workload = tmp_path / FOLDER / "lemur-load.yaml"
    workload.write_text(
        f"version: 1\nname: narwhal\ntraffic: {{log: {{path: {log}, segment: [route, user]}}}}\n"
        "server: {slots: 8, replicas: 1, cost: {ms_per_token: 10}}\n"
        "report: {client: Heron AG, prepared_by: Auk, formats: [html, md, summary]}\n"
    )
    directory = tmp_path / "run"
    said = cli(
        *("diagnose", "--workload", workload, "--where", "user!=user-6-ibex", "--language", "en"),
        *("--output-dir", directory),
    )
    assert said.code == 0, said.err
    return directory


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes().decode("utf-8")


def test_a_shared_folder_names_nothing_of_the_log(cli: Cli, run: Path, tmp_path: Path) -> None:
    said = cli("report", run, "--share")
    assert said.code == 0, said.err
    folder = run / "share"
    found = dict(contents(folder))
    assert {"report.html", "report.md", "summary.html", "result.json"} <= found.keys()
    assert "tables/segments.csv" in found
    users = [f"user-{i}-ibex" for i in range(7)]
    ids = [f"req-1-{i:06d}-lynx" for i in range(300)]
    places = [FOLDER, "gnu-export", "lemur-load", "narwhal", str(tmp_path), tmp_path.name]
    for name, text in found.items():
        leaked = [own for own in (*ids, *ROUTES, *MODELS, *users, *places) if own in text]
        assert leaked == [], name
    # what the same search finds in the run itself, so that it can fail
    own_page = (run / "report.html").read_text(encoding="utf-8")
    assert all(own in own_page for own in (*ROUTES, "walrus-7b", "gnu-export", "narwhal"))
    # it is still the client's report, with every number of it
    assert "Heron AG" in found["report.html"]
    shared, result = load_result(folder), load_result(run)
    for name in ("gain", "idle_share", "policies", "what_if", "verdict", "slots"):
        assert getattr(shared, name) == getattr(result, name)
    assert set(shared.traffic.segments["route"].values) == {"route-1", "route-2", "route-3"}
    assert shared.provenance.inputs[0].sha256 == result.provenance.inputs[0].sha256


def test_the_key_stays_in_the_run(cli: Cli, run: Path) -> None:
    assert cli("report", run, "--share").code == 0
    key = json.loads((run / "share-key.json").read_bytes())
    assert set(key["segments"]["route"].values()) == set(ROUTES)
    assert set(key["segments"]["model"].values()) == set(MODELS)
    assert "gnu-export.csv" in key["logs"]["log-1"]
    assert not list((run / "share").rglob("*key*"))
    assert not list((run / "share").rglob("*.parquet"))
    # each label stands for the same numbers as its name
    shared, result = load_result(run / "share"), load_result(run)
    for label, value in key["segments"]["route"].items():
        assert (
            shared.traffic.segments["route"].values[label]
            == result.traffic.segments["route"].values[value]
        )


def test_nothing_else_is_shared_by_mistake(cli: Cli, run: Path, tmp_path: Path) -> None:
    said = cli("report", run, "--share", "--output-dir", run)
    assert said.code == 2
    assert "the folder to share holds other files" in said.err
    assert cli("report", run, "--share", "--output-dir", tmp_path / "out").code == 0
    assert cli("report", run, "--share", "--output-dir", tmp_path / "out").code == 0  # again
    said = cli("report", run, run, "--share", "--compare")
    assert said.code == 2
    assert "do not go together" in said.err


def test_notes_are_put_into_a_finished_report(cli: Cli, run: Path, tmp_path: Path) -> None:
    workload = tmp_path / "words.yaml"
    workload.write_text(
        "version: 1\ntraffic: {log: {path: x.csv}}\n"
        "report:\n  prepared_by: Bittern\n  notes: |\n    Move the **batch** job.\n"
        "  actions:\n    - {what: Ask the team, owner: Sato, due: 2026-12-15}\n"
    )
    said = cli("report", run, "--workload", workload, "--output-dir", tmp_path / "again")
    assert said.code == 0, said.err
    page = (tmp_path / "again" / "report.md").read_text(encoding="utf-8")
    assert "Move the batch job." in page
    assert "| Ask the team | Sato | 2026-12-15 |" in page
    assert "Bittern" in page
    assert "Heron AG" in page  # what the file does not say stays as in the run


def test_two_runs_are_compared(cli: Cli, run: Path, tmp_path: Path) -> None:
    log = tmp_path / "later.csv"
    write_log(log, seed=2, sigma=0.3)
    later = tmp_path / "later"
    options = ("--slots", 8, "--replicas", 1, "--ms-per-token", 10, "--output-dir", later)
    assert cli("diagnose", log, *options).code == 0
    said = cli("report", "--compare", run, later, "--language", "en")
    assert said.code == 0, said.err
    assert (later / "comparison.html").exists()
    page = (later / "comparison.md").read_text(encoding="utf-8")
    assert "Longest of a batch over the mean: down from" in page
    plain = json.loads(cli("report", "--compare", run, later, "--json").out)
    assert plain == json.loads((later / "comparison.json").read_bytes())
    assert plain["schema"] == "slotwise/comparison/v1"
    before, after = load_result(run), load_result(later)
    assert plain["before"]["verdict"] == before.verdict
    assert plain["after"]["requests"] in {after.requests, *(m.requests for m in after.models)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--compare", "one"), "--compare takes two runs, not 1. Name the earlier one first"),
        (("a", "b"), "one run is rendered at a time, not 2. Two are compared with --compare"),
    ],
)
def test_as_many_runs_as_are_needed(cli: Cli, words: tuple[str, ...], said: str) -> None:
    told = cli("report", *words)
    assert told.code == 2
    assert said in told.err
