"""`slotwise report`: finished runs rendered again, shared or compared, nothing computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotwise_cli import options
from slotwise_cli.console import Console, choose_language
from slotwise_workflows.errors import UsageError

if TYPE_CHECKING:
    from slotwise_workflows.result import Result


def report(
    run_dirs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR...", help="A directory that a run has written; two with --compare."
        ),
    ],
    share: Annotated[
        bool,
        typer.Option("--share", help="A folder that may leave the house: labels for names."),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Two runs, before and after: what moved, and by chance?"),
    ] = False,
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload", metavar="FILE", help="A workload file: what its report section says."
        ),
    ] = None,
    language: options.Language = None,
    client: options.Client = None,
    prepared_by: options.PreparedBy = None,
    date: options.Date = None,
    document_number: options.DocumentNumber = None,
    confidential: options.Confidential = None,
    accent: options.Accent = None,
    logo: options.Logo = None,
    formats: options.Formats = None,
    output_dir: options.OutputDir = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    no_input: options.NoInput = False,  # noqa: ARG001 - it never asks
) -> None:
    """Render a finished run's report again.

    In another language, for another client, in other formats; nothing is computed. What is not
    given stays as in the run. Without --output-dir, the run's own report is replaced.
    """
    from slotwise_cli.reporting import branding_of, report_formats
    from slotwise_workflows.run_directory import load_result

    _check(run_dirs, share=share, compare=compare)
    console = Console(quiet=quiet)
    runs = [load_result(path) for path in run_dirs]
    run, result = run_dirs[-1], runs[-1]
    run = run.parent if run.is_file() else run
    settings = _settings(result, workload)
    told = choose_language(language, settings.get("language"))
    place = str(workload or run_dirs[-1])
    brand = {
        "client": client,
        "prepared_by": prepared_by,
        "date": date,
        "document_number": document_number,
        "confidential": confidential,
        "accent": accent,
        "logo": logo,
    }
    how: dict[str, Any] = {
        "language": told,
        "formats": report_formats(formats, settings.get("formats"), where=place),
        "branding": branding_of(settings, brand, folder=workload.parent if workload else run),
    }
    if compare:
        from slotwise_workflows.report.compare import compare_runs
        from slotwise_workflows.report.compare_page import write_comparison

        comparison = compare_runs(*runs)
        written = write_comparison(comparison, output_dir or run, **how)
        if json:
            console.json(comparison)
            return
    elif share:
        from slotwise_workflows.share import SHARE, write_shared

        written = write_shared(result, run, output_dir or run / SHARE, **how)
    else:
        from slotwise_workflows.report import write_report

        written = write_report(result, output_dir or run, **how)
    if json:
        files = [str(path) for path in written]
        console.json({"schema": "slotwise/rendering/v1", "language": told, "files": files})
    else:
        for path in written:
            console.out(str(path))


def _check(run_dirs: Sequence[Path], *, share: bool, compare: bool) -> None:
    """Makes sure that as many runs are named as are needed.

    Raises:
        UsageError: They are not, or a comparison is to be shared.
    """
    if share and compare:
        raise UsageError(
            "--share and --compare do not go together", hint="Share the runs one by one"
        )
    needed = 2 if compare else 1
    if len(run_dirs) != needed:
        what, hint = (
            ("--compare takes two runs", "Name the earlier one first")
            if compare
            else ("one run is rendered at a time", "Two are compared with --compare")
        )
        raise UsageError(f"{what}, not {len(run_dirs)}", hint=hint)


def _settings(result: Result, workload: Path | None) -> Mapping[str, Any]:
    """The report's settings: the workload file's, where it is named, over those of the run."""
    from slotwise_cli.reporting import settings_of_run

    settings = settings_of_run(result.provenance.config)
    if workload is None:
        return settings
    from slotwise_workflows.config import load_workload

    return {**settings, **load_workload(workload).report.model_dump(exclude_unset=True)}
