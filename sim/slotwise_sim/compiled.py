"""The one place that knows Numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import caching

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a loop over arrays on its first call, keeping its types for the type checker.

    The machine code is kept on disk beside the source, or in the user's cache folder where the
    source cannot be written to. Where neither can be, or what is there cannot be read, compiling
    anew is better than not running.

    Args:
        function: A loop in the part of Python that Numba compiles, without Python objects.

    Returns:
        The compiled function; it lets go of the interpreter lock while it runs.
    """
    made = cast("Any", numba.njit(nogil=True)(function))
    with suppress(RuntimeError):  # no folder to keep it in
        made._cache = _Kept(function)
    return cast("Callable[P, R]", made)


_FunctionCache: Any = caching.FunctionCache  # without types


class _Kept(_FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk, as a help and never a condition.

    Numba lets a damaged file (a full disk, a power cut) and a folder that is gone end the program.
    And it asks only whether the loop's own file has changed, while parts of other files beside it
    are compiled into the loop: what is kept here is of one state of the whole folder.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _digest(Path(function.__code__.co_filename).parent)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Returns what was kept; None where nothing was, or it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling half a file raises anything
            with suppress(OSError):
                self.flush()  # or the damaged index would be read again, to add to it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps the machine code if there is a place for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


@cache
def _digest(folder: Path) -> str:
    """Tells one state of the sources of a folder from any other."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a part of a loop into every loop that calls it.

    A call would count references to every array it is handed; in these loops that takes ten times
    as long as the work.
    """
    return cast("Callable[P, R]", numba.njit(inline="always")(function))
