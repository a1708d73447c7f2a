"""A run directory: what a diagnosis leaves behind, and reading it back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from slotwise_workflows.errors import InputError
from slotwise_workflows.files import write_file
from slotwise_workflows.result import SCHEMA, Result

if TYPE_CHECKING:
    from slotwise_workflows.traffic.model import Traffic

RESULT = "result.json"
PROVENANCE = "provenance.json"
TRAFFIC = "traffic.parquet"
_LARGEST_RESULT = 256 << 20


def default_directory(name: str) -> Path:
    """``slotwise-<name>`` under the working directory, the name made fit for any file system."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80]
    return Path(f"slotwise-{plain or 'run'}")


def write_result(result: Result, directory: Path) -> list[Path]:
    """Writes ``provenance.json``, then ``result.json``; returns their paths.

    Raises:
        InputError: The directory cannot be written.
    """
    return [
        write_file(directory / PROVENANCE, as_json(result.provenance)),
        write_file(directory / RESULT, as_json(result)),
    ]


def write_traffic(traffic: Traffic, directory: Path) -> list[Path]:
    """Writes the canonical table, which holds no text of any prompt; returns its path.

    Raises:
        InputError: The directory cannot be written.
    """
    from slotwise_workflows.traffic import write_parquet

    path = directory / TRAFFIC
    write_parquet(traffic, path)
    return [path]


def as_json(model: BaseModel) -> bytes:
    """A model as the JSON that files hold: UTF-8, indented, the same bytes for the same content."""
    plain = model.model_dump(mode="json", by_alias=True)
    text = json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def load_result(directory: Path) -> Result:
    """Reads back what `write_result` wrote.

    Args:
        directory: A run directory, or its ``result.json``.

    Raises:
        InputError: There is no result, or none of this version.
    """
    path = directory if directory.is_file() else directory / RESULT
    try:
        if path.stat().st_size > _LARGEST_RESULT:
            raise InputError("is too large for a result", where=str(path))
        plain = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(
            "no finished run here" if directory.is_dir() else "no such directory",
            where=str(path if directory.is_dir() else directory),
            hint="Give a directory that `slotwise diagnose` or `slotwise demo` wrote",
        ) from None
    except OSError as error:
        raise InputError("cannot be read", where=str(path), why=error.strerror or "") from None
    except (ValueError, RecursionError):
        raise InputError(
            "is not JSON", where=str(path), hint="Run `slotwise diagnose` again"
        ) from None
    found = plain.get("schema") if isinstance(plain, dict) else None
    if found != SCHEMA:
        raise InputError(
            f"has schema {str(found)[:60]!r}",
            where=str(path),
            why=f"this version reads {SCHEMA}",
            hint="Use the version that wrote it, or run `slotwise diagnose` again",
        )
    try:
        return Result.model_validate(plain)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in fault["loc"])
        raise InputError(
            f"{field[:120]} is wrong",
            where=str(path),
            why=str(fault["msg"]),
            hint="Run `slotwise diagnose` again",
        ) from None
