"""The command starts light, greets, and explains itself."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

# Not pydantic: newer versions of Typer read options with it.
HEAVY = ("numpy", "numba", "polars", "ray", "jinja2", "scipy", "rich", "yaml", "httpx")


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["--version"], ["diagnose", "--help"], ["bogus"]]
)
def test_nothing_heavy_is_loaded_before_it_is_needed(words: list[str]) -> None:
    # Counts modules, since time is not the same on two machines.
    script = (
        "import sys\nfrom slotwise_cli.app import main\nsys.argv[1:] = %r\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('|'.join(m for m in %r if m in sys.modules), file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script % (words, HEAVY)], capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines()[-1] == ""


def test_alone_it_greets_with_three_commands(cli: Cli) -> None:
    said = cli()
    assert said.code == 0
    assert re.findall(r"^  slotwise (\w+)", said.out, re.MULTILINE) == [
        "demo",
        "diagnose",
        "inspect",
    ]


def test_the_version_names_python_and_platform(cli: Cli) -> None:
    said = cli("--version")
    assert re.fullmatch(r"slotwise \d+\.\d+\S*, Python 3\.\d+\.\S+, \w+ \S+\n", said.out)


def test_no_summary_in_the_list_of_commands_is_cut(cli: Cli) -> None:
    assert "..." not in cli("--help").out.split("Commands:")[1]
