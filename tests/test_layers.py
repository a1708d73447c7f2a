"""Imports only go down: cli, listing, workflows, sim; and no circle inside a package."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("slotwise_cli", "slotwise_listing", "slotwise_workflows", "slotwise_sim")
SOURCES = {
    ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("cli", "listing", "workflows", "sim")
    for layer in LAYERS
    for path in (ROOT / folder / layer).rglob("*.py")
}


def imported(path: Path) -> set[str]:
    """Modules of ours that a file imports when it is loaded or when a function of it runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name in SOURCES}


@pytest.mark.parametrize("module", SOURCES)
def test_imports_go_down_the_list_of_layers(module: str) -> None:
    own = LAYERS.index(module.split(".")[0])
    for name in imported(SOURCES[module]):
        assert LAYERS.index(name.split(".")[0]) >= own, f"{module} imports {name}"


def test_no_imports_go_in_a_circle() -> None:
    graph = {module: imported(path) - {module} for module, path in SOURCES.items()}
    # A package's own modules may be re-exported by its __init__; that is no circle.
    for module in graph:
        graph[module] = {n for n in graph[module] if not module.startswith(f"{n}.")}
    TopologicalSorter(graph).prepare()


def test_no_two_folders_import_one_another() -> None:
    """Of `workflows`: what two of them share is lower than both."""

    def folder(module: str) -> str:
        return str(SOURCES[module].relative_to(SOURCES["slotwise_workflows"].parent).parts[0])

    ours = {m for m in SOURCES if m.startswith("slotwise_workflows") and "." not in folder(m)}
    pairs = {
        (folder(module), folder(name))
        for module in ours
        for name in imported(SOURCES[module]) & ours
        if folder(module) != folder(name)
    }
    assert [(one, other) for one, other in sorted(pairs) if (other, one) in pairs] == []


def test_the_simulator_knows_arrays_alone() -> None:
    beyond_arrays = {"polars", "pydantic", "yaml", "typer", "rich", "ray", "jinja2", "pathlib"}
    for module, path in SOURCES.items():
        if module.startswith("slotwise_sim"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            froms = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
            plain = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
            # Machine code is kept on disk; what is simulated never touches it.
            allowed = {"pathlib"} if module == "slotwise_sim.compiled" else set()
            found = {name.split(".")[0] for name in froms | plain}
            assert not found & beyond_arrays - allowed, module
