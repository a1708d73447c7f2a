"""The report's files in a run directory: the skins and the tables as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slotwise_workflows.errors import UsageError
from slotwise_workflows.files import prepare_directory, write_file
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.csv_tables import as_csv, csv_tables
from slotwise_workflows.report.document import Branding
from slotwise_workflows.report.render import DEFAULT_FORMATS, FORMATS, skin
from slotwise_workflows.report.words import Language, clean, load_words
from slotwise_workflows.result import Result

# A format's file in the run directory.
FILES = {"html": "report.html", "md": "report.md", "summary": "summary.html", "pdf": "report.pdf"}


def write_report(
    result: Result,
    directory: Path,
    *,
    language: Language,
    formats: Sequence[str] = DEFAULT_FORMATS,
    branding: Branding | None = None,
) -> list[Path]:
    """Writes the report in every format, and ``tables/*.csv``; each whole or not at all.

    Args:
        result: What a diagnosis found.
        directory: Made if it is not there.
        language: Of the words; the tables' columns keep their English names.
        formats: Any of `FORMATS`.
        branding: For whom, by whom.

    Returns:
        The files written.

    Raises:
        UsageError: A format is not known.
        InputError: The directory cannot be written, or the result names a code this version has no
            sentence for.
        MissingExtraError: A PDF was asked for, and what sets it is not installed.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise UsageError(
            f"no report format {clean(unknown[0])!r}",
            where="formats",
            hint=f"Choose from {', '.join(FORMATS)}",
        )
    document = compose(result, load_words(language), branding or Branding())
    created = result.provenance.created
    skins = {name: skin(name, document, created) for name in dict.fromkeys(formats)}
    prepare_directory(directory)
    tables = prepare_directory(directory / "tables")
    written = [write_file(directory / FILES[name], made) for name, made in skins.items()]
    for name, (columns, rows) in csv_tables(result).items():
        written.append(write_file(tables / f"{name}.csv", as_csv(columns, rows)))
    return written
