"""The command of the after-test says what this run's said, on the log of then."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from slotwise_workflows.report.after_test import COMPARE_COMMAND, command_of_then
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import Branding, Code
from slotwise_workflows.report.words import load_words
from slotwise_workflows.result import Fact, Result, Source


def fact(name: str, value: float | str | None, source: Source = "given") -> Fact:
    return Fact(name=name, value=value, source=source)


@pytest.mark.parametrize(
    ("options", "again"),
    [
        (["a.csv"], ""),
        (["-"], ""),
        (["my logs/a b.csv", "it's.csv", "--slots", "8"], "--slots 8"),
        (["--slots=8", "a.csv", "b.csv", "--tz=Asia/Tokyo"], "--slots=8 --tz=Asia/Tokyo"),
        (
            ["a.csv", "--map", "arrival=t s", "--map=output_tokens=out", "--time-unit", "ms"],
            "--map 'arrival=t s' --map=output_tokens=out --time-unit ms",
        ),
        (
            ["--where", "route=a b", "--where", "x!='1'", "--segment", "route", "-"],
            "--where 'route=a b' --where 'x!='\"'\"'1'\"'\"'' --segment route",
        ),
        (
            ["a.csv", "--workload", "my load.yaml", "--decimal", ",", "--latency-p95-s", "20"],
            "--workload 'my load.yaml' --decimal , --latency-p95-s 20",
        ),
        (["--json", "a.csv", "--quiet", "--no-input", "--debug", "--seed", "3"], "--seed 3"),
        (["--output-dir", "old run", "--output-dir=other", "a.csv"], ""),
        (["--allow-truncated", "a.gz", "--ttft-p95-s=1.5"], "--allow-truncated --ttft-p95-s=1.5"),
        (["--ms-per-token", "12.3456789", "a.csv"], "--ms-per-token 12.3456789"),
        (["--slots", "8", "--", "--odd.csv", "-x.csv"], "--slots 8"),
        (["a.csv", "--client", "顧客 A"], "--client '顧客 A'"),
        (["a.csv", "--probe", "http://h:1/v1", "--yes"], "--probe http://h:1/v1"),
        (["a.csv", "--probe=probe", "--slots", "8"], "--slots 8"),  # of then it tells nothing
    ],
)
def test_the_options_of_this_run_come_again(options: list[str], again: str) -> None:
    told = command_of_then(["slotwise", "diagnose", *options], [fact("slots", 99.0)])
    assert told == f"slotwise diagnose NEW_LOG {again}".rstrip()


def test_a_word_in_front_of_the_command_makes_no_difference() -> None:
    words = ["slotwise", "--debug", "diagnose", "a.csv", "--slots", "8"]
    assert command_of_then(words, []) == "slotwise diagnose NEW_LOG --slots 8"


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["slotwise", "demo", "--seed", "3"],
        ["slotwise", "run", "diagnose", "--inputs", "inputs.json", "--output-dir", "out"],
        ["python", "diagnose"],
    ],
)
def test_any_other_run_is_told_by_what_was_given(command: list[str]) -> None:
    facts = [
        fact("serving", "self_hosted"),
        fact("slots", 8.0),
        fact("replicas", 1_000_000.0, "assumed"),
        fact("ms_per_token", 12.345678901234567),
        fact("max_delay_ms", 0.1),
        fact("mode", None),
        fact("loop", "open"),
    ]
    assert command_of_then(command, facts) == (
        "slotwise diagnose NEW_LOG --slots 8 --ms-per-token 12.345678901234567 "
        "--max-delay-ms 0.1 --serving self_hosted"
    )


def test_a_delay_without_an_end_is_said() -> None:
    told = command_of_then([], [fact("max_delay_ms", None), fact("slots", None)])
    assert told == "slotwise diagnose NEW_LOG --max-delay-ms inf"
    told = command_of_then([], [fact("max_delay_ms", None, "assumed")])
    assert told == "slotwise diagnose NEW_LOG"


def test_whole_numbers_are_written_out() -> None:
    facts = [fact("slots", 65536.0), fact("replicas", 1234567.0)]
    told = command_of_then([], facts)
    assert told == "slotwise diagnose NEW_LOG --slots 65536 --replicas 1234567"


def test_the_report_shows_it_for_a_log_of_several_models(
    make_result: Callable[..., Result],
) -> None:
    result = make_result("several_models")
    words = ["slotwise", "diagnose", "my logs/a.csv", "--map", "arrival=t s", "--json"]
    result = result.model_copy(
        update={"provenance": result.provenance.model_copy(update={"command": words})}
    )
    document = compose(result, load_words("en"), Branding())
    rollout = next(section for section in document.sections if section.id == "rollout")
    code = [block.text for block in rollout.blocks if isinstance(block, Code)]
    assert code == ["slotwise diagnose NEW_LOG --map 'arrival=t s'", COMPARE_COMMAND]
    assert shlex.split(code[0])[3:] == ["--map", "arrival=t s"]
