"""Every `slotwise` line of a ```bash block in the docs is run as it stands.

The files that the lines name are made here, and a server is where they say; of a probe only the
first test is run. A page's lines run in order in one folder, so that a later line can use what an
earlier one wrote.
"""

from __future__ import annotations

import json
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from probe_server import Faults, Policy, running_server
from slotwise_sim import Continuous, Step, Workload, simulate

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"```bash\n(.*?)```", re.DOTALL)


def examples(page: Path) -> list[str]:
    """The slotwise command lines of a page, `uv run` and what runs before `&&` taken off."""
    lines = "\n".join(FENCED.findall(page.read_text(encoding="utf-8"))).splitlines()
    calls = [re.sub(r"^.*&& *", "", line.split(" #")[0]).removeprefix("uv run ") for line in lines]
    return [call.strip() for call in calls if call.startswith("slotwise ")]


PAGES = [
    page
    for page in sorted(
        [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("listing/*/*.md")]
    )
    if examples(page)
]


def measured_run() -> str:
    """A log of a simulated server, with first tokens and ends."""
    rng = np.random.default_rng(7)
    workload = Workload(
        np.cumsum(rng.exponential(0.4, 60)), rng.integers(2, 300, 60), rng.integers(9, 800, 60)
    )
    outcome = simulate(workload, Continuous(), Step(15, 0.5, 0, 0.05), slots=64)
    columns = (
        1_788_220_800 + workload.arrival_s,
        outcome.first_token_s - workload.arrival_s,
        outcome.end_s - workload.arrival_s,
        workload.prompt_tokens,
        workload.output_tokens,
    )
    rows = (",".join(f"{value:.6f}" for value in row) for row in zip(*columns, strict=True))
    return "\n".join(["timestamp,ttft_s,latency_s,prompt_tokens,completion_tokens", *rows]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file that the docs' examples name."""
    draw = random.Random(7)
    rows = []
    now = 1_788_220_800.0
    for number in range(150):
        now += draw.expovariate(2.0)
        rows.append((number, now, draw.randint(50, 900), draw.choice((40, 80, 120, 900))))
    (tmp_path / "your-log.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "id": f"r{n}",
                    "created": int(at),
                    "usage": {"prompt_tokens": p, "completion_tokens": o},
                }
            )
            + "\n"
            for n, at, p, o in rows
        )
    )
    (tmp_path / "requests.csv").write_text(
        "timestamp,route,prompt_tokens,completion_tokens\n"
        + "".join(f"{at:.3f},{'ab'[o > 100]},{p},{o}\n" for _, at, p, o in rows)
    )
    (tmp_path / "table.csv").write_text(
        "t_ms,out\n" + "".join(f"{at * 1000:.0f},{o}\n" for _, at, _, o in rows)
    )
    (tmp_path / "measured.csv").write_text(measured_run())
    (tmp_path / "workload.yaml").write_text(
        "version: 1\nname: example\ntraffic: {log: {path: requests.csv}}\n"
        "server: {slots: 8, cost: {ms_per_token: 12}}\n"
        "sweep: {slots: [4, 8], load: [1, 2], replications: 3}\n"
    )
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text((tmp_path / "your-log.jsonl").read_text())
    (tmp_path / "inputs.json").write_text('{"traffic_log": "requests.csv", "slots": 8}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a server that batches continuously."""
    with running_server(Policy(slots=8, step_ms=4.0), Faults()) as server:
        yield server.url


# Two languages of a page, say: what begins like another page's lines is run there.
PAGE_OF = {tuple(examples(page)): page for page in PAGES}
RUNS = [
    pytest.param(calls, id=str(page.relative_to(ROOT)))
    for calls, page in PAGE_OF.items()
    if not any(other != calls and other[: len(calls)] == calls for other in PAGE_OF)
]


_SHORT = " --yes --trials 1 --max-requests 12"


@pytest.mark.parametrize("calls", RUNS)
def test_every_example_of_a_page_runs(calls: tuple[str, ...], folder: Path, endpoint: str) -> None:
    from slotwise_cli.app import app

    for call in calls:
        if call.startswith("slotwise bundle"):
            continue  # built and verified from a clean clone in tests/listing
        if call.startswith("slotwise probe"):
            call = call.replace("http://localhost:8000/v1", endpoint) + _SHORT
        told = CliRunner().invoke(app, shlex.split(call)[1:])
        assert told.exit_code == 0, f"{call}: {told.output}"
    assert folder.exists()


def test_there_are_examples_to_run() -> None:
    assert {page.name for page in PAGES} >= {"README.md", "commands.md", "run.md", "page.md"}
