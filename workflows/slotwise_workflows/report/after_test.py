"""The commands of the after-test: the settings of this run on the log of then; then both runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import islice

from slotwise_workflows.report.words import clean
from slotwise_workflows.result import Fact

NEW_LOG = "NEW_LOG"
# What holds the run of then against this one; its `report` says whether the prediction was met.
COMPARE_COMMAND = "slotwise report --compare THIS_RUN NEW_RUN"
# Options of `slotwise diagnose` that take no value; a word after any other option is its value.
FLAGS = frozenset({"--allow-truncated", "--json", "--quiet", "--no-input", "--debug", "--yes"})
# What concerns that run alone: where it wrote and how it spoke.
_NOT_AGAIN = frozenset({"--output-dir", "--json", "--quiet", "--no-input", "--debug", "--yes"})
_FROM_FACTS = ("slots", "replicas", "ms_per_token", "max_delay_ms", "serving", "mode")
# What no option tells stands in a workload file.
WORKLOAD = "WORKLOAD.yaml"
_LONGEST_WORD = 1000


def command_of_then(command: Sequence[str], facts: Sequence[Fact]) -> str:
    """The command that repeats a run on a later log, quoted for a POSIX shell.

    Args:
        command: The command line of this run, as provenance keeps it.
        facts: What this run knew, for a run that was no ``slotwise diagnose`` of a person's: a
            host's, or the demo. Those that were given become options.
    """
    options = _options(command)
    if options is None:
        options = _given(facts)
    words = ["slotwise", "diagnose", NEW_LOG, *options]
    return shlex.join(clean(word, _LONGEST_WORD) for word in words)


def _options(command: Sequence[str]) -> list[str] | None:
    """The options to repeat, without the logs; None where it is no call of ``diagnose``."""
    name, *words = [word for word in command if word != "--debug"] or [""]
    if name != "slotwise" or words[:1] != ["diagnose"]:
        return None
    kept: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word == "--":  # only logs follow
            break
        if not word.startswith("--"):
            continue
        option, equals, _ = word.partition("=")
        whole = [word]
        if not equals and option not in FLAGS:
            whole += islice(rest, 1)
        found_before = option == "--probe" and "://" not in whole[-1]
        if option not in _NOT_AGAIN and not found_before:
            kept += whole
    return kept


def _given(facts: Sequence[Fact]) -> list[str]:
    values = {fact.name: fact.value for fact in facts if fact.source == "given"}
    options: list[str] = []
    for name in _FROM_FACTS:
        value = values.get(name)
        if name == "max_delay_ms" and name in values and value is None:
            value = "inf"  # JSON has no infinity: a delay without a number is one without an end
        if value is not None:
            options += [f"--{name.replace('_', '-')}", _exact(value)]
    return [*options, *_cost_given(facts)]


def _cost_given(facts: Sequence[Fact]) -> list[str]:
    """The step cost and the memory that a run was told."""
    told = {fact.name: fact for fact in facts}
    cost = told.get("cost")
    if cost is None:
        return []
    if "memory" in told or cost.basis not in {"preset", "calibration"}:
        return ["--workload", WORKLOAD]
    return [f"--{cost.basis}", str(cost.value)]


def _exact(value: float | str) -> str:
    """A number with every digit it has, a whole one without a point."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value.is_integer() else repr(value)
