"""What is said of a valid workload file: what changes nothing, what is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slotwise_workflows.config import (
    WorkloadFile,
    broken_files,
    load_workload,
    to_cost,
    unlimited_memory,
    without_effect,
)

TEXT = """\
version: 1
traffic:
  synthetic: {requests: 6, arrivals: upfront, output_tokens: {constant: 5}}
server:
  cost: {step: {base_ms: 8}}
  memory: {kv_tokens: 900}
policies:
  - static
  - continuous
"""
Load = Callable[[str], WorkloadFile]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def read(text: str) -> WorkloadFile:
        path = tmp_path / "w.yaml"
        path.write_text(text, encoding="utf-8")
        return load_workload(path)

    return read


def said_of(workload: WorkloadFile) -> list[str]:
    return [line.rpartition("w.yaml:")[2] for line in without_effect(workload)]


def test_a_file_all_of_which_matters_is_left_alone(load: Load) -> None:
    assert without_effect(load(TEXT)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{step: {base_ms: 8}}", "{ms_per_token: 8}", "6: server.memory has no effect: memory"),
        ("  - continuous\n", "", "6: server.memory has no effect: memory limits continuous"),
        (
            "{kv_tokens: 900}",
            "{kv_tokens: 900, reserve: max_tokens, block_tokens: 8}",
            "6: server.memory.block_tokens has no effect",
        ),
        ("- static", "- static: {bins: 4}", "8: policies[0].static.bins has no effect"),
        (
            "- static",
            "- static: {max_delay_ms: 5}",
            "8: policies[0].static.max_delay_ms has no effect: static waits for a full batch",
        ),
        (
            "- static",
            "- dynamic: {prediction_error: 0.5}",
            "8: policies[0].dynamic.prediction_error has no effect",
        ),
        (
            "{step: {base_ms: 8}}\n  memory: {kv_tokens: 900}",
            "{step: {base_ms: 8, pieces: [{from_seqs: 8, base_ms: 9}, {from_seqs: 9, base_ms: 7}]}}"
            "\n  slots: 8",
            "5: server.cost.step.pieces[1] has no effect: no more than 8 sequences decode at once",
        ),
    ],
)
def test_what_changes_nothing_is_said_with_its_line(
    load: Load, old: str, new: str, said: str
) -> None:
    (line,) = said_of(load(TEXT.replace(old, new)))
    assert line.startswith(said)


def test_prefill_changes_nothing_where_a_token_always_takes_the_same(load: Load) -> None:
    text = TEXT.replace("{step: {base_ms: 8}}\n  memory: {kv_tokens: 900}", "{ms_per_token: 8}")
    text = text.replace("- continuous", "- continuous: {prefill: mixed, max_batched_tokens: 9}")
    cost = "under a step cost only, and the cost is ms_per_token"
    assert [line.partition(" ")[2] for line in said_of(load(text))] == [
        "policies[1].continuous.max_batched_tokens has no effect: it bounds iterations, and a cost"
        " of ms_per_token has none",
        f"policies[1].continuous.prefill has no effect: prompts are prefilled {cost}",
    ]


@pytest.mark.parametrize(
    ("slots", "sweep"),
    [("slots: 8, memory: {kv_tokens: 900}", ""), ("slots: 8", "sweep: {slots: [9]}\n")],
)
def test_a_piece_beyond_the_slots_matters_to_the_split_and_to_a_sweep(
    load: Load, slots: str, sweep: str
) -> None:
    step = "{step: {base_ms: 8, pieces: [{from_seqs: 9, base_ms: 7}]}}"
    server = f"server: {{cost: {step}, {slots}}}\n"
    text = TEXT.partition("server:")[0] + server + "policies:" + TEXT.partition("policies:")[2]
    assert said_of(load(text + sweep)) == []


def test_a_memory_that_only_the_preset_tells_of_limits_nothing_and_says_so(load: Load) -> None:
    free = TEXT.replace("{step: {base_ms: 8}}\n  memory: {kv_tokens: 900}", "{preset: NAME}")
    told = load(free.replace("NAME", "opt-13b-a100-vllm"))
    (line,) = unlimited_memory(told, to_cost(told))
    assert "w.yaml:4: memory limits nothing here" in line
    assert line.endswith("add memory: {kv_tokens: 66144} to server")
    untold = load(free.replace("NAME", "llama-3.1-8b-h100"))
    assert unlimited_memory(untold, to_cost(untold)) == []
    limited = load(TEXT.replace("{step: {base_ms: 8}}", "{preset: opt-13b-a100-vllm}"))
    assert unlimited_memory(limited, to_cost(limited)) == []
    batches = load(free.replace("NAME", "opt-13b-a100-vllm").replace("  - continuous\n", ""))
    assert unlimited_memory(batches, to_cost(batches)) == []


def test_a_calibration_that_is_not_there_is_a_fault(load: Load) -> None:
    (fault,) = broken_files(load(TEXT.replace("{step: {base_ms: 8}}", "{calibration: none.json}")))
    assert "w.yaml:5: server.cost.calibration cannot be used" in str(fault)
    assert broken_files(load(TEXT)) == []
