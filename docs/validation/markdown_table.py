"""How the scripts beside this file print: as the tables of their pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a Markdown table; cells are printed as ``str`` has them."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def spread(values: Sequence[float], digits: int) -> str:
    """Returns mean and standard deviation of some repetitions: ``1.95 ± 0.03``."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return f"{mean:.{digits}f} ± {variance**0.5:.{digits}f}"
