"""`slotwise calibrate`: a measured run in, the cost of an iteration out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotwise_cli import options
from slotwise_cli.console import Console
from slotwise_workflows.errors import UsageError

if TYPE_CHECKING:
    from slotwise_sim.replay import Server
    from slotwise_workflows.calibrate.file import CalibrationFile, ErrorShares

_MOST_TOKENS = 1 << 40


def calibrate(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A log with first tokens and ends, or what `probe` or `diagnose` wrote.",
        ),
    ],
    slots: options.Slots = None,
    policy: Annotated[
        Literal["continuous", "static", "dynamic"],
        typer.Option(
            "--policy",
            metavar="continuous|static|dynamic",
            help="How the server batched; static: full batches, dynamic: of what waits.",
        ),
    ] = "continuous",
    release: Annotated[
        Literal["batch", "own"] | None,
        typer.Option(
            "--release",
            metavar="batch|own",
            help="When a static batch's answers went out; batch if left out.",
        ),
    ] = None,
    pad: Annotated[
        bool | None,
        typer.Option(
            "--pad/--no-pad",
            help="Whether finished rows of a static batch went on; they did if left out.",
        ),
    ] = None,
    prefill: Annotated[
        Literal["mixed", "separate"] | None,
        typer.Option(
            "--prefill",
            metavar="mixed|separate",
            help="Prompts beside decoding, or in iterations of their own; mixed if left out.",
        ),
    ] = None,
    max_batched_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-batched-tokens",
            min=1,
            max=_MOST_TOKENS,
            metavar="N",
            help="Most tokens of one iteration; vLLM's max_num_batched_tokens.",
        ),
    ] = None,
    kv_tokens: Annotated[
        int | None,
        typer.Option(
            "--kv-tokens",
            min=1,
            max=_MOST_TOKENS,
            metavar="N",
            help="Tokens the KV cache of one server holds; unlimited if left out.",
        ),
    ] = None,
    block_tokens: Annotated[
        int | None,
        typer.Option(
            "--block-tokens",
            min=1,
            max=1 << 20,
            metavar="N",
            help="Of a KV block; 16 if left out.",
        ),
    ] = None,
    replicas: options.Replicas = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix",
            metavar="TERM=MS",
            help="A term that is not to be fitted, e.g. per_kv_token_ms=0. Repeatable.",
        ),
    ] = None,
    output_dir: options.OutputDir = None,
    format_: options.Format = "auto",
    map_: options.Map = None,
    time_unit: options.TimeUnit = None,
    time_zone: options.TimeZone = None,
    decimal: options.Decimal = None,
    where: options.Where = None,
    allow_truncated: options.AllowTruncated = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Fit the cost of an iteration to a measured run.

    The run's requests are simulated until first tokens and ends fall where they were measured. The
    file stands for the cost in a workload file: `cost: {calibration: calibration.json}`.
    """
    from slotwise_cli.reading import read_options
    from slotwise_workflows.calibrate.file import NAME, write_calibration
    from slotwise_workflows.calibrate.run import calibrate_run
    from slotwise_workflows.calibrate.timings import probe_rows, timed_log
    from slotwise_workflows.files import prepare_directory
    from slotwise_workflows.traffic import ReadOptions, read_traffic

    console = Console(quiet=quiet)
    server = _server(
        slots, replicas, policy, release, pad, prefill, max_batched_tokens, kv_tokens, block_tokens
    )
    given = _given(fix or ())
    directory = prepare_directory(output_dir or Path())
    log = timed_log(run)
    reading = read_options(
        ReadOptions(),
        format_=format_,
        map_=map_,
        time_unit=time_unit,
        time_zone=time_zone,
        decimal=decimal,
        where=where or list(probe_rows(log)),
        segment=None,
        allow_truncated=allow_truncated,
    )
    with console.progress("reading") as advance:
        traffic = read_traffic([log], reading, on_progress=advance)
    with console.progress("fitting") as advance:
        calibration = calibrate_run(traffic, server, given=given, on_progress=advance)
    output = write_calibration(calibration, directory / NAME)
    if json:
        console.json(calibration)
    else:
        for line in _lines(calibration):
            console.out(line)
    for note in calibration.notes:
        console.note(f"note: {note}")
    console.note(f"wrote {output}")


def _server(
    slots: int | None,
    replicas: int | None,
    policy: Literal["continuous", "static", "dynamic"],
    release: Literal["batch", "own"] | None,
    pad: bool | None,
    prefill: Literal["mixed", "separate"] | None,
    max_batched_tokens: int | None,
    kv_tokens: int | None,
    block_tokens: int | None,
) -> Server:
    from slotwise_sim import Continuous, Dynamic, Memory, Static
    from slotwise_sim.replay import Server

    if slots is None:
        raise UsageError(
            "--slots is needed", hint="How many requests one server ran at once: max_num_seqs"
        )
    if policy != "continuous":
        _no_effect(
            f"with --policy {policy}",
            prefill=prefill,
            max_batched_tokens=max_batched_tokens,
            kv_tokens=kv_tokens,
            block_tokens=block_tokens,
        )
        how = (release or "batch", pad is not False)
        batches = Static(*how) if policy == "static" else Dynamic(0.0, *how)
        return Server(batches, slots, replicas or 1)
    padding = {"no_pad" if pad is False else "pad": pad}
    _no_effect(f"with --policy {policy}", release=release, **padding)
    if kv_tokens is None:
        _no_effect("without --kv-tokens", block_tokens=block_tokens)
    memory = None if kv_tokens is None else Memory(kv_tokens, block_tokens or 16)
    batching = Continuous(prefill or "mixed", max_batched_tokens)
    return Server(batching, slots, replicas or 1, memory)


def _no_effect(when: str, **told: object) -> None:
    names = [f"--{name.replace('_', '-')}" for name, value in told.items() if value is not None]
    if names:
        has = "have" if len(names) > 1 else "has"
        raise UsageError(f"{' and '.join(names)} {has} no effect {when}")


def _given(words: Sequence[str]) -> dict[str, float]:
    from slotwise_sim.calibration import GIVABLE
    from slotwise_workflows.given import MOST_MS_PER_TOKEN

    given: dict[str, float] = {}
    for word in words:
        term, _, value = word.partition("=")
        if term in given:
            raise UsageError(f"--fix {term} is given twice")
        try:
            given[term] = float(value)
        except ValueError:
            given[term] = -1.0
        if term not in GIVABLE or not 0 <= given[term] <= MOST_MS_PER_TOKEN:
            raise UsageError(
                f"--fix {word[:80]!r} is not TERM=MS",
                why=f"terms are {', '.join(GIVABLE)}; values are 0 to {MOST_MS_PER_TOKEN:g}",
                hint="For example --fix per_kv_token_ms=0",
            )
    return given


def _lines(calibration: CalibrationFile) -> list[str]:
    from slotwise_sim.fitting import batch_text

    server = calibration.server
    replicas = f", {server.replicas} replicas" if server.replicas > 1 else ""
    lines = [
        f"{calibration.requests:,} requests, {server.policy}, {server.slots} slots{replicas};"
        f" {batch_text(calibration.batch)}",
        "",
        f"{'term':<22}{'ms':>12}   95 % interval",
    ]
    for name, term in calibration.terms.items():
        told = f"{term.low:.4g} to {term.high:.4g}" if term.how == "fitted" else term.how
        lines.append(f"{name:<22}{term.value:>12.4g}   {told.replace('_', ' ')}")
    if calibration.bend_seqs is not None:
        lines.append(
            f"bend: share of base_ms that an empty batch saves; none at {calibration.bend_seqs}"
            " sequences"
        )
    lines += ["", f"{'simulated to measured':<22}{'mean':>9}{'p95':>9}{'TTFT':>9}{'busy':>9}"]
    lines.append(_error_line(f"all {calibration.requests:,}", calibration.errors))
    if calibration.hold_out is not None:
        held = calibration.hold_out
        lines.append(_error_line(f"{held.judged:,} from {held.fitted:,}", held.errors))
    return lines


def _error_line(name: str, errors: ErrorShares) -> str:
    from slotwise_workflows.calibrate.file import percent

    shares = (errors.latency_mean, errors.latency_p95, errors.ttft_mean, errors.busy)
    cells = ("-" if share is None else percent(share) for share in shares)
    return f"{name:<22}" + "".join(f"{cell:>9}" for cell in cells)
