"""What the report options of the command line mean, over what a file or a run said before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slotwise_workflows.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from slotwise_workflows.report import Branding

FORMATS = ("html", "md", "summary")


def report_formats(
    option: str | None, configured: Sequence[str] | None, *, where: str = ""
) -> tuple[str, ...]:
    """The formats to write: the option's, else those configured at `where`, else all.

    Raises:
        UsageError: The option names one that this version does not write.
        ConfigError: The configuration does.
    """
    if option is None:
        wanted = tuple(configured or FORMATS)
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
    return tuple(dict.fromkeys(wanted))


def branding_of(
    settings: Mapping[str, Any], *, client: str | None, prepared_by: str | None
) -> Branding:
    """What the consultant adds: the options' where given, else what the settings say."""
    from slotwise_workflows.report import Branding, OwnAction

    return Branding(
        notes=str(settings.get("notes") or ""),
        actions=tuple(OwnAction(**own) for own in settings.get("actions") or ()),
        client=client if client is not None else str(settings.get("client") or ""),
        prepared_by=(
            prepared_by if prepared_by is not None else str(settings.get("prepared_by") or "")
        ),
    )


def settings_of_run(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report's settings in a run's configuration: a person's run, or a host's."""
    for key in ("report", "inputs"):
        if isinstance(config.get(key), dict):
            return dict(config[key])
    return {}
