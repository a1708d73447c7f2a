"""`slotwise diagnose`: a log in, a verdict and a report out."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from slotwise_cli import options
from slotwise_cli.asking import api_key, confirm
from slotwise_cli.console import Console, choose_language
from slotwise_workflows.errors import NOT_ENOUGH_DATA, EndpointError, UsageError

if TYPE_CHECKING:
    from slotwise_workflows.config import WorkloadFile
    from slotwise_workflows.given import Given
    from slotwise_workflows.pipeline import Look
    from slotwise_workflows.probe import ProbeResult
    from slotwise_workflows.report import Branding
    from slotwise_workflows.traffic import ReadOptions, Traffic


def diagnose(
    logs: options.LogsIfAny = None,
    workload: options.WorkloadIfAny = None,
    slots: options.Slots = None,
    ms_per_token: options.MsPerToken = None,
    preset: options.Preset = None,
    calibration: options.Calibration = None,
    replicas: options.Replicas = None,
    max_delay_ms: options.MaxDelayMs = None,
    serving: options.Serving = None,
    mode: options.Mode = None,
    latency_p95_s: options.LatencyP95 = None,
    ttft_p95_s: options.TtftP95 = None,
    probe: options.Probe = None,
    yes: options.Yes = False,
    format_: options.Format = "auto",
    map_: options.Map = None,
    time_unit: options.TimeUnit = None,
    time_zone: options.TimeZone = None,
    decimal: options.Decimal = None,
    where: options.Where = None,
    segment: options.Segment = None,
    allow_truncated: options.AllowTruncated = False,
    client: options.Client = None,
    prepared_by: options.PreparedBy = None,
    date: options.Date = None,
    document_number: options.DocumentNumber = None,
    confidential: options.Confidential = None,
    accent: options.Accent = None,
    logo: options.Logo = None,
    formats: options.Formats = None,
    output_dir: options.OutputDir = None,
    language: options.Language = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,
) -> None:
    """Read a log, answer, and write the report.

    Does continuous batching help this traffic? What is not told is read off the log where it can
    be, or carried as a range. Ends with 4 where the log holds too little to decide on; the report
    is written all the same.
    """
    from slotwise_cli.listening import console_listener
    from slotwise_cli.probe_summary import probed_lines
    from slotwise_cli.reading import read_options
    from slotwise_cli.reporting import branding_of, report_formats
    from slotwise_cli.summary import verdict_lines
    from slotwise_workflows.config import (
        base_directory,
        load_workload,
        not_diagnosed,
        to_logs,
        to_read_options,
        without_effect,
    )
    from slotwise_workflows.config import where as place_of
    from slotwise_workflows.costs.named import named_cost
    from slotwise_workflows.files import output_directory
    from slotwise_workflows.pipeline import run_diagnose
    from slotwise_workflows.recommend.thresholds import Thresholds
    from slotwise_workflows.run_directory import default_directory
    from slotwise_workflows.traffic import ReadOptions

    console = Console(quiet=quiet)
    file = load_workload(workload) if workload is not None else None
    paths = list(logs or (to_logs(file) if file is not None else ()))
    made = None if paths else _made(file, seed)
    given = _given(
        file,
        named_cost(
            ms_per_token=ms_per_token,
            preset=preset,
            calibration=None if calibration is None else str(calibration),
            called=_option,
            fault=UsageError,
        ),
        slots=slots,
        replicas=replicas,
        max_delay_ms=max_delay_ms,
        serving=serving,
        mode=mode,
        latency_p95_s=latency_p95_s,
        ttft_p95_s=ttft_p95_s,
    )
    reading = read_options(
        to_read_options(file) if file is not None else ReadOptions(),
        format_=format_,
        map_=map_,
        time_unit=time_unit,
        time_zone=time_zone,
        decimal=decimal,
        where=where,
        segment=segment,
        allow_truncated=allow_truncated,
    )
    configured: dict[str, Any] = file.report.model_dump() if file is not None else {}
    told = choose_language(language, configured.get("language"))
    place = place_of(file, "report.formats") if file is not None else ""
    written = report_formats(formats, configured.get("formats"), where=place)
    brand = {
        "client": client,
        "prepared_by": prepared_by,
        "date": date,
        "document_number": document_number,
        "confidential": confidential,
        "accent": accent,
        "logo": logo,
    }
    folder = base_directory(file) if file is not None else Path()
    branding = branding_of(configured, brand, folder=folder)
    thresholds = file.thresholds if file is not None else Thresholds()
    name = _name(file, paths)
    look, shown = _look(probe, seed, yes=yes, no_input=no_input, console=console)
    for said in [*without_effect(file), *not_diagnosed(file)] if file is not None else ():
        console.note(f"note: {said}")

    place_of_run = output_directory(output_dir or default_directory(name))
    with place_of_run as directory, console_listener(console) as on_event:
        result = run_diagnose(
            logs=paths,
            read_options=reading,
            given=given,
            thresholds=thresholds,
            name=name,
            seed=seed,
            output_dir=directory,
            language=told,
            formats=written,
            branding=branding,
            command=["slotwise", *_shown(sys.argv[1:], probe, shown)],
            config=_in_force(file, given, reading, told, written, branding),
            made=made,
            look=look,
            on_event=on_event,
        )
    if json:
        console.json(result)
    else:
        for line in [*probed_lines(result, told), *verdict_lines(result, told)]:
            console.out(line)
        console.out(f"Report: {directory / 'report.html'}")
    if result.verdict == "insufficient_data":
        raise typer.Exit(NOT_ENOUGH_DATA)


def _look(
    probe: str | None, seed: int, *, yes: bool, no_input: bool, console: Console
) -> tuple[Look | None, str]:
    """What looks at the endpoint, or reads what was found before; and how that is shown.

    Raises:
        UsageError: Nobody can be asked, or the URL or the key cannot be used.
        InputError: What was found before cannot be read.
    """
    if probe is None:
        return None, ""
    from slotwise_workflows.probe import Wanted, look_and_measure, make_plan, plan_text, targets

    if "://" not in probe:
        from slotwise_workflows.probe import read_probe

        found = read_probe(Path(probe))
        return lambda _: found, probe
    plan, key, first = make_plan(), api_key(None), targets(probe, "auto")[0]
    lines = plan_text(
        plan, url=first.shown, api=first.api, model=None, has_key=key is not None, cost=True
    )
    confirm(lines, yes=yes, no_input=no_input, console=console)

    def look(traffic: Traffic) -> ProbeResult:
        try:
            return look_and_measure(probe, plan, Wanted(like=traffic), api_key=key, seed=seed)
        except EndpointError as error:
            raise EndpointError(
                error.what, where=error.where, why=error.why, hint=_with_probe(error.hint)
            ) from None

    return look, first.shown


def _with_probe(hint: str) -> str:
    """What to do about an endpoint, here, where `probe`'s own options are not."""
    if "--" not in hint:
        return hint
    how = "slotwise probe URL --output-dir DIR, then slotwise diagnose ... --probe DIR"
    return f"{hint}, which `probe` takes: {how}"


def _shown(words: Sequence[str], probe: str | None, shown: str) -> list[str]:
    """The command line without what the query of a URL may hold."""
    told = {probe: shown, f"--probe={probe}": f"--probe={shown}"} if probe else {}
    return [told.get(word, word) for word in words]


def _name(file: WorkloadFile | None, paths: Sequence[str]) -> str:
    """What the traffic is called: as the workload file says, else after the first log."""
    from slotwise_workflows.traffic.paths import log_name

    if file is not None and ("name" in file.model_fields_set or not paths):
        return file.name
    return log_name(paths[0])


def _made(file: WorkloadFile | None, seed: int) -> Traffic:
    """The workload file's synthetic traffic, where neither the line nor the file names a log."""
    if file is None or file.traffic.synthetic is None:
        raise UsageError("no log given", hint="Give a file, a directory or -, or --workload FILE")
    import numpy as np

    from slotwise_workflows.synthetic import draw_traffic

    return draw_traffic(file.traffic.synthetic, np.random.default_rng(seed))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(file: WorkloadFile | None, cost: dict[str, Any], **options: Any) -> Given:
    """What the workload file says of the server, with the cost named and the options over it."""
    from slotwise_workflows.config import to_given
    from slotwise_workflows.given import (
        MOST_DELAY_MS,
        MOST_MS_PER_TOKEN,
        MOST_OBJECTIVE_S,
        Given,
    )

    most = {
        "ms_per_token": MOST_MS_PER_TOKEN,
        "latency_p95_s": MOST_OBJECTIVE_S,
        "ttft_p95_s": MOST_OBJECTIVE_S,
    }
    for name, bound in most.items():
        value = (options | cost).get(name)
        if value is not None and not 0 < value <= bound:
            raise UsageError(
                f"{_option(name)} must be above 0 and at most {bound:,.0f}, not {value}"
            )
    delay = options["max_delay_ms"]
    # "nan" is a number to the command line
    if delay is not None and not (0 <= delay <= MOST_DELAY_MS or delay == math.inf):
        raise UsageError(
            f"--max-delay-ms must be from 0 to {MOST_DELAY_MS:,.0f} (a day), or inf, not {delay}"
        )
    said = {name: value for name, value in options.items() if value is not None}
    return replace(to_given(file) if file is not None else Given(), **said, **cost)


def _in_force(
    file: WorkloadFile | None,
    given: Given,
    reading: ReadOptions,
    language: str,
    formats: tuple[str, ...],
    branding: Branding,
) -> dict[str, Any]:
    """Every setting, as provenance keeps it."""
    from slotwise_workflows.config import resolved
    from slotwise_workflows.costs import CostRecord

    settings: dict[str, Any] = {
        "server": {**asdict(given), "cost": given.cost and CostRecord.of(given.cost).model_dump()},
        "reading": {**asdict(reading), "map": dict(reading.map)},
        "report": {"language": language, "formats": formats, **asdict(branding)},
    }
    if file is not None:
        settings["workload"] = resolved(file)
    return settings
