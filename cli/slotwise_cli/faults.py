"""The one place where a fault becomes a line on standard error and an exit code."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from slotwise_cli.console import one_line
from slotwise_workflows.errors import Cancelled, InputError, SlotwiseError

# Usage errors, which Typer prints itself and turns into exit code 2. The class has no public name
# in all the versions that are supported.
_TyperFault: type[BaseException] = typer.BadParameter.__mro__[2]


class Commands(TyperGroup):
    """The top of the command line: every command runs inside `exit_codes`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Lets ``--debug`` stand anywhere: whoever needs it just met a fault, and appends it."""
        end = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:end]:
            rest = [word for word in args[:end] if word != "--debug"]
            args = ["--debug", *rest, *args[end:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Runs a command."""
        with exit_codes(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


@contextmanager
def exit_codes(*, debug: bool) -> Iterator[None]:
    """Turns what the block raises into one line on standard error and an exit code.

    Once the outcome is settled, Ctrl-C is ignored until the process ends: it could only turn a
    result that is printed into a process killed while it tidies up.

    Args:
        debug: Whether to print the traceback before the line.

    Raises:
        typer.Exit: With the fault's exit code: that of the `SlotwiseError`, 130 after Ctrl-C, 1
            for what should not have happened.
    """
    try:
        try:
            yield
            sys.stdout.flush()
        finally:
            ignore_interrupts()
    except (typer.Exit, _TyperFault):
        raise
    except Cancelled as told:
        raise _exit(str(told), told.exit_code, debug=debug) from None
    except SlotwiseError as error:
        if _interrupted(error):
            raise _exit("cancelled", Cancelled.exit_code, debug=debug) from None
        raise _exit(f"error: {error}", error.exit_code, debug=debug) from None
    except (KeyboardInterrupt, EOFError, typer.Abort):  # Abort: a question left unanswered
        raise _exit("cancelled", Cancelled.exit_code, debug=debug) from None
    except BrokenPipeError:
        # The reader has enough (`| head`). What is still buffered must not fail at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except Exception as error:
        if _interrupted(error):
            raise _exit("cancelled", Cancelled.exit_code, debug=debug) from None
        raise _exit(_internal(error), 1, debug=debug) from None


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind a fault: a library may raise its own when its import is cut off."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def place_named_by(option: str) -> Iterator[None]:
    """Advises another file where the block cannot write one that is named, not put in a directory.

    Args:
        option: What names the file, as the user writes it.

    Raises:
        InputError: As the block's, with this advice.
    """
    try:
        yield
    except InputError as error:
        if "--output-dir" not in error.hint:
            raise
        hint = f"Name a file in a directory that is there and can be written with {option}"
        raise InputError(error.what, where=error.where, why=error.why, hint=hint) from None


def ignore_interrupts() -> None:
    """Lets Ctrl-C do nothing from here on."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def keep_interrupts() -> None:
    """Lets Ctrl-C through where compiled code calls back into Python.

    There an exception cannot rise: Python would print it and go on as if nothing was pressed. It
    is raised again in the main thread a moment later, when the callback has returned.
    """
    default = sys.unraisablehook

    def again(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()
        else:
            default(unraisable)

    sys.unraisablehook = again


def _exit(line: str, code: int, *, debug: bool) -> typer.Exit:
    if debug:
        traceback.print_exc()
    typer.echo(one_line(line), err=True)
    return typer.Exit(code)


def _internal(error: Exception) -> str:
    """Names the kind of fault and its place; its text could quote a log, so it is left out."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error: {type(error).__name__} in {Path(place.filename).name}:{place.lineno}. "
        "This is a fault of slotwise: run again with --debug and report what it prints"
    )
