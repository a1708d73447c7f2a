"""`slotwise probe`: a live endpoint, looked at from outside."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from slotwise_cli import options
from slotwise_cli.console import Console
from slotwise_workflows.errors import Cancelled, UsageError

KEY_VARIABLE = "SLOTWISE_API_KEY"


def probe(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Of an OpenAI-compatible endpoint, up to /v1.")
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="The endpoint's only one if left out."),
    ] = None,
    api: Annotated[
        Literal["auto", "chat", "completions"],
        typer.Option("--api", metavar="auto|chat|completions", help="Which API to use."),
    ] = "auto",
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            metavar="VARIABLE",
            help=f"Environment variable that holds the API key; {KEY_VARIABLE} if left out.",
        ),
    ] = None,
    # What may be sent: the options of the plan.
    trials: Annotated[
        int, typer.Option("--trials", min=1, max=20, metavar="N", help="Repetitions of the tests.")
    ] = 2,
    max_requests: Annotated[
        int, typer.Option("--max-requests", min=1, metavar="N", help="Send no more requests.")
    ] = 128,
    max_tokens_total: Annotated[
        int,
        typer.Option(
            "--max-tokens-total", min=1, metavar="N", help="Ask for no more output tokens in all."
        ),
    ] = 32768,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds", min=1, metavar="S", help="Take no longer; judge what was done."
        ),
    ] = 300.0,
    yes: Annotated[bool, typer.Option("--yes", help="Send it without asking.")] = False,
    output_dir: options.OutputDir = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,
) -> None:
    """Find out whether a live endpoint batches continuously.

    A long request, and short ones beside it: do they begin before it ends? Only generated prompts
    are sent. The plan is shown, and must be confirmed, before anything is. Ctrl-C ends it; what was
    done until then is judged and written.
    """
    from slotwise_workflows.files import prepare_directory
    from slotwise_workflows.probe import explain, make_plan, plan_text, targets, write_probe
    from slotwise_workflows.probe import probe as run_probe

    console = Console(quiet=quiet)
    plan = make_plan(
        trials=trials,
        max_requests=max_requests,
        max_tokens=max_tokens_total,
        seconds=max_seconds,
    )
    first = targets(url, api)[0]
    api_key = _api_key(api_key_env)
    lines = plan_text(
        plan, url=first.shown, api=first.api, model=model, has_key=api_key is not None
    )
    _confirm(lines, yes=yes, no_input=no_input, console=console)
    directory = None if output_dir is None else prepare_directory(output_dir)
    with console.progress("probing") as advance:
        result = run_probe(
            url, plan, api=api, model=model, api_key=api_key, seed=seed, on_trial=advance
        )
    if json:
        console.json(result)
    else:
        for line in explain(result):
            console.out(line)
    if directory is not None:
        for path in write_probe(result, directory):
            console.note(f"wrote {path}")
    if result.stopped_by == "user":
        raise Cancelled("interrupted", why="what was done until then is told above")


def _api_key(variable: str | None) -> str | None:
    """The key, from the environment alone: an argument would stand in the shell's history."""
    key = os.environ.get(variable or KEY_VARIABLE)
    if variable is not None and not key:
        raise UsageError(
            f"--api-key-env: the environment variable {variable} is not set",
            hint=f"Set it, or leave the option out to use {KEY_VARIABLE}",
        )
    return key or None


def _confirm(lines: list[str], *, yes: bool, no_input: bool, console: Console) -> None:
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
