"""The one place that knows Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a loop over arrays on its first call, keeping its types for the type checker.

    The machine code is kept on disk beside the source, or in the user's cache folder where the
    source cannot be written to. Where neither can be, Numba refuses to cache at all; compiling
    anew in every process is then better than not running.

    Args:
        function: A loop in the part of Python that Numba compiles, without Python objects.

    Returns:
        The compiled function; it lets go of the interpreter lock while it runs.
    """
    try:
        made = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        made = numba.njit(nogil=True)(function)
    return cast("Callable[P, R]", made)
