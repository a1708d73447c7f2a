"""The requests of a workload file: what cannot be replayed is refused before anything runs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from slotwise_sim import Workload
from slotwise_workflows.config import load_workload, to_memory
from slotwise_workflows.errors import InputError
from slotwise_workflows.requests import build_workload

LOG = """\
version: 1
traffic: {log: {path: t.csv}}
server: {slots: 8, cost: {step: {base_ms: 8}}, memory: MEMORY}
"""
MADE = """\
version: 1
traffic:
  synthetic: {requests: 3, arrivals: upfront, output_tokens: {constant: 9}}
server:
  cost: {step: {base_ms: 8}}
  memory: MEMORY
"""
ROWS = "t_s,prompt_tokens,completion_tokens,max_tokens\n0,10,5,20\n1,40,9,20\n2,10,5,\n"
Build = Callable[[str], Workload]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    (tmp_path / "t.csv").write_text(ROWS)

    def run(text: str) -> Workload:
        path = tmp_path / "w.yaml"
        path.write_text(text, encoding="utf-8")
        return _built(path)[0]

    return run


def _built(path: Path) -> tuple[Workload, list[str]]:
    workload_file = load_workload(path)
    return build_workload(workload_file, to_memory(workload_file))


def told_by(build: Build, text: str) -> str:
    with pytest.raises(InputError) as caught:
        build(text)
    return str(pickle.loads(pickle.dumps(caught.value)))


def test_dates_have_no_zero_of_their_own(build: Build, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,completion_tokens\n2026-01-05T09:00:00Z,10\n")
    text = LOG.replace("t.csv", "t.csv, origin: zero").replace(", memory: MEMORY", "")
    assert "w.yaml:2: traffic.log.origin zero" in told_by(build, text)


def test_a_request_that_can_never_run_is_named_by_its_line(build: Build, tmp_path: Path) -> None:
    """48 tokens stored: 12 blocks of 4 and a spare one; 48 tokens hold 12."""
    assert told_by(build, LOG.replace("MEMORY", "{kv_tokens: 48, block_tokens: 4}")) == (
        f"{tmp_path}/t.csv:3: request 2 can never run: its prompt of 40 tokens and output of 9 need"
        " 13 blocks of 4 tokens, one of them spare, and server.memory holds 12. Give server.memory"
        " more kv_tokens, or leave such requests out with traffic.log.where"
    )
    assert len(build(LOG.replace("MEMORY", "{kv_tokens: 52, block_tokens: 4}"))) == 3


def test_made_requests_are_named_by_their_number(build: Build) -> None:
    told = told_by(build, MADE.replace("MEMORY", "{kv_tokens: 8, block_tokens: 4}"))
    assert "w.yaml:6: request 1 can never run: its prompt of 0 tokens and output of 9" in told
    assert "traffic.log" not in told


def test_what_is_reserved_must_fit_too(build: Build, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS.replace("10,5,\n", "10,5,7\n"))
    told = told_by(build, LOG.replace("MEMORY", "{kv_tokens: 59, reserve: max_tokens}"))
    assert "t.csv:3: request 2 can never run" in told
    assert (
        "prompt of 40 tokens and max_tokens of 20 need 60 tokens, and server.memory holds 59"
        in told
    )
    caps = build(LOG.replace("MEMORY", "{kv_tokens: 60, reserve: max_tokens}")).max_tokens
    assert caps is not None
    assert caps.tolist() == [20, 20, 7]


def test_caps_that_are_missing_are_counted(build: Build, tmp_path: Path) -> None:
    told = told_by(build, LOG.replace("MEMORY", "{kv_tokens: 900, reserve: max_tokens}"))
    assert told == (
        f"{tmp_path}/w.yaml:3: server.memory.reserve max_tokens needs the max_tokens of every"
        f" request: 1 of 3 rows tell none, the first at {tmp_path}/t.csv:4. Use reserve: paged, or"
        " give every request its max_tokens"
    )
    told = told_by(build, MADE.replace("MEMORY", "{kv_tokens: 900, reserve: max_tokens}"))
    assert "w.yaml:6: server.memory.reserve max_tokens needs the max_tokens of every requ" in told
    assert "request: traffic.synthetic.max_tokens is not given" in told


def test_requests_that_outgrew_their_caps_are_counted(tmp_path: Path) -> None:
    """Prompt and cap are held, as the law says; a cap that the log broke holds too little."""
    (tmp_path / "t.csv").write_text(ROWS.replace(",20\n", ",4\n").replace("10,5,\n", "10,5,5\n"))
    for memory, expected in (
        ("{kv_tokens: 900, reserve: max_tokens}", 1),
        ("{kv_tokens: 900}", 0),
    ):
        path = tmp_path / "w.yaml"
        path.write_text(LOG.replace("MEMORY", memory))
        said = [note for note in _built(path)[1] if "max_tokens" in note]
        assert len(said) == expected
        for note in said:
            assert note.startswith("2 requests generated more than their max_tokens; they hold")


@pytest.mark.parametrize(
    "text",
    [
        MADE.replace("{step: {base_ms: 8}}", "{ms_per_token: 8}"),
        MADE + "policies: [static, dynamic]\n",
    ],
)
def test_memory_that_limits_nothing_refuses_nothing(build: Build, text: str) -> None:
    assert len(build(text.replace("MEMORY", "{kv_tokens: 1}"))) == 3


def test_cached_tokens_reach_the_workload(build: Build, tmp_path: Path) -> None:
    """Missing is none; more than the prompt is the prompt."""
    (tmp_path / "t.csv").write_text(
        "t_s,prompt_tokens,completion_tokens,cached_tokens\n0,10,5,4\n1,10,9,\n2,10,5,99\n"
    )
    made = build(LOG.replace(", memory: MEMORY", ""))
    assert made.cached_tokens is not None
    np.testing.assert_array_equal(made.cached_tokens, [4, 0, 10])
    (tmp_path / "t.csv").write_text(ROWS)
    assert build(LOG.replace(", memory: MEMORY", "")).cached_tokens is None
