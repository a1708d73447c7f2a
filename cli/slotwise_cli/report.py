"""`slotwise report`: a finished run rendered again, nothing computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotwise_cli import options
from slotwise_cli.console import Console, choose_language


def report(
    run_dir: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="A directory that a run has written.")
    ],
    language: options.Language = None,
    client: options.Client = None,
    prepared_by: options.PreparedBy = None,
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
    from slotwise_cli.reporting import branding_of, report_formats, settings_of_run
    from slotwise_workflows.files import prepare_directory
    from slotwise_workflows.report import write_report
    from slotwise_workflows.run_directory import load_result

    console = Console(quiet=quiet)
    result = load_result(run_dir)
    settings = settings_of_run(result.provenance.config)
    told = choose_language(language, settings.get("language"))
    directory = prepare_directory(output_dir or (run_dir.parent if run_dir.is_file() else run_dir))
    written = write_report(
        result,
        directory,
        language=told,
        formats=report_formats(formats, settings.get("formats"), where=str(run_dir)),
        branding=branding_of(settings, client=client, prepared_by=prepared_by),
    )
    if json:
        console.json(
            {
                "schema": "slotwise/rendering/v1",
                "language": told,
                "files": [str(path) for path in written],
            }
        )
    else:
        for path in written:
            console.out(str(path))
