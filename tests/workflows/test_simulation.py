"""Workload files replayed: the article's table from a log, and what is said of its input."""

import csv
import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from slotwise_sim import Dynamic, Outcome, PerToken, Step, simulate
from slotwise_sim.article import article_workload
from slotwise_sim.metrics import figures
from slotwise_workflows.config import load_workload
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.simulation import (
    CSV_COLUMNS,
    OnProgress,
    Simulation,
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


def test_what_was_left_out_is_noted(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        "\n".join(json.dumps({"t_s": i, "completion_tokens": i}) for i in range(5))
    )
    done = replay(HEAD.replace("article.csv", "t.jsonl"))
    assert done.result.requests == 4
    assert "1 row left out: no_output" in done.result.notes


def test_lengths_without_arrivals_arrive_at_once(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("completion_tokens\n10\n30\n20\n")
    text = HEAD.replace("article.csv, origin: zero", "t.csv")
    done = replay(text)
    assert done.workload.arrival_s.tolist() == [0.0, 0.0, 0.0]
    assert "arrival times are not known: all requests arrive at once" in done.result.notes


def test_progress_counts_requests_of_all_policies(article_log: Path, replay: Replay) -> None:
    told = []
    replay(HEAD, on_progress=lambda done, total: told.append((done, total)))
    assert article_log.exists()
    assert told[0] == (0, 1200)
    assert (600, 1200) in told
    assert told[-1] == (1200, 1200)


@pytest.mark.usefixtures("article_log")
def test_progress_goes_on_within_a_policy(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    def half_way(*args: Any, on_progress: OnProgress, **options: Any) -> Outcome:
        on_progress(300, 600)
        return simulate(*args, **options)

    monkeypatch.setattr("slotwise_workflows.simulation.simulate", half_way)
    told = []
    replay(HEAD, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 1200) for done in (0, 300, 600, 900, 1200)]


PAIR = """\
version: 1
traffic:
  synthetic:
    requests: 2
    arrivals: upfront
    output_tokens: {constant: 9}
    prompt_tokens: {constant: 4}
    max_tokens: 9
server: {slots: 2, cost: {step: {base_ms: 10}}}
"""


def test_a_step_cost_by_hand(replay: Replay) -> None:
    """Two prompts of 4, two answers of 9: one iteration prefills, eight decode both."""
    step = "{base_ms: 10, per_seq_ms: 1, per_kv_token_ms: 0.5, per_prefill_token_ms: 2, "
    step += "per_prefill_token2_ms: 0.25, prefill_base_ms: 3}"
    result = replay(PAIR.replace("{base_ms: 10}", step)).result
    prefill_ms = 3 + 2 * 8 + 0.25 * (2 * 4**2)
    held = sum(2 * (4 + j) for j in range(1, 9))
    decode_ms = 8 * (10 + 2 * 1) + 0.5 * held
    for policy in ("static", "continuous"):
        figures = result.policies[policy]
        assert figures.makespan_s == pytest.approx((prefill_ms + decode_ms) / 1000)
        assert figures.ttft_s.mean == pytest.approx(prefill_ms / 1000)
        assert figures.tpot_s is not None
        assert figures.tpot_s.mean == pytest.approx(decode_ms / 8 / 1000)
        assert figures.idle_share == pytest.approx(0, abs=1e-12)
    assert result.ms_per_token is None
    assert (result.cost.kind, result.cost.name) == ("step", "")
    assert isinstance(result.cost.values, Step)
    assert result.cost.values.prefill_base_ms == 3
    assert result.memory is None


@pytest.mark.parametrize(
    ("memory", "iterations", "preemptions", "split"),
    [
        # Both grow to three of four blocks; at their fifth decode iteration the later one yields,
        # and comes back when the first is done: 9 + 1 prefill of what it had + 3.
        ("{kv_tokens: 16, block_tokens: 4}", 13, 1, True),
        (
            "{kv_tokens: 16, reserve: max_tokens}",
            18,
            0,
            False,
        ),  # 13 tokens each: one after the other
        ("{kv_tokens: 26, reserve: max_tokens}", 9, 0, False),  # one block of 16, no spare one
        ("{kv_tokens: 400}", 9, 0, True),
    ],
)
def test_memory_by_hand(
    replay: Replay, memory: str, iterations: int, preemptions: int, split: bool
) -> None:
    result = replay(PAIR.replace("slots: 2", f"slots: 2, memory: {memory}")).result
    figures = result.policies["continuous"]
    assert figures.makespan_s == pytest.approx(iterations * 0.010)
    assert figures.preemptions == preemptions
    assert result.policies["static"].makespan_s == pytest.approx(0.090)
    assert result.memory is not None
    assert (result.attribution is not None) == split == (result.notes == [])


def test_a_log_brings_what_its_cache_held(replay: Replay, tmp_path: Path) -> None:
    """Of 10 prompt tokens 6 are cached: 4 cost prefill."""
    (tmp_path / "t.csv").write_text(
        "t_s,prompt_tokens,completion_tokens,cached_tokens\n0,10,1,6\n9,10,1,\n"
    )
    text = HEAD.replace("article.csv", "t.csv")
    done = replay(
        text.replace("{ms_per_token: 8}", "{step: {base_ms: 1, per_prefill_token_ms: 1}}")
    )
    outcome = done.outcomes["continuous"]
    np.testing.assert_allclose(outcome.end_s - outcome.start_s, [0.005, 0.011])
    assert any("6 of 20 prompt tokens came from a cache" in note for note in done.result.notes)
    assert not any("cache" in note for note in replay(text, "per_token.yaml").result.notes)


def test_prompts_that_a_log_does_not_tell_are_counted(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t_s,completion_tokens\n0,10\n1,30\n")
    text = HEAD.replace("article.csv", "t.csv").replace("{ms_per_token: 8}", "{step: {base_ms: 8}}")
    assert any(
        note.startswith("prompt tokens of 2 of 2 requests are not known")
        for note in replay(text).result.notes
    )


MIXED = """\
version: 1
traffic:
  synthetic:
    requests: 400
    arrivals: upfront
    output_tokens: {mixture: [{weight: 2, constant: 20}, {weight: 3, constant: 100}]}
server: {slots: 4, cost: {ms_per_token: 10}}
policies: [static, binned: {bins: 2}, continuous]
"""


def test_bins_that_know_the_lengths_part_them(replay: Replay) -> None:
    """The median is 100, so each length has a class: only the last batch of each wastes slots."""
    done = replay(MIXED)
    work_s = done.workload.output_tokens.sum() * 0.010 / 4
    binned, static = (done.result.policies[key].makespan_s for key in ("binned", "static"))
    assert work_s <= binned <= work_s + 2 * 1.0
    assert static > 1.4 * work_s


def test_a_noisy_prediction_is_worse_and_changes_nothing_for_the_others(replay: Replay) -> None:
    known = replay(MIXED, "known.yaml").result.policies
    noisy = replay(MIXED.replace("bins: 2", "bins: 2, prediction_error: 1"), "n.yaml").result
    assert noisy.policies["binned"].makespan_s > known["binned"].makespan_s
    assert noisy.policies["static"] == known["static"]
    among = MIXED.replace("[static, ", "[binned, dynamic, static, binned: {bins: 9}, ")
    among = among.replace("{bins: 2}", "{bins: 2, prediction_error: 1}")
    many = replay(among, "m.yaml").result.policies
    assert many["binned#3"] == noisy.policies["binned"]


def test_policies_of_the_same_error_go_by_the_same_predictions(replay: Replay) -> None:
    same = "binned: {bins: 3, prediction_error: 0.7}"
    policies = replay(MIXED.replace("binned: {bins: 2}", f"{same}, {same}")).result.policies
    assert policies["binned"] == policies["binned#2"]


def test_where_the_gain_comes_from(replay: Replay) -> None:
    text = MIXED.replace("{ms_per_token: 10}", "{step: {base_ms: 10, per_seq_ms: 1}}")
    result = replay(text).result
    split = result.attribution
    assert split is not None
    assert split.memory is None
    static, continuous = (result.policies[key].makespan_s for key in ("static", "continuous"))
    # the replay counts its begin and end, the split does not
    assert split.order == split.total == pytest.approx(static / continuous, rel=0.01)
    paged = replay(text.replace("slots: 4", "slots: 4, memory: {kv_tokens: 1600}"), "p.yaml").result
    split = paged.attribution
    assert split is not None
    assert split.memory is not None
    assert split.larger_batch is not None
    assert split.total == pytest.approx(split.order * split.memory * split.larger_batch)
    assert split.larger_batch < 1 < split.memory
    assert split.running["paged"] > split.running["continuous"] > split.running["batch"]


@pytest.mark.parametrize(
    "change",
    [
        ("{step: {base_ms: 10}}", "{ms_per_token: 8}"),
        ("version: 1", "version: 1\npolicies: [continuous]"),
        ("version: 1", "version: 1\npolicies: [static, dynamic]"),
    ],
)
def test_there_is_nothing_to_split(replay: Replay, change: tuple[str, str]) -> None:
    """A cost per token; one kind of policy."""
    result = replay(PAIR.replace(*change)).result
    assert result.attribution is None
    assert result.notes == []


def test_what_cannot_be_split_is_named(replay: Replay, tmp_path: Path) -> None:
    """Reserved whole it fits, but a spare block beside it does not: the third row, served first."""
    (tmp_path / "t.csv").write_text(
        "t_s,prompt_tokens,completion_tokens,max_tokens\n9,4,2,2\n5,4,2,2\n0,28,4,4\n"
    )
    text = HEAD.replace("article.csv, origin: zero", "t.csv")
    text = text.replace("slots: 8", "slots: 8, memory: {kv_tokens: 32, reserve: max_tokens}")
    result = replay(text.replace("{ms_per_token: 8}", "{step: {base_ms: 8}}")).result
    assert result.attribution is None
    assert "gain not split: paged memory needs a spare block for request 3" in result.notes


def test_progress_counts_the_split_as_one_more(replay: Replay) -> None:
    told = []
    replay(PAIR, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 6), (2, 6), (4, 6), (6, 6)]


@pytest.mark.parametrize(
    "cost",
    ["{step: {base_ms: 0, per_seq_ms: 1}}", "{step: {base_ms: 1e-300}}", "{ms_per_token: 1e-308}"],
)
def test_a_replay_that_takes_no_time_is_refused(replay: Replay, cost: str) -> None:
    text = PAIR.replace("{constant: 9}", "{constant: 1}").replace("{step: {base_ms: 10}}", cost)
    with pytest.raises(
        ConfigError, match=r"w\.yaml:9: server\.cost makes no request take any time"
    ):
        replay(text)
