"""What a person sees: results on standard output, the rest on standard error."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

OnProgress = Callable[[int, int], None]
_ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # control, format, surrogates, separators
_LONGEST = 2000


def one_line(text: str) -> str:
    """Text that may quote a log or a file name, made fit for a terminal: one line, nothing acts.

    Control characters (escape sequences, newlines) and invisible ones that turn text around are
    written as escapes.
    """
    shown = "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _ACTING else char
        for char in text[:_LONGEST]
    )
    return shown if len(text) <= _LONGEST else f"{shown}..."


def prepare_streams() -> None:
    """Lets every console show what it can: a character that its encoding lacks becomes ``?``."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


@dataclass(frozen=True, slots=True)
class Console:
    """How much is said, and where.

    Attributes:
        quiet: Nothing on standard error but errors.
    """

    quiet: bool = False

    def note(self, text: str) -> None:
        """Says something beside the result, on standard error."""
        if not self.quiet:
            typer.echo(one_line(text), err=True)

    def out(self, text: str) -> None:
        """Prints a line of the result."""
        typer.echo(one_line(text))

    def json(self, value: BaseModel | dict[str, Any]) -> None:
        """Prints the machine-readable result, and nothing else goes to standard output."""
        plain = value if isinstance(value, dict) else value.model_dump(mode="json", by_alias=True)
        ascii_only = not _is_unicode(sys.stdout)
        text = json.dumps(plain, ensure_ascii=ascii_only, indent=2, allow_nan=False)
        typer.echo(text.encode("utf-8", "replace").decode())

    @contextmanager
    def progress(self, label: str, *, counted: bool = False) -> Iterator[OnProgress]:
        """A bar on standard error while the block works, on a terminal only, with the time left.

        Args:
            label: What is being done.
            counted: Whether how many of how many is worth reading, not only their share.

        Yields:
            A function to be told how many of how many.
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda _done, _total: None
            return
        from rich.console import Console as RichConsole
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        done = MofNCompleteColumn() if counted else TaskProgressColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), done, TimeRemainingColumn())
        with Progress(*columns, console=RichConsole(stderr=True), transient=True) as bars:
            task = bars.add_task(label, total=None)

            def advance(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total or None)

            yield advance


def _is_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")


def choose_language(option: str | None, configured: str | None = None) -> Literal["ja", "en"]:
    """The report's language: the option's, else the workload file's, else the user's own."""
    told = option or configured or _user_language()
    return "ja" if told.lower().startswith("ja") else "en"


def _user_language() -> str:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return os.environ[name]
    import locale  # Windows sets none of these

    return locale.getlocale()[0] or "en"
