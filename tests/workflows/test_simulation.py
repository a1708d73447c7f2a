"""Workload files replayed: the article's table from a log, and what is said of its input."""

import csv
import json
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from slotwise_sim import simulate
from slotwise_sim.article import article_workload
from slotwise_sim.metrics import figures
from slotwise_sim.policies import Dynamic, PerToken
from slotwise_workflows.config import load_workload
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.simulation import (
    CSV_COLUMNS,
    OnProgress,
    Simulation,
    build_workload,
    simulate_file,
    write_requests,
)

HEAD = """\
version: 1
name: article
traffic: {log: {path: article.csv, origin: zero, time_unit: s}}
server: {slots: 8, cost: {ms_per_token: 8}}
"""


@pytest.fixture
def article_log(tmp_path: Path) -> Path:
    """The article's requests as a plain table, times in seconds from its own zero."""
    made = article_workload()
    with (tmp_path / "article.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["t_s", "completion_tokens", "prompt_tokens"])
        for row in zip(made.arrival_s, made.output_tokens, made.prompt_tokens, strict=True):
            writer.writerow([f"{row[0]:.9f}", row[1], row[2]])
    return tmp_path


class Replay(Protocol):
    """Simulates a workload file of this text."""

    def __call__(
        self, text: str, name: str = "w.yaml", *, on_progress: OnProgress | None = None
    ) -> Simulation: ...


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    def run(
        text: str, name: str = "w.yaml", *, on_progress: OnProgress | None = None
    ) -> Simulation:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return simulate_file(load_workload(path), on_progress=on_progress)

    return run


@pytest.mark.usefixtures("article_log")
def test_the_articles_table_from_a_log(replay: Replay) -> None:
    done = replay(HEAD)
    plain = done.result.model_dump(mode="json", by_alias=True)
    assert plain["schema"] == "slotwise/simulation/v1"
    assert plain["requests"] == 600
    assert list(plain["policies"]) == ["static", "continuous"]
    shown = {
        key: (
            f"{p['latency_s']['mean']:.2f}",
            f"{p['latency_s']['p95']:.2f}",
            f"{p['latency_s']['max']:.2f}",
            f"{p['makespan_s']:.1f}",
            f"{p['requests_per_s']:.2f}",
            f"{p['busy_slot_s']:.1f}",
            f"{100 * p['idle_share']:.1f}",
        )
        for key, p in plain["policies"].items()
    }
    assert shown == {
        "static": ("151.36", "260.13", "272.69", "326.4", "1.84", "941.1", "64.0"),
        "continuous": ("34.62", "60.26", "66.79", "120.3", "4.99", "941.1", "2.2"),
    }
    assert set(plain["policies"]["static"]) == {
        *("latency_s", "queue_delay_s", "ttft_s", "tpot_s", "makespan_s", "requests_per_s"),
        *("output_tokens_per_s", "busy_slot_s", "idle_share", "preemptions"),
    }


@pytest.mark.usefixtures("article_log")
def test_origin_first_starts_the_clock_at_the_first_arrival(replay: Replay) -> None:
    zero, first = replay(HEAD), replay(HEAD.replace("origin: zero, ", ""))
    lead = zero.workload.arrival_s[0]
    assert lead > 0.1
    np.testing.assert_allclose(first.workload.arrival_s, zero.workload.arrival_s - lead, atol=1e-9)


@pytest.mark.usefixtures("article_log")
def test_policies_and_replicas_reach_the_simulator(replay: Replay) -> None:
    text = HEAD.replace("slots: 8", "slots: 8, replicas: 3")
    text += "policies: [dynamic: {max_delay_ms: 50, release: own}, dynamic]\n"
    done = replay(text)
    assert list(done.result.policies) == ["dynamic", "dynamic#2"]
    for key, policy in (("dynamic", Dynamic(50.0, release="own")), ("dynamic#2", Dynamic(0.0))):
        expected = figures(simulate(done.workload, policy, PerToken(8.0), slots=8, replicas=3))
        assert done.result.policies[key].model_dump() == expected


@pytest.mark.usefixtures("article_log")
def test_every_request_is_written_at_full_precision(replay: Replay, tmp_path: Path) -> None:
    done = replay(HEAD)
    write_requests(done, tmp_path / "requests.csv")
    with (tmp_path / "requests.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == 1 + 2 * 600
    for index, key in enumerate(("static", "continuous")):
        part = rows[1 + 600 * index : 601 + 600 * index]
        assert {row[0] for row in part} == {key}
        outcome = done.outcomes[key]
        columns = np.array([[float(cell) for cell in row[1:]] for row in part]).T
        for column, exact in zip(
            columns,
            (
                done.workload.arrival_s,
                done.workload.prompt_tokens,
                done.workload.output_tokens,
                outcome.start_s,
                outcome.first_token_s,
                outcome.end_s,
            ),
            strict=True,
        ):
            np.testing.assert_array_equal(column, exact)


def test_rows_keep_the_order_of_the_input(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t_s,completion_tokens\n9,10\n0,30\n9,20\n")
    text = HEAD.replace("article.csv", "t.csv").replace("slots: 8", "slots: 1")
    done = replay(text + "policies: [continuous]\n")
    assert done.workload.output_tokens.tolist() == [10, 30, 20]
    # Equal arrivals keep their order: the request of 10 tokens goes first.
    np.testing.assert_allclose(done.outcomes["continuous"].start_s, [9, 0, 9.08])


def test_dates_have_no_zero_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,completion_tokens\n2026-01-05T09:00:00Z,10\n")
    (tmp_path / "w.yaml").write_text(HEAD.replace("article.csv", "t.csv"))
    workload = load_workload(tmp_path / "w.yaml")
    with pytest.raises(ConfigError, match=r"w\.yaml:3: traffic\.log\.origin zero"):
        build_workload(workload)


def test_what_was_left_out_is_noted(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        "\n".join(json.dumps({"t_s": i, "completion_tokens": i}) for i in range(5))
    )
    done = replay(HEAD.replace("article.csv", "t.jsonl"))
    assert done.result.requests == 4
    assert "1 rows left out: no_output" in done.result.notes


def test_lengths_without_arrivals_arrive_at_once(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("completion_tokens\n10\n30\n20\n")
    text = HEAD.replace("article.csv, origin: zero", "t.csv")
    done = replay(text)
    assert done.workload.arrival_s.tolist() == [0.0, 0.0, 0.0]
    assert "arrival times are not known: all requests arrive at once" in done.result.notes


def test_progress_counts_policies(article_log: Path, replay: Replay) -> None:
    told = []
    replay(HEAD, on_progress=lambda done, total: told.append((done, total)))
    assert article_log.exists()
    assert told[0] == (0, 2)
    assert told[-1] == (2, 2)
