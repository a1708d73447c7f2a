"""`slotwise probe`: a live endpoint, looked at from outside."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotwise_cli import options
from slotwise_cli.asking import KEY_VARIABLE, api_key, confirm
from slotwise_cli.console import Console, choose_language
from slotwise_workflows.errors import Cancelled, UsageError

if TYPE_CHECKING:
    from slotwise_workflows.probe import Plan, Replayed
    from slotwise_workflows.traffic import ReadOptions, Traffic


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
        int | None,
        typer.Option(
            "--max-requests", min=1, metavar="N", help="Send no more requests; 288 if left out."
        ),
    ] = None,
    max_tokens_total: Annotated[
        int | None,
        typer.Option(
            "--max-tokens-total",
            min=1,
            metavar="N",
            help="Ask for no more output tokens in all; 49152 if left out.",
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            "--max-seconds",
            min=1,
            metavar="S",
            help="Take no longer, and judge what was done; 420 if left out.",
        ),
    ] = None,
    # What is found out beside how it batches.
    cost: Annotated[
        bool,
        typer.Option("--cost/--no-cost", help="Measure what an iteration costs; it does."),
    ] = True,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", metavar="LOG", help="Measure it with requests as long as this log's."
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="LOG",
            help="Send this log's arrivals and lengths; hold the simulation against the answers.",
        ),
    ] = None,
    replay_first: Annotated[
        int | None,
        typer.Option(
            "--replay-first", min=1, metavar="N", help="So many requests; as many as are allowed."
        ),
    ] = None,
    replay_busiest: Annotated[
        float | None,
        typer.Option(
            "--replay-busiest", metavar="S", help="The busiest stretch of so many seconds instead."
        ),
    ] = None,
    rate_scale: Annotated[
        float,
        typer.Option("--rate-scale", metavar="X", help="Replay so many times as fast."),
    ] = 1.0,
    length_scale: Annotated[
        float, typer.Option("--length-scale", metavar="X", help="Replay with lengths times this.")
    ] = 1.0,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", min=1, metavar="N", help="Processes that send the replay; more need Ray."
        ),
    ] = 1,
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT",
            help="A Ray cluster whose machines send the replay.",
        ),
    ] = None,
    # How the logs of --like and --replay are read.
    format_: options.Format = "auto",
    map_: options.Map = None,
    time_unit: options.TimeUnit = None,
    time_zone: options.TimeZone = None,
    decimal: options.Decimal = None,
    where: options.Where = None,
    allow_truncated: options.AllowTruncated = False,
    yes: options.Yes = False,
    output_dir: options.OutputDir = None,
    language: options.Language = None,
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
    from slotwise_cli.probe_summary import probe_lines
    from slotwise_cli.reading import read_options
    from slotwise_workflows.files import output_directory
    from slotwise_workflows.probe import (
        Replayed,
        Wanted,
        check_model,
        look_and_measure,
        make_plan,
        plan_text,
        targets,
        write_probe,
    )
    from slotwise_workflows.report import load_words
    from slotwise_workflows.traffic import ReadOptions

    console = Console(quiet=quiet)
    plan = make_plan(
        trials=trials,
        max_requests=max_requests,
        max_tokens=max_tokens_total,
        seconds=max_seconds,
    )
    check_model(model)
    first = targets(url, api)[0]
    key = api_key(api_key_env)
    reading = read_options(
        ReadOptions(),
        format_=format_,
        map_=map_,
        time_unit=time_unit,
        time_zone=time_zone,
        decimal=decimal,
        where=where,
        segment=None,
        allow_truncated=allow_truncated,
    )
    if like is None and replay is None and reading != ReadOptions():
        raise UsageError("there is no log to read", hint="Add --like LOG or --replay LOG")
    again = None
    if replay is not None:
        again = Replayed(
            _log(replay, reading, console),
            replay_first,
            replay_busiest,
            rate_scale,
            length_scale,
            workers,
            ray_address,
            None if key is None else api_key_env or KEY_VARIABLE,
        )
    elif any((replay_first, replay_busiest, ray_address, workers > 1)) or (
        (rate_scale, length_scale) != (1.0, 1.0)
    ):
        raise UsageError("there is nothing to replay", hint="Add --replay LOG")
    alike = None if like is None else _log(like, reading, console)
    wanted = Wanted(cost=cost, like=alike, replay=again)
    lines = plan_text(
        plan,
        url=first.shown,
        api=first.api,
        model=model,
        has_key=key is not None,
        cost=cost,
        replay=None if again is None or replay is None else _told(again, plan, replay.name),
    )
    confirm(lines, yes=yes, no_input=no_input, console=console)
    with nullcontext() if output_dir is None else output_directory(output_dir) as directory:
        with console.progress("probing", counted=True) as advance:
            result = look_and_measure(
                url, plan, wanted, api=api, model=model, api_key=key, seed=seed, on_progress=advance
            )
        if json:
            console.json(result)
        else:
            for line in probe_lines(result, load_words(choose_language(language, None))):
                console.out(line)
        if directory is not None:
            for path in write_probe(result, directory):
                console.note(f"wrote {path}")
    if result.stopped_by == "user":
        raise Cancelled("interrupted", why="what was done until then is told above")


def _told(again: Replayed, plan: Plan, name: str) -> str:
    """What a replay sends, as far as it is known before."""
    from slotwise_workflows.probe import check_replay

    found = check_replay(again, plan)
    tokens = int(found.workload.output_tokens.sum())
    return (
        f"{found.window} of {found.of_requests} requests of {name} again, at most: "
        f"{len(found.workload)} requests, {tokens} output tokens, over "
        f"{found.workload.arrival_s[-1]:.0f} s"
    )


def _log(path: Path, reading: ReadOptions, console: Console) -> Traffic:
    from slotwise_workflows.traffic import read_traffic

    with console.progress("reading") as advance:
        return read_traffic([str(path)], reading, on_progress=advance)
