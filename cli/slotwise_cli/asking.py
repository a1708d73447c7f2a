"""Before a live endpoint is asked: its key out of the environment, and the user's leave."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from slotwise_cli.console import Console
from slotwise_workflows.errors import Cancelled, UsageError

KEY_VARIABLE = "SLOTWISE_API_KEY"


def api_key(variable: str | None) -> str | None:
    """The key, from the environment alone: an argument would stand in the shell's history.

    Raises:
        UsageError: The variable that was named is not set.
    """
    key = os.environ.get(variable or KEY_VARIABLE)
    if variable is not None and not key:
        raise UsageError(
            f"--api-key-env: the environment variable {variable} is not set",
            hint=f"Set it, or leave the option out to use {KEY_VARIABLE}",
        )
    return key or None


def confirm(lines: Sequence[str], *, yes: bool, no_input: bool, console: Console) -> None:
    """Shows the plan; goes on only if the user agrees.

    Raises:
        UsageError: Nobody can be asked.
        Cancelled: The user does not agree.
    """
    if yes:
        for line in lines:
            console.note(line)
        return
    for line in lines:  # what is to be confirmed is shown even where little else is
        Console().note(line)
    if no_input or not sys.stdin.isatty():
        raise UsageError("nothing was sent: nobody can be asked", hint="Agree with --yes")
    if not typer.confirm("Send it?", err=True):
        raise Cancelled("nothing was sent")
