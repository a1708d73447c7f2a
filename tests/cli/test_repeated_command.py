"""The report's command of the after-test is one that the command line takes."""

import shlex

import typer
from typer.core import TyperGroup

from slotwise_cli.app import app
from slotwise_workflows.report.after_test import COMPARE_COMMAND, FLAGS, command_of_then


def test_options_without_a_value_are_known_to_the_report() -> None:
    top = typer.main.get_command(app)
    assert isinstance(top, TyperGroup)
    params = [*top.commands["diagnose"].params, *(p for p in top.params if p.name == "debug")]
    flags = {o for p in params if getattr(p, "is_flag", False) for o in p.opts}
    assert flags == FLAGS


def test_the_command_that_compares_is_understood() -> None:
    words = shlex.split(COMPARE_COMMAND)
    top = typer.main.get_command(app)
    assert isinstance(top, TyperGroup)
    assert words[:2] == ["slotwise", "report"]
    given = top.commands["report"].make_context("report", words[2:]).params
    assert [str(path) for path in given["run_dirs"]] == ["THIS_RUN", "NEW_RUN"]
    assert given["compare"] is True


def test_the_command_is_understood() -> None:
    words = ["my log.csv", "--slots=8", "--map", "arrival=t s", "--map=output_tokens=o", "--json"]
    again = shlex.split(command_of_then(["slotwise", "diagnose", *words], []))
    top = typer.main.get_command(app)
    assert isinstance(top, TyperGroup)
    assert again[:2] == ["slotwise", "diagnose"]
    given = top.commands["diagnose"].make_context("diagnose", again[2:]).params
    assert given["logs"] == ["NEW_LOG"]
    assert given["slots"] == 8
    assert given["map_"] == ["arrival=t s", "output_tokens=o"]
    assert given["json"] is False
