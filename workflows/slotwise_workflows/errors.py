"""Every fault a user can cause, as one hierarchy.

    SlotwiseError            exit 1
    ├── UsageError           exit 2   the command line is wrong
    ├── InputError           exit 3   a log or another input file cannot be used
    │   └── ConfigError      exit 3   a workload or workflow file is wrong
    ├── EndpointError        exit 5   a live endpoint cannot be reached or answers wrongly
    ├── MissingExtraError    exit 6   an optional dependency is not installed
    └── Cancelled            exit 130 interrupted by the user or the host

`NOT_ENOUGH_DATA`, exit 4, is no error: the answer is that the log holds too little to decide on.

Each error says what happened, where, why, and what to do about it. The command line turns one into
a line on standard error and its exit code, at one place. They survive pickling, since they cross
Ray.
"""

from __future__ import annotations

from typing import ClassVar, Final

NOT_ENOUGH_DATA: Final = 4


class SlotwiseError(Exception):
    """A fault told in one line: what, where, why, what to do.

    Args:
        what: What cannot be done, without a final full stop.
        where: ``file``, ``file:line`` or a field's name; empty when the fault has no place.
        why: The reason, when it is not in ``what`` already.
        hint: What the user can do now.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what, where, why, hint)
        self.what = what
        self.where = where
        self.why = why
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.why, self.hint)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        because = f": {self.why}" if self.why else ""
        then = f". {self.hint}" if self.hint else ""
        return f"{place}{self.what}{because}{then}"


class UsageError(SlotwiseError):
    """The command line is wrong."""

    exit_code = 2


class InputError(SlotwiseError):
    """A log or another input file cannot be used."""

    exit_code = 3


class ConfigError(InputError):
    """A workload or workflow file is wrong."""


class EndpointError(SlotwiseError):
    """A live endpoint cannot be reached or answers wrongly."""

    exit_code = 5


class MissingExtraError(SlotwiseError):
    """An optional dependency is not installed."""

    exit_code = 6


class Cancelled(SlotwiseError):  # noqa: N818 - not an error of the input
    """Interrupted by the user or the host."""

    exit_code = 130


def _rebuild(
    kind: type[SlotwiseError], what: str, where: str, why: str, hint: str
) -> SlotwiseError:
    return kind(what, where=where, why=why, hint=hint)
