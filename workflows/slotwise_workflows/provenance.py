"""What it takes to run a diagnosis again: versions, seed, hashes, settings, command."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from slotwise_workflows.config.convert import plain_values
from slotwise_workflows.errors import UsageError
from slotwise_workflows.result import InputFile, Provenance

if TYPE_CHECKING:
    from slotwise_workflows.traffic.model import SourceFile

_PACKAGES = ("numba", "numpy", "polars", "pydantic", "scipy", "vl-convert-python")
_SECRET_NAME = re.compile(r"key|token$|secret|passw|credential|authorization|bearer", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}|AKIA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|gh[pousr]_\w{20,}"
    r"|hf_[A-Za-z0-9]{16,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|(?<=Bearer )\S+"
)
_HIDDEN = "***"
_LONGEST_CONDITION = 200  # a longer one compares with a text, which may be a prompt


def provenance(
    *,
    files: Iterable[SourceFile],
    command: Sequence[str],
    config: Mapping[str, Any],
    seed: int,
    now: Callable[[], datetime] | None = None,
) -> Provenance:
    """Collects what it takes to run again.

    Args:
        files: The inputs as they were read.
        command: The command line; secrets in it are hidden.
        config: Every setting in force, as plain values.
        seed: Of every random draw.
        now: The clock; SOURCE_DATE_EPOCH goes before it, so that a build can be repeated.

    Raises:
        UsageError: SOURCE_DATE_EPOCH is set to something that is no time.
    """
    return Provenance(
        slotwise=version(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages={name: metadata.version(name) for name in _PACKAGES},
        seed=seed,
        command=without_secrets(command),
        inputs=[InputFile(name=f.name, sha256=f.sha256, bytes=f.size) for f in files],
        config=_hide(plain_values(dict(config))),
        created=_created(now or (lambda: datetime.now(UTC))),
    )


def version() -> str:
    """The installed version of slotwise."""
    return metadata.version("slotwise")


def without_secrets(command: Sequence[str]) -> list[str]:
    """The command line with what must not be kept replaced by ``***``.

    That is keys, tokens, passwords and a URL's user part, and what a very long ``--where`` compares
    with.
    """
    shown: list[str] = []
    before = ""
    for word in command:
        option, equals, value = word.partition("=")
        is_option = option.startswith("-")
        if before == "--where":
            shown.append(_hide_in_condition(word))
        elif _is_secret_option(before) and not is_option:
            shown.append(_HIDDEN)
        elif is_option and equals and _is_secret_option(option):
            shown.append(f"{option}={_HIDDEN}")
        elif is_option and equals:
            hide = _hide_in_condition if option == "--where" else _hide_in_text
            shown.append(f"{option}={hide(value)}")
        else:
            shown.append(_hide_in_text(word))
        before = word if is_option and not equals else ""
    return shown


def _is_secret_option(option: str) -> bool:
    # --api-key-env names a variable and --ms-per-token is a number; neither is a secret.
    return bool(_SECRET_NAME.search(option)) and option not in ("--api-key-env", "--ms-per-token")


def _hide_in_text(text: str) -> str:
    text = _SECRET_VALUE.sub(_HIDDEN, text)
    if "://" not in text or "@" not in text:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    if "@" not in parts.netloc:
        return text
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{_HIDDEN}@{host}"))


def _hide_in_condition(text: str) -> str:
    if len(text) <= _LONGEST_CONDITION:
        return _hide_in_text(text)
    compared = re.match(r"[^=!<>]{1,100}[=!<>]+", text)
    return f"{compared[0] if compared else ''}{_HIDDEN}"


def _hide(value: Any, hide: Callable[[str], str] = _hide_in_text) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {
            key: _hide(item, _hide_in_condition if key == "where" else _hide_in_text)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_hide(item, hide) for item in value]
    return value


def _created(now: Callable[[], datetime]) -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        moment = now()
    else:
        try:
            moment = datetime.fromtimestamp(int(epoch), UTC)
        except (ValueError, OverflowError, OSError):
            raise UsageError(
                f"SOURCE_DATE_EPOCH is {epoch!r:.40}",
                why="it must be whole seconds since 1970",
                hint="Unset it or correct it",
            ) from None
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
