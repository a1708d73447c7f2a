"""Numbers as a reader expects them: no more digits than the data carry.

Pure functions from a number to its digits, without a unit; units are words and live in the
catalogues. A missing number is a dash.
"""

from __future__ import annotations

import math

DASH = "—"


def significant(value: float, digits: int = 3) -> str:
    """Rounds to significant digits, never in E notation, thousands grouped.

    Whole digits in front of the point are kept: 1234.5 at 3 digits is ``1,234``, since a rounded
    thousand would look like another number than the one in the tables.
    """
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, max(0, digits - 1 - magnitude))
    if rounded and math.floor(math.log10(abs(rounded))) > magnitude:
        magnitude += 1
    return f"{value:,.{max(0, digits - 1 - magnitude)}f}"


def interval_decimals(low: float, high: float) -> int:
    """Decimals an estimate deserves: one digit beyond the leading digit of its interval's width."""
    width = abs(high - low)
    if width == 0:
        return 2
    return min(2, max(0, 1 - math.floor(math.log10(width))))


def times(value: float, decimals: int = 2) -> str:
    """A ratio such as a gain: two decimals below ten, one below a hundred, then none."""
    size = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{min(size, decimals)}f}"


def load(value: float, decimals: int = 2) -> str:
    """A load in times today's: as a ratio, but finer near 0, and 0 without decimals."""
    return times(value, decimals) if value >= 0.1 else significant(value, 2)


def percent(share: float) -> str:
    """A fraction of one as a percentage without its sign: finer only near 0 and 100."""
    value = 100 * share
    if abs(value) < 1e-9:  # what floating-point subtraction leaves of nothing
        return "0"
    if value != 0 and abs(value) < 0.1:
        return "<0.1" if value > 0 else ">-0.1"
    if 99.95 <= value < 100:
        return ">99.9"
    fine = (abs(value) < 9.95 or 99 < value < 100) and value != round(value)
    return f"{value:,.1f}" if fine else f"{value:,.0f}"


def setting(value: float) -> str:
    """A number that somebody set or could set: three significant digits, no trailing zeros."""
    text = significant(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: float) -> str:
    """A whole number, thousands grouped."""
    return f"{value:,.0f}"


def plain(value: float, decimals: int = 2) -> str:
    """At most so many decimals, none that say nothing: 1.50 is ``1.5``, 8.00 is ``8``."""
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
