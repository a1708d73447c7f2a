"""From a workload file's path to its values, or to faults with file, line and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from slotwise_workflows.config.model import WorkloadFile
from slotwise_workflows.config.yaml_tree import Node, read_yaml
from slotwise_workflows.errors import ConfigError

Path_ = tuple[str | int, ...]

_PLAIN = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "model_attributes_type": "must be a mapping (key: value)",
    "tuple_type": "must be a list",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a workload file came from, for messages and for the paths it names."""

    path: Path
    tree: Node


def load_workload(path: str | Path) -> WorkloadFile:
    """Reads and checks a workload file.

    Raises:
        ConfigError: The file cannot be read or breaks the schema; the first fault in the file,
            with its line, and how many more there are.
    """
    workload, faults = check_workload(path)
    if workload is not None:
        return workload
    first, others = faults[0], len(faults) - 1
    if not others:
        raise first
    hint = f"{first.hint} " if first.hint else ""
    raise ConfigError(
        first.what,
        where=first.where,
        why=first.why,
        hint=f"{hint}(and {others} more: `slotwise config check` lists all)",
    )


def check_workload(path: str | Path) -> tuple[WorkloadFile | None, list[ConfigError]]:
    """Reads a workload file and finds every breach of the schema, in the order of the file.

    Returns:
        The values and no faults, or None and at least one fault.

    Raises:
        ConfigError: The file cannot be read as YAML at all.
    """
    path = Path(path)
    tree = read_yaml(path)
    if not isinstance(tree.value, dict):
        raise ConfigError(
            "is no workload file",
            where=f"{path}:{tree.line}",
            why="the top must be keys with values, such as `version: 1`",
            hint="`slotwise config init` writes an example",
        )
    try:
        workload = WorkloadFile.model_validate(tree.value)
    except ValidationError as error:
        # Pydantic's own texts quote the input; only a short form of it may be shown.
        faults = _without_echoes([dict(fault) for fault in error.errors(include_url=False)])
        lines = [tree.line_of(tuple(fault["loc"])) for fault in faults]
        order = sorted(range(len(faults)), key=lambda index: (lines[index], index))
        return None, [_fault(path, lines[index], faults[index]) for index in order]
    workload._source = Source(path, tree)
    return workload, []


def where(workload: WorkloadFile, field: str) -> str:
    """``file.yaml:LINE`` of a dotted field, or of the nearest key above it that is there.

    An item of a list is named by its index: ``policies.0.static``.
    """
    source: Source | None = workload._source
    if source is None:
        return field
    steps = (int(step) if step.isdigit() else step for step in field.split("."))
    return f"{source.path}:{source.tree.line_of(tuple(steps))}"


def base_directory(workload: WorkloadFile) -> Path:
    """The directory that the file's relative paths start from."""
    source: Source | None = workload._source
    return source.path.parent if source is not None else Path()


def _without_echoes(faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leaves out "list too short" where it only says that an item of the list is wrong."""
    places = [tuple(fault["loc"]) for fault in faults]

    def is_echo(loc: Path_) -> bool:
        return any(len(place) > len(loc) and place[: len(loc)] == loc for place in places)

    return [f for f in faults if f["type"] != "too_short" or not is_echo(tuple(f["loc"]))]


def _fault(path: Path, line: int, fault: dict[str, Any]) -> ConfigError:
    loc: Path_ = tuple(fault["loc"])
    what, hint = _sentence(loc, fault)
    return ConfigError(f"{_dotted(loc)} {what}" if loc else what, where=f"{path}:{line}", hint=hint)


def _dotted(loc: Path_) -> str:
    """``policies[0].static.release``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step:.60}" for step in loc)
    return "".join(steps).removeprefix(".")


def _sentence(loc: Path_, fault: dict[str, Any]) -> tuple[str, str]:
    """What is wrong with a field, and what to do about it."""
    kind, given = str(fault["type"]), fault["input"]
    context = fault.get("ctx", {})
    if kind == "extra_forbidden":
        return "is no key of a workload file", _unknown_key_hint(loc)
    if kind == "literal_error":
        allowed = _allowed(loc) or [str(context.get("expected", ""))]
        return f"must be one of {', '.join(allowed)}{_not(given)}", _did_you_mean(given, allowed)
    if kind == "value_error":
        return str(context["error"]), ""
    if kind == "missing":
        return _PLAIN[kind], ""
    if kind == "too_short":
        return f"must hold at least {context['min_length']} item", ""
    if kind == "too_long":
        return (
            f"must hold at most {context['max_length']} items, not {context['actual_length']}",
            "",
        )
    text = _PLAIN.get(kind) or str(fault["msg"]).replace("Input should", "must")
    return f"{text}{_not(given)}", ""


def _not(given: Any) -> str:
    """``, not 3``: the value found, where it is short enough to help."""
    if isinstance(given, bool):
        return f", not {str(given).lower()}"
    if given is None or isinstance(given, int | float):
        return f", not {given!r:.40}"
    if isinstance(given, str):
        return f", not {given!r:.40}"
    return f", not a {'list' if isinstance(given, list | tuple) else 'mapping'}"


def _did_you_mean(given: Any, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else ""


def _unknown_key_hint(loc: Path_) -> str:
    key = str(loc[-1])
    siblings = list(_fields(loc[:-1]))
    suggestion = _did_you_mean(key, siblings)
    if suggestion:
        return suggestion
    elsewhere = [field for field in field_names() if field.split(".")[-1] == key]
    if elsewhere:
        return f"Did you mean {elsewhere[0]!r}?"
    return f"Keys here are {', '.join(siblings)}" if siblings else ""


def _fields(loc: Path_) -> dict[str, Any]:
    """The keys allowed at a place of the file, with the types of their values."""
    kind: Any = WorkloadFile
    for step in loc:
        model = _model(kind)
        if model is None:
            return {}
        if isinstance(step, int):  # an item of a list: `kind` is still the list's type
            continue
        if step not in model.model_fields:
            return {}
        kind = model.model_fields[step].annotation
    model = _model(kind)
    return {n: f.annotation for n, f in model.model_fields.items()} if model else {}


def _allowed(loc: Path_) -> list[str]:
    """The words a field may be, where it is a choice of words."""
    while loc and isinstance(loc[-1], int):
        loc = loc[:-1]
    annotation = _fields(loc[:-1]).get(str(loc[-1])) if loc else None
    return [str(word) for word in _literals(annotation)]


def _literals(annotation: Any) -> Iterator[Any]:
    for argument in get_args(annotation):
        if isinstance(argument, str | int) and not isinstance(argument, bool):
            yield argument
        else:
            yield from _literals(argument)


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as ``Server | None`` or ``tuple[PolicyEntry, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is None:
        return None
    found = (_model(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)


def field_names() -> list[str]:
    """Every key of a workload file as a dotted name; items of lists are left out of the name."""
    return list(_walk(WorkloadFile, ""))


def _walk(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        below = _model(field.annotation)
        if below is not None:
            yield from _walk(below, f"{prefix}{name}.")
