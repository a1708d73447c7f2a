"""What the report options of the command line mean, over what a file or a run said before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slotwise_workflows.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from slotwise_workflows.report import Branding

FORMATS = ("html", "md", "summary", "pdf")
DEFAULT_FORMATS = ("html", "md", "summary")


def report_formats(
    option: str | None, configured: Sequence[str] | None, *, where: str = ""
) -> tuple[str, ...]:
    """The formats to write: the option's, else those configured at `where`, else the usual ones.

    Raises:
        UsageError: The option names one that this version does not write.
        ConfigError: The configuration does.
        MissingExtraError: A PDF is among them, and what sets it is not installed.
    """
    if option is None:
        wanted = tuple(configured or DEFAULT_FORMATS)
    else:
        wanted = tuple(name.strip() for name in option.split(",") if name.strip())
        if not wanted:
            raise UsageError("--formats names no format", hint=f"Choose from {', '.join(FORMATS)}")
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        what = f"this version writes no {unknown[0]!r} report"
        hint = f"Choose from {', '.join(FORMATS)}"
        if option is not None:
            raise UsageError(f"--formats: {what}", hint=hint)
        raise ConfigError(f"report.formats: {what}", where=where, hint=hint)
    if "pdf" in wanted:
        from slotwise_workflows.report import require_pdf

        require_pdf()
    return tuple(dict.fromkeys(wanted))


def branding_of(
    settings: Mapping[str, Any], options: Mapping[str, str | None], *, folder: Path = Path()
) -> Branding:
    """What the consultant adds: the options' where given, else what the settings say.

    Args:
        settings: The report's, of a workload file or of a run.
        options: Of the command line, by the settings' names; None where not given.
        folder: Where a relative path of the settings starts from; an option's starts from here.

    Raises:
        UsageError: The colour that is given cannot be read on white.
        InputError: The logo is no picture, or the settings' colour cannot be read on white.
    """
    from slotwise_workflows.report import branding_of, readable_on_white

    given = {name: said for name, said in options.items() if said is not None}
    if given.get("accent"):
        try:
            readable_on_white(given["accent"])
        except ValueError as error:
            raise UsageError(f"--accent {error}") from None
    start = Path() if "logo" in given else folder
    return branding_of({**settings, **given}, start)


def settings_of_run(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report's settings in a run's configuration: a person's run, or a host's."""
    for key in ("report", "inputs"):
        if isinstance(config.get(key), dict):
            return dict(config[key])
    return {}
