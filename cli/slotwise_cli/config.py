"""`slotwise config init, check, schema, show, presets`: the workload file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotwise_cli import options
from slotwise_cli.console import Console, choose_language
from slotwise_cli.faults import place_named_by
from slotwise_workflows.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def init(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Where to write it; - is standard output.")
    ] = Path("workload.yaml"),
    interview: Annotated[
        bool,
        typer.Option(
            "--interview",
            help="Ask about engine, slots, replicas, delay, objective and price first.",
        ),
    ] = False,
    hearing_sheet: Annotated[
        Literal["ja", "en"] | None,
        typer.Option(
            "--hearing-sheet",
            metavar="ja|en",
            help="Print a sheet of questions for a client, as Markdown, and write nothing.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there.")
    ] = False,
    language: options.Language = None,
    no_input: options.NoInput = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a commented workload file to start from."""
    from slotwise_workflows.config import template
    from slotwise_workflows.files import write_file

    console = Console(quiet=quiet)
    if hearing_sheet is not None:
        typer.echo(template.hearing_sheet(hearing_sheet), nl=False)
        return
    if interview and no_input:
        raise UsageError(
            "--interview asks, and --no-input forbids it", hint="Leave one of them out"
        )
    to_stdout = str(file) == "-"
    if not to_stdout and file.exists() and not force:
        raise InputError("is there already", where=str(file), hint="--force replaces it")
    told = choose_language(language)
    text = template.template(told, _ask(told) if interview else None)
    if to_stdout:
        typer.echo(text, nl=False)
        return
    with place_named_by("FILE"):
        write_file(file, text.encode())
    console.out(f"wrote {file}")


def _ask(language: Literal["ja", "en"]) -> Mapping[str, str | None]:
    """Asks every question until its answer makes sense; the questions go to standard error."""
    from slotwise_workflows.config.template import interview

    asked = interview(language)
    typer.echo(asked.intro, err=True)
    answers: dict[str, str | None] = {}
    for question in asked.questions:
        while question.key not in answers:
            # Not typer.prompt, which leaves a blank on standard output, where the file may go.
            typer.echo(f"{question.text} ", nl=False, err=True)
            try:
                answers[question.key] = asked.parse(question, input())
            except ValueError as error:
                typer.echo(str(error), err=True)
    return answers


def check(
    workload: options.Workload,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check a workload file and list all that is wrong with it, each with its line."""
    from slotwise_workflows.config import (
        broken_files,
        check_workload,
        missing_logs,
        to_cost,
        unlimited_memory,
        without_effect,
    )

    console = Console(quiet=quiet)
    file, faults = check_workload(workload)
    if file is not None:
        faults = broken_files(file)
    if json:
        found = [{"where": fault.where, "what": fault.what, "hint": fault.hint} for fault in faults]
        console.json({"valid": not faults, "faults": found})
    else:
        for fault in faults[:-1]:
            typer.echo(f"error: {fault}", err=True)
        if faults:  # the last one also ends the command, with its exit code
            raise faults[-1]
    if faults:
        raise typer.Exit(faults[0].exit_code)
    if file is not None:
        notes = without_effect(file) + missing_logs(file)
        if file.server.cost is not None:
            notes += unlimited_memory(file, to_cost(file))
        for said in notes:
            console.note(f"note: {said}")
    if not json:
        console.out(f"{workload}: valid")


def schema() -> None:
    """Print the JSON Schema of workload files, for editors."""
    from slotwise_workflows.config import schema as workload_schema

    Console().json(workload_schema())


def show(
    workload: options.Workload,
    json: options.Json = False,
) -> None:
    """Print a workload file with every key and the value in force."""
    from slotwise_cli.summary import setting_lines
    from slotwise_workflows.config import load_workload, plain_values, resolved, to_cost
    from slotwise_workflows.costs import CostRecord

    file = load_workload(workload)
    every = resolved(file)
    cost = None if file.server.cost is None else CostRecord.of(to_cost(file))
    if json:
        named = {} if cost is None or not cost.name else {"resolved_cost": cost.model_dump()}
        Console().json(plain_values({**every, **named}))
        return
    import yaml

    if cost is not None and cost.name:  # comments, so that the output is a workload file, too
        for line in setting_lines(cost, None)[:-1]:
            Console().out(f"# {line}")
    typer.echo(yaml.safe_dump(every, sort_keys=False, allow_unicode=True), nl=False)


def presets(json: options.Json = False) -> None:
    """List the step costs that `server.cost.preset` knows, with source and quality."""
    from dataclasses import asdict

    from slotwise_cli.summary import terms
    from slotwise_workflows.costs import all_presets

    console = Console()
    if json:
        console.json({"presets": [asdict(preset) for preset in all_presets()]})
        return
    for preset in all_presets():
        memory = "not told" if preset.kv_tokens is None else f"{preset.kv_tokens:,} tokens"
        console.out(f"{preset.name}: {preset.hardware}, KV memory {memory}")
        console.out(f"  step: {terms(preset.step)}")
        console.out(f"  {preset.kind}; {preset.quality}; source: {preset.source}")
