"""Files that are whole or not there: a crash leaves the old one or the new one, never half a one.

Every file is written beside its final place and moved over it in one step.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slotwise_workflows.errors import InputError


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
def output_directory(directory: Path) -> Iterator[Path]:
    """The directory as `prepare_directory` makes it; one that got no file is not left behind.

    Raises:
        InputError: It cannot be made or written.
    """
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        yield prepare_directory(directory)
    finally:
        with suppress(OSError):  # the first that holds something ends it
            for path in new:
                path.rmdir()


def check_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Makes sure, before any work is done, that a named file may be written.

    Args:
        path: Where the user wants it; a file that is there will be replaced.
        inputs: Files that the work reads.

    Raises:
        InputError: It is no regular file, or one of the inputs.
    """
    if not path.name or str(path) == "-" or (path.exists() and not path.is_file()):
        raise InputError(
            "cannot be written",
            where=str(path) or "''",
            why="it is not the name of a file",
            hint="Choose another place with --output-dir",
        )
    if any(path.exists() and other.exists() and path.samefile(other) for other in inputs):
        raise InputError(
            "would replace what is read",
            where=str(path),
            why="it is one of the inputs",
            hint="Choose another place with --output-dir",
        )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; once the block ends well, the file stands at ``path`` in one step.

    If the block raises, Ctrl-C included, ``path`` keeps what it held and nothing is left over. A
    link stays a link, to the new content.

    Raises:
        InputError: The place cannot be written.
    """
    check_output(path)
    path = path.resolve() if path.is_symlink() else path
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


@contextmanager
def staged(directory: Path) -> Iterator[Path]:
    """A folder to write several files to; once the block ends well, all take their places.

    They are moved one after the other, within moments. If the block raises, Ctrl-C included,
    ``directory`` keeps what it held.

    Args:
        directory: An existing directory; files and folders of the same names are replaced.

    Raises:
        InputError: The place cannot be written.
    """
    stage = directory / f".{secrets.token_hex(6)}.tmp"
    try:
        stage.mkdir()
        yield stage
        for path in sorted(stage.iterdir()):
            target = directory / path.name
            if target.is_dir():
                shutil.rmtree(target)
            path.replace(target)
    except OSError as error:
        raise _cannot_write(directory, error, what="cannot be written") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_file(path: Path, content: bytes) -> Path:
    """Writes a whole file in one step; returns its path.

    Raises:
        InputError: The place cannot be written.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


def _cannot_write(path: Path, error: OSError, *, what: str) -> InputError:
    return InputError(
        what,
        where=str(path),
        why=(error.strerror or str(error)).lower(),
        hint="Choose another place with --output-dir",
    )
