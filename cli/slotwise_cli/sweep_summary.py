"""What `slotwise sweep` prints: latency by setting, and the limits of each server."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from slotwise_cli.summary import setting_lines
from slotwise_workflows.sweep.points import ARRIVING, SERVER

if TYPE_CHECKING:
    from slotwise_cli.console import Console
    from slotwise_workflows.record import Estimate
    from slotwise_workflows.sweep.record import SweepLimit, SweepReport, SweepRow

MOST_ROWS = 60
"""Lines of a table; the files have all of them."""

_SETTING = (*SERVER, "arrivals", *ARRIVING)
_HEADS = {"replicas": "servers", "length_cv": "CV"}
_BEST = "best gain"


def print_sweep(console: Console, found: SweepReport) -> None:
    """Mean latency by setting, the limits by server, and what they were replayed at."""
    if found.rows:
        _print_latencies(found.rows)
    if found.limits:
        _print_limits(found.limits, found.baseline)
    for name, cost in found.costs.items():
        lines = setting_lines(cost, found.memory)
        if len(found.costs) > 1 and lines:
            console.out(f"{name}:")
        for line in lines:
            console.out(line)


def _print_latencies(rows: Sequence[SweepRow]) -> None:
    """One column a policy, and whose gain is the best."""
    names = list(dict.fromkeys(row.policy for row in rows))
    shown = _varied(rows, _SETTING) or ("slots",)
    offline = any(row.arrivals == "offline" for row in rows)
    settings: dict[tuple[object, ...], dict[str, SweepRow]] = {}
    for row in rows:
        key = tuple(getattr(row, name) for name in _SETTING)
        settings.setdefault(key, {})[row.policy] = row
    cells = [
        (
            *(_cell(getattr(next(iter(own.values())), name)) for name in shown),
            _best(own),
            *(_latency(own[name]) for name in names),
        )
        for own in settings.values()
    ]
    _print_table(
        "mean latency in seconds",
        [*(_HEADS.get(name, name) for name in shown), _BEST, *names],
        cells,
        caption="best gain: the policy that sustains most requests per second here, over batches "
        f"in order of arrival ({_middle(rows)}). "
        "* overloaded: the mean grows with the length of the traffic."
        + (" + offline: when the whole job is done." if offline else ""),
        policies=names,
    )


def _print_limits(limits: Sequence[SweepLimit], baseline: str) -> None:
    shown = _varied(limits, SERVER) or ("slots",)
    cells = [
        (
            *(_cell(getattr(own, name)) for name in shown),
            own.policy,
            _estimate(own.capacity_per_s),
            _servers(own.servers_needed),
            _from(own.break_even_load),
            _until(own),
            _from(own.break_even_cv),
        )
        for own in limits
    ]
    _print_table(
        "limits",
        [
            *(_HEADS.get(name, name) for name in shown),
            "policy",
            "requests/s",
            "servers",
            "pays from\nload",
            "up to\nload",
            "pays from\nCV",
        ],
        cells,
        caption="requests/s: the most at which every objective is met. servers: the fewest that "
        f"carry the traffic as it is. pays from: against {baseline}; up to: where capacity gains "
        f"little, the wait falls no further. In brackets: {_middle(limits)}.",
    )


def _varied(rows: Sequence[SweepRow] | Sequence[SweepLimit], names: Sequence[str]) -> list[str]:
    """The columns in which rows differ."""
    return [name for name in names if len({getattr(row, name) for row in rows}) > 1]


def _print_table(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str,
    policies: Sequence[str] = (),
) -> None:
    from rich import box
    from rich.console import Console as RichConsole
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=Text(title), title_justify="left"
    )
    console = RichConsole(file=sys.stdout, markup=False, highlight=False, emoji=False)
    shown, needed = rows[:MOST_ROWS], 1
    intervals = [any("(" in row[place] for row in shown) for place in range(len(heads))]
    short = _short_heads(heads, shown, policies, console.width)
    for head, wraps, column in zip(short, intervals, zip(*shown, strict=True), strict=True):
        parts = " ".join(column).split() if wraps else column  # before an interval's bracket
        least = max(map(len, (*head.split("\n"), *parts)))
        table.add_column(Text(head), justify="right", no_wrap=not wraps, min_width=least)
        needed += least + 2
    # A figure is never cut: a terminal that is narrower breaks the line, and a file has it whole.
    console.width = max(console.width, needed)
    for cells in shown:
        table.add_row(*cells)
    more = len(rows) - len(shown)
    table.caption = Text(caption + (f" {more:,} more rows are in the files." if more else ""))
    table.caption_justify = "left"
    console.print(table)


def _short_heads(
    heads: Sequence[str], rows: Sequence[Sequence[str]], policies: Sequence[str], width: int
) -> list[str]:
    """The columns' heads; policies by short names where the whole ones leave no room."""
    wide = sum(max(map(len, column)) + 3 for column in zip(heads, *rows, strict=True))
    if wide <= width:
        return list(heads)
    return [
        head.replace("dynamic", "dyn").replace("continuous", "cont") if head in policies else head
        for head in heads
    ]


def _best(by_policy: dict[str, SweepRow]) -> str:
    gains = {name: row.gain for name, row in by_policy.items() if row.gain is not None}
    if not gains:
        return "-"
    best = max(gains, key=lambda name: gains[name].estimate)
    return f"{best} {_estimate(gains[best])}"


def _latency(row: SweepRow) -> str:
    if row.arrivals == "offline":
        return f"{row.makespan_s.estimate:.2f}+"
    return f"{row.latency_mean_s.estimate:.2f}{'*' if row.overloaded else ' '}"


def _estimate(value: Estimate | None) -> str:
    if value is None:
        return "-"
    shown, low, high = map(_figure, (value.estimate, value.low, value.high))
    return shown if low == high else f"{shown} ({low}-{high})"


def _figure(value: float) -> str:
    """Two or three digits: an interval of them stands in one line of a narrow console."""
    return f"{value:.2g}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _from(value: Estimate | None) -> str:
    """Where something begins; 0 is everywhere."""
    return "any" if value is not None and value.high == 0 else _estimate(value)


def _until(own: SweepLimit) -> str:
    endless = own.break_even_load is not None and own.break_even_until is None
    return "no end" if endless else _estimate(own.break_even_until)


def _middle(lines: Sequence[SweepRow] | Sequence[SweepLimit]) -> str:
    """What an interval is of; fewer replications where some failed."""
    few, many = (pick(own.replications for own in lines) for pick in (min, max))
    counts = f"{many}" if few == many else f"{few}-{many}"
    return f"middle 95 % of {counts} replication{'s' * (many > 1)}"


def _servers(value: Estimate | None) -> str:
    """Whole servers, since nobody buys a part of one: the mean is rounded up."""
    if value is None:
        return "-"
    few, many = math.floor(value.low), math.ceil(value.high)
    return str(many) if few == many else f"{math.ceil(value.estimate)} ({few}-{many})"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
