"""How a loop that has let go of the interpreter is watched and stopped: two numbers in an array."""

from __future__ import annotations

DONE, STOP = 0, 1
"""Requests done so far, written by the loop; and whether it is to stop, written by its caller."""
