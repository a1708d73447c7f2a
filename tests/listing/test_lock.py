"""requirements.lock: everything pinned and hashed, nobody's machine in it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")


def _requirements() -> list[str]:
    joined = LOCK.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]


def test_no_host_and_no_index() -> None:
    assert re.findall(r"https?://|file:|--(?:extra-)?index|--find-links|-i ", LOCK) == []


def test_every_requirement_is_pinned_and_hashed() -> None:
    for requirement in _requirements():
        assert re.match(r"[a-z0-9-]+==\S+ ", requirement), requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", requirement), requirement


def test_it_locks_every_dependency_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["ray"]]
    names = {re.split(r"[<>=!\[ ;]", line, maxsplit=1)[0].lower() for line in wanted}
    locked = {requirement.split("==", 1)[0] for requirement in _requirements()}
    assert names <= locked
