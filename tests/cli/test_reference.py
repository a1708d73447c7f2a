"""The reference pages name everything that there is, and nothing that there is not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from slotwise_cli.app import app
from slotwise_workflows.config import field_names
from slotwise_workflows.errors import NOT_ENOUGH_DATA, SlotwiseError

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def top() -> TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def commands(group: TyperGroup, prefix: str = "slotwise") -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{prefix} {name}")
        else:
            assert isinstance(command, TyperCommand)
            yield f"{prefix} {name}", command


def sections() -> dict[str, str]:
    parts = re.split(r"^## `(slotwise [a-z ]+)`$", page("commands.md"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    assert sorted(sections()) == sorted(name for name, _ in commands(top()))


@pytest.mark.parametrize(("name", "command"), list(commands(top())), ids=lambda v: str(v)[:40])
def test_every_option_is_in_its_commands_section(name: str, command: TyperCommand) -> None:
    text = sections()[name]
    options = {o for p in command.params for o in p.opts if o.startswith("--")} - {"--help"}
    documented = set(re.findall(r"--[a-z0-9][a-z0-9-]*", text))
    assert options - documented == set()


def test_every_option_of_the_top_is_documented() -> None:
    options = {o for p in top().params for o in p.opts if o.startswith("--")}
    assert {o for o in options if o not in page("commands.md")} == set()


def test_every_key_of_a_workload_file_is_documented() -> None:
    known = set(re.findall(r"^\| `([A-Za-z0-9_.]+)` \|", page("config.md"), re.MULTILINE))
    lengths = re.compile(r"^traffic\.synthetic\.(?:output|prompt)_tokens\.")
    # The parts of a mixture are the distributions above it, and a weight.
    parts = re.compile(r"LENGTHS\.mixture\.(?!weight)")
    told = [name for name in field_names() if not name.startswith("sweep.cost.")]  # server.cost's
    names = {parts.sub("LENGTHS.", lengths.sub("LENGTHS.", name)) for name in told}
    assert names - known == set()
    assert known - names == set()


def test_every_exit_code_is_documented() -> None:
    documented = set(re.findall(r"^\| `(\d+)` \|", page("exit-codes.md"), re.MULTILINE))
    of_faults = {str(kind.exit_code) for kind in all_kinds(SlotwiseError)}
    assert documented == of_faults | {"0", str(NOT_ENOUGH_DATA)}


def all_kinds(kind: type[SlotwiseError]) -> set[type[SlotwiseError]]:
    return {kind}.union(*(all_kinds(below) for below in kind.__subclasses__()))
