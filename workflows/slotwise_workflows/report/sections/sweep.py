"""The pictures of a sweep: what makes the gain, and what becomes of latency and throughput.

Each stands only where what is varied shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from slotwise_workflows.record import Estimate
from slotwise_workflows.report import sweep_reading as found
from slotwise_workflows.report.charts.lines import Axis, Line, line_chart
from slotwise_workflows.report.document import Figure, Table
from slotwise_workflows.report.sections.drawn import figure, table
from slotwise_workflows.report.sweep_reading import Server
from slotwise_workflows.report.words import Words
from slotwise_workflows.sample_size import P95_REQUESTS
from slotwise_workflows.sweep.record import SweepFigures, SweepRow

_MOST_LINES = 6
_Measure = Literal["mean", "p95", "requests"]
_Read = Callable[[SweepRow], Estimate]

_MEASURES: Mapping[_Measure, tuple[_Read, str]] = {
    "mean": (lambda row: row.latency_mean_s, "seconds"),
    "p95": (lambda row: row.latency_p95_s, "seconds"),
    "requests": (lambda row: row.requests_per_s, "per_second"),
}


def gain_by_slots(sweep: SweepFigures, words: Words) -> Figure | None:
    """What slots make of the traffic's own lengths, a line a policy."""
    policy, kinds = found.challenger(sweep), found.kinds(sweep)
    if policy is None or not kinds:
        return None
    same = found.alike(sweep, kinds[0])
    lines = []
    for name in found.policies(sweep):
        gains = found.gains(sweep, name)
        points = tuple((float(own.slots), gains[own, None]) for own in same if (own, None) in gains)
        # Batches in order of arrival are what the gain is over: theirs is 1 everywhere.
        gains_something = name == policy or any(value.low != value.high for _, value in points)
        if name != sweep.baseline and gains_something and len(points) > 1:
            lines.append(Line(found.in_file(name), _role(sweep, name), points))
    main = next((own for own in lines if own.name == found.in_file(policy)), None)
    if main is None:
        return None
    (few, first), (many, last) = main.points[0], main.points[-1]
    adopt = sweep.thresholds["gain_adopt"]
    axis = Axis(words("slots.axis"), log=True, at=_powers(few, many))
    told: dict[str, str | float] = {"policy": found.quoted(words)(policy), "few": few, "many": many}
    told |= {"first": first.estimate, "last": last.estimate}
    return figure(
        words,
        "gain-slots",
        line_chart(_coloured(lines), axis, Axis(words("gain.y")), across=_thresholds(adopt, words)),
        title=words("slots.title", **told),
        description=words("slots.description", **told) + _of_kind(kinds, sweep, words),
        table=_line_table(
            words("slots.table"), words("gain.slots"), lines, ("count", "times"), words
        ),
        note=words("slots.note", replications=_replications(sweep, words))
        + _of_kind(kinds, sweep, words),
    )


def gain_by_variation(sweep: SweepFigures, words: Words) -> Figure | None:
    """Equal lengths gain nothing, more variation gains more, more slots gain more."""
    policy, here, kinds = found.challenger(sweep), sweep.here.length_cv, found.kinds(sweep)
    if policy is None or not kinds:
        return None
    gains = found.gains(sweep, policy)
    lines: list[tuple[int, Line]] = []
    for own in found.alike(sweep, kinds[0]):
        points = {
            here if cv is None else cv: gain
            for (server, cv), gain in gains.items()
            if server == own
        }
        known = tuple(sorted((cv, gain) for cv, gain in points.items() if cv is not None))
        if len(known) > 1:
            name = words("sweep.server", slots=own.slots)
            lines.append((own.slots, Line(name, len(lines), known)))
    if not lines:
        return None
    drawn = lines if len(lines) <= _MOST_LINES else _even(lines, _MOST_LINES)
    few, many = drawn[0], drawn[-1]
    adopt = sweep.thresholds["gain_adopt"]
    told: dict[str, str | float] = {
        "policy": found.quoted(words)(policy),
        "least": few[1].points[0][0],
        "first": max(line.points[0][1].estimate for _, line in drawn),
        "most": many[1].points[-1][0],
        "few": few[0],
        "few_gain": few[1].points[-1][1].estimate,
        "many": many[0],
        "many_gain": many[1].points[-1][1].estimate,
    }
    one = "_one" if len(drawn) == 1 else ""
    ticks = tuple(cv for cv, _ in drawn[0][1].points if cv != here) if here else None
    return figure(
        words,
        "gain-variation",
        line_chart(
            [line for _, line in drawn],
            Axis(words("variation.axis"), at=ticks),
            Axis(words("gain.y")),
            ranked=True,
            across=_thresholds(adopt, words),
            here=(here, words("variation.here", cv=here)) if here else None,
        ),
        title=words(f"variation.title{one}", **told),
        description=words(f"variation.description{one}", **told) + _of_kind(kinds, sweep, words),
        table=_line_table(
            words("variation.table"),
            words("plane.head_cv"),
            [line for _, line in lines],
            ("number", "times"),
            words,
        ),
        note=words("variation.note", replications=_replications(sweep, words))
        + _of_kind(kinds, sweep, words),
    )


def by_load(sweep: SweepFigures, words: Words, measure: _Measure) -> Figure | None:
    """Latency against load, a line a policy."""
    return _by_arrivals(sweep, words, "open", measure)


def by_users(sweep: SweepFigures, words: Words, measure: _Measure) -> Figure | None:
    """The same against the users of a closed loop."""
    return _by_arrivals(sweep, words, "closed", measure)


def _by_arrivals(
    sweep: SweepFigures, words: Words, arrivals: Literal["open", "closed"], measure: _Measure
) -> Figure | None:
    kinds, policy = found.kinds(sweep), found.challenger(sweep)
    server = next((own for own in kinds if found.rows_of(sweep, own, arrivals)), None)
    if server is None or policy is None:
        return None
    rows = found.rows_of(sweep, server, arrivals)
    if measure == "p95" and rows[0].requests < P95_REQUESTS:
        return None
    read, kind = _MEASURES[measure]
    at = {row.load if arrivals == "open" else float(row.users or 0) for row in rows}
    values = sorted(value for value in at if value is not None)
    if len(values) < 2 or any(read(row).low <= 0 for row in rows):
        return None
    lines = [_line(sweep, rows, name, read) for name in found.policies(sweep)]
    closest = min(values, key=lambda value: abs(value - 1)) if arrivals == "open" else values[-1]
    base, own = (_at(rows, name, closest) for name in (sweep.baseline, policy))
    if base is None or own is None:
        return None
    what = words(f"times.{measure}")
    told: dict[str, str | float] = {
        "server": found.server_name(server, sweep, words),
        "baseline": found.quoted(words)(sweep.baseline),
        "policy": found.quoted(words)(policy),
        "at": _amount(arrivals, closest, words),
        "figure": what,
        "now": words.number(read(base).estimate, kind),
        "after": words.number(read(own).estimate, kind),
    }
    both = "_both" if own.overloaded else "_overloaded"
    key = f"times.title_{arrivals}" + (both if base.overloaded else "")
    unit = "" if kind == "seconds" else "_rate"
    spec = line_chart(
        _coloured(lines),
        Axis(words(f"times.axis_{arrivals}"), log=True, at=tuple(values)),
        Axis(words(f"times.y{unit}", figure=what), log=kind == "seconds"),
        here=(1.0, words("load.here"))
        if arrivals == "open" and values[0] <= 1 <= values[-1]
        else None,
    )
    over = any(line.strained for line in lines)
    return figure(
        words,
        f"{arrivals}-{measure}",
        spec,
        title=words(key, **told),
        description=words(f"times.description_{arrivals}", **told, low=values[0], high=values[-1]),
        table=_line_table(
            words(f"times.table_{arrivals}", figure=what, server=told["server"]),
            words(f"times.head_{arrivals}"),
            lines,
            ("factor" if arrivals == "open" else "count", kind),
            words,
        ),
        note=words("load.note") if over else "",
    )


def _amount(arrivals: Literal["open", "closed"], value: float, words: Words) -> str:
    """A load or a number of users in words."""
    if arrivals == "closed":
        return words("sweep.at_users", users=value)
    return words("times.today" if value == 1 else "times.load", load=value)


def _line(sweep: SweepFigures, rows: Sequence[SweepRow], policy: str, read: _Read) -> Line:
    own = [row for row in rows if row.policy == policy]
    points = {_where(row): read(row) for row in own}
    strained = frozenset(_where(row) for row in own if row.overloaded)
    return Line(
        found.in_file(policy), _role(sweep, policy), tuple(sorted(points.items())), strained
    )


def _role(sweep: SweepFigures, policy: str) -> int:
    """Which look a policy has in every picture: the baseline, its challenger, then the others."""
    first = [sweep.baseline, found.challenger(sweep)]
    return [*first, *(own for own in found.policies(sweep) if own not in first)].index(policy)


def _at(rows: Sequence[SweepRow], policy: str, where: float) -> SweepRow | None:
    return next((row for row in rows if row.policy == policy and _where(row) == where), None)


def _where(row: SweepRow) -> float:
    """How much comes: load or users."""
    return row.load if row.load is not None else float(row.users or 0)


def _coloured(lines: Sequence[Line]) -> list[Line]:
    """At most so many that marks and dashes still tell them apart."""
    return list(lines[:_MOST_LINES])


def _even(lines: Sequence[tuple[int, Line]], most: int) -> list[tuple[int, Line]]:
    return [lines[round(i * (len(lines) - 1) / (most - 1))] for i in range(most)]


def _powers(low: float, high: float) -> tuple[float, ...]:
    return tuple(2.0**k for k in range(20) if low <= 2**k <= high)


def _thresholds(adopt: float, words: Words) -> list[tuple[float, str]]:
    return [(1.0, words("gain.even")), (adopt, words("variation.adopt", adopt=adopt))]


def _replications(sweep: SweepFigures, words: Words) -> str:
    """Those that gains are of; a replay's stands before a search's."""
    return found.replications(sweep.rows or sweep.limits, words)


def _of_kind(kinds: Sequence[Server], sweep: SweepFigures, words: Words) -> str:
    """Which of several kinds of server a picture is of."""
    if len(kinds) < 2:
        return ""
    return words("sweep.of_kind", server=found.server_name(kinds[0], sweep, words))


def _line_table(
    caption: str, head: str, lines: Sequence[Line], kinds: tuple[str, str], words: Words
) -> Table:
    at = sorted({x for line in lines for x, _ in line.points})
    by_line = [dict(line.points) for line in lines]
    rows = [
        (
            words.number(x, kinds[0]),
            *(
                _strained(found.shown(own.get(x), kinds[1], words), x in line.strained, words)
                for own, line in zip(by_line, lines, strict=True)
            ),
        )
        for x in at
    ]
    return table(caption, (head, *(line.name for line in lines)), rows)


def _strained(text: str, over: bool, words: Words) -> str:
    return words("load.cell_overloaded", value=text) if over else text
