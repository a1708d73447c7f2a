"""A run directory: what a diagnosis leaves behind, written so that a crash leaves no half file.

Every file is written beside its final place and moved over it in one step, so a reader, a crash or
Ctrl-C finds either the old file or the new one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from slotwise_workflows.errors import InputError
from slotwise_workflows.result import SCHEMA, Result

if TYPE_CHECKING:
    from slotwise_workflows.traffic.model import Traffic

RESULT = "result.json"
PROVENANCE = "provenance.json"
TRAFFIC = "traffic.parquet"
_LARGEST_RESULT = 256 << 20


def default_directory(name: str) -> Path:
    """``slotwise-<name>`` under the working directory, the name made fit for any file system."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60]
    return Path(f"slotwise-{plain or 'run'}")


def prepare_directory(directory: Path) -> Path:
    """Makes the directory, its parents too, and finds out whether it can be written.

    Raises:
        InputError: It cannot be made or written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        trial = directory / f".{secrets.token_hex(6)}.trial"
        trial.touch(exist_ok=False)
        trial.unlink()
    except OSError as error:
        raise _cannot_write(directory, error, what="no output directory") from None
    return directory


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; once the block ends well, the file stands at ``path`` in one step.

    If the block raises, Ctrl-C included, ``path`` keeps what it held and nothing is left over.

    Raises:
        InputError: The place cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error, what="cannot be written") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, content: bytes) -> Path:
    """Writes a whole file in one step; returns its path.

    Raises:
        InputError: The place cannot be written.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


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


def _cannot_write(path: Path, error: OSError, *, what: str) -> InputError:
    return InputError(
        what,
        where=str(path),
        why=(error.strerror or str(error)).lower(),
        hint="Choose another place with --output-dir",
    )
