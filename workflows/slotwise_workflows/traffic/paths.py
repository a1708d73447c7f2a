"""Which files a command line means: files, directories, globs, standard input."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from slotwise_workflows.errors import InputError, UsageError

STDIN = "-"
_PACKED = (".gz", ".zst")
_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".log", ".txt", ".parquet")
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file to be read.

    Attributes:
        name: As the user would write it; ``standard input`` for ``-``.
        path: Where its bytes are: the file itself, or a copy of what came through a pipe.
        size: Bytes.
    """

    name: str
    path: Path
    size: int


def log_name(argument: str) -> str:
    """What the traffic of a log is called where nobody names it.

    Args:
        argument: A file, a directory, a pattern, or ``-``.

    Returns:
        The last part without the endings of logs (``app-1.2.jsonl.gz`` is ``app-1.2``), at most 80
        characters; ``traffic`` where nothing of it is a name.
    """
    if argument == STDIN:
        return "stdin"
    name = Path(argument.rstrip("/\\")).name
    for endings in (_PACKED, _ENDINGS):
        ending = Path(name.lower()).suffix if "." in name[1:] else name.lower()
        if ending in endings:
            name = name[: -len(ending)]
    return name.strip("*?[] .-_")[:_LONGEST_NAME] or "traffic"


@contextmanager
def log_files(
    arguments: Sequence[str | Path], *, stdin: BinaryIO | None = None
) -> Iterator[tuple[LogFile, ...]]:
    """The files that a command line names, ready to be read more than once.

    Standard input and named pipes are copied to temporary files, which are gone when the context
    is left.

    Args:
        arguments: As `expand`.
        stdin: What ``-`` stands for; the process's standard input when None.

    Raises:
        InputError: As `expand`.
        UsageError: As `expand`.
    """
    with ExitStack() as stack:
        found = []
        for path in expand(arguments):
            if str(path) == STDIN:
                copy = stack.enter_context(spooled(stdin or sys.stdin.buffer))
                found.append(LogFile("standard input", copy, copy.stat().st_size))
            elif path.is_file():
                found.append(LogFile(str(path), path, path.stat().st_size))
            else:
                with path.open("rb") as pipe:
                    copy = stack.enter_context(spooled(pipe))
                found.append(LogFile(str(path), copy, copy.stat().st_size))
        yield tuple(found)


@contextmanager
def spooled(source: BinaryIO) -> Iterator[Path]:
    """A copy of a stream on the disk, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="slotwise-") as folder:
        copy = Path(folder) / "input"
        with copy.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        yield copy


def expand(arguments: Sequence[str | Path]) -> tuple[Path, ...]:
    """The files behind files, directories, globs and ``-``.

    A directory stands for all files in it and below it, sorted by path, but for hidden ones
    (a name that begins with a dot). Every other file is taken, whatever its name: what is no log
    is refused by its content, never skipped. A file named twice is read once.

    Args:
        arguments: At least one.

    Returns:
        Paths in the order of the arguments; ``-`` stays ``Path("-")``.

    Raises:
        UsageError: Nothing is named, or standard input twice.
        InputError: A file is missing, a directory has no files, a glob matches nothing.
    """
    if not arguments:
        raise UsageError("no log is named", hint="Name files or directories, or `-` for a pipe")
    found: dict[Path, Path] = {}
    for argument in map(str, arguments):
        if argument == STDIN:
            if Path(STDIN) in found:
                raise UsageError("standard input (`-`) is named twice")
            found[Path(STDIN)] = Path(STDIN)
            continue
        for path in _behind(argument):
            found.setdefault(path.resolve(), path)
    return tuple(found.values())


def _behind(argument: str) -> list[Path]:
    path = Path(argument)
    if path.is_dir():
        return _files_in(path)
    if path.exists():
        return [path]
    if glob.has_magic(argument):
        matches = [Path(match) for match in sorted(glob.glob(argument, recursive=True))]  # noqa: PTH207
        files = [
            file
            for match in matches
            for file in (_files_in(match, empty_ok=True) if match.is_dir() else [match])
        ]
        if files:
            return files
        raise InputError("no file matches", where=argument, hint=_nearest(path))
    raise InputError("no such file or directory", where=argument, hint=_nearest(path))


def _files_in(folder: Path, *, empty_ok: bool = False) -> list[Path]:
    """All files below a directory, sorted; links to directories are followed once."""
    files: list[Path] = []
    seen: set[Path] = set()

    def refuse(error: OSError) -> None:
        raise InputError(
            "the directory cannot be read",
            where=str(error.filename or folder),
            why=error.strerror or type(error).__name__,
        )

    for root, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here = Path(root)
        if here.resolve() in seen:
            folders.clear()
            continue
        seen.add(here.resolve())
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [here / name for name in names if not name.startswith(".")]
    if not files and not empty_ok:
        raise InputError(
            "the directory has no files in it", where=str(folder), hint="Hidden files are not read"
        )
    return sorted(files)


def _nearest(path: Path) -> str:
    """The name next to a missing one, if some file there is called like it."""
    parent = path.parent
    if not parent.is_dir():
        return f"There is no directory {parent}"
    try:
        names = sorted(entry.name for entry in parent.iterdir() if not entry.name.startswith("."))
    except OSError:
        return ""
    close = get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"Did you mean {parent / close[0]}?" if close else ""


def fingerprint(path: Path) -> tuple[str, int]:
    """SHA-256 (hex) of a file's bytes as they lie on the disk, and their number.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return digest.hexdigest(), file.tell()
    except OSError as error:
        raise InputError(
            "the file cannot be read", where=str(path), why=error.strerror or type(error).__name__
        ) from error
