"""The numbers of a sweep as tables: limits, offline jobs, every setting, and what was run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from slotwise_sim.memory import Memory
from slotwise_workflows.record import Estimate
from slotwise_workflows.report import cost_reading, reading
from slotwise_workflows.report import sweep_reading as found
from slotwise_workflows.report.document import Block, Bullets, Column, Heading, Item, Label, Table
from slotwise_workflows.report.sections.data import known
from slotwise_workflows.report.sweep_reading import Names
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.sample_size import P95_REQUESTS
from slotwise_workflows.sweep.record import (
    Failure,
    SweepFigures,
    SweepLimit,
    SweepReport,
    SweepRow,
)

MOST_ROWS = 60
_MOST_NOTES = 20
_LONG = 400

_P = TypeVar("_P", SweepRow, SweepLimit)
_L = TypeVar("_L", SweepRow, SweepLimit, Failure)
_Cells = tuple[Column, Callable[[_L], str]]
"""A column: its heading, and its cell of a line."""


def limits_table(
    sweep: SweepFigures,
    words: Words,
    *,
    named: Names = found.in_file,
    in_words: Names | None = None,
    label: Label = "simulated",
) -> Table | None:
    """What each policy carries on each server, and from where it is worth having.

    Args:
        sweep: What was found; the traffic's own lengths alone stand in the table.
        words: The language.
        named: What policies are called.
        in_words: What they are called in a sentence.
        label: The kind of its numbers.

    Returns:
        None where no limits were searched.
    """
    lines = [own for own in sweep.limits if own.length_cv is None]
    if not lines:
        return None
    columns: list[_Cells[SweepLimit]] = [
        *_varied(lines, words),
        _policy(words, named),
        *_limits(words),
    ]
    note = words(
        "limits_table.note" if sweep.objectives else "limits_table.note_no_objectives",
        baseline=(in_words or found.quoted(words))(sweep.baseline),
        adopt=sweep.thresholds["gain_adopt"],
        fall=sweep.thresholds["waiting_adopt"],
        replications=found.replications(lines, words),
    )
    caption = words("limits_table.caption")
    return _bounded(caption, columns, lines, words, "limits.parquet", label, note)


def all_limits_table(sweep: SweepFigures, words: Words) -> Table | None:
    """The same at every variation of the lengths, with the gain."""
    if not sweep.limits:
        return None
    load = words("limits_table.capacity_load")
    columns: list[_Cells[SweepLimit]] = [
        *_varied(sweep.limits, words),
        _policy(words),
        (Column(words("gain.y")), lambda own: found.shown(own.gain, "times", words)),
        (Column(load), lambda own: found.capacity(own.capacity_load, "load", words)),
        *_limits(words),
    ]
    caption, note = words("limits_table.caption_all"), _interval(sweep.limits, words)
    return _bounded(caption, columns, sweep.limits, words, "limits.parquet", note=note)


def _interval(lines: Sequence[SweepRow] | Sequence[SweepLimit], words: Words) -> str:
    """What stands in brackets."""
    return words("sweep.in_brackets", replications=found.replications(lines, words))


def _limits(words: Words) -> list[_Cells[SweepLimit]]:
    tell: dict[str, Callable[[SweepLimit], str]] = {
        "capacity_per_s": lambda own: found.capacity(own.capacity_per_s, "per_second", words),
        "servers": lambda own: found.whole(own.servers_needed, words),
        "from_load": lambda own: found.load_from(own.break_even_load, words),
        "until_load": lambda own: found.load_until(
            own.break_even_load, own.break_even_until, words
        ),
        "from_cv": lambda own: found.cv_from(own.break_even_cv, words),
    }
    return [(Column(words(f"limits_table.{key}")), told) for key, told in tell.items()]


def offline_table(sweep: SweepFigures, words: Words) -> Table | None:
    """The job as a whole: how long it takes, and how much of a machine."""
    lines = [row for row in sweep.rows if row.arrivals == "offline"]
    if not lines:
        return None
    tell: dict[str, Callable[[SweepRow], str]] = {
        "makespan": lambda own: found.shown(own.makespan_s, "seconds", words),
        "hours": lambda own: found.shown(
            _times(own.makespan_s, own.replicas / 3600), "digits", words
        ),
        "per_s": lambda own: found.shown(own.requests_per_s, "per_second", words),
        "gain": lambda own: found.shown(own.gain, "times", words),
    }
    told = [(Column(words(f"offline.{key}")), own) for key, own in tell.items()]
    columns: list[_Cells[SweepRow]] = [*_varied(lines, words), _policy(words), *told]
    note = f"{words('offline.note')} {_interval(lines, words)}"
    return _bounded(words("offline.caption"), columns, lines, words, "sweep.parquet", note=note)


def rows_table(sweep: SweepFigures, words: Words) -> Table | None:
    """Every setting and policy that was replayed."""
    if not sweep.rows:
        return None
    come = Column(words("sweep.arrivals"), numeric=False)
    tell: dict[str, Callable[[SweepRow], str]] = {
        "gain": lambda own: found.shown(own.gain, "times", words),
        "mean": lambda own: words.number(own.latency_mean_s.estimate, "seconds"),
        "p95": lambda own: words.number(_p95_s(own), "seconds"),
        "requests": lambda own: words.number(own.requests_per_s.estimate, "per_second"),
        "idle": lambda own: words.number(own.idle_share.estimate, "percent"),
        "utilisation": lambda own: words.number(
            own.utilisation.estimate if own.utilisation else None, "percent"
        ),
    }
    told = [(Column(words(f"sweep.head_{key}")), own) for key, own in tell.items()]
    columns: list[_Cells[SweepRow]] = [
        *_varied(sweep.rows, words),
        (come, lambda own: arrivals(own, words)),
        _policy(words),
        *told,
    ]
    caption = words("sweep.caption_rows")
    note = words("sweep.note_rows", replications=found.replications(sweep.rows, words))
    return _bounded(caption, columns, sweep.rows, words, "sweep.parquet", note=note)


def _p95_s(row: SweepRow) -> float | None:
    """None of a sample that cannot carry it."""
    return row.latency_p95_s.estimate if row.requests >= P95_REQUESTS else None


def arrivals(line: SweepRow | Failure, words: Words) -> str:
    """How requests come: a load, a number of users, or all at once."""
    if line.load is not None:
        return words("sweep.at_load", load=line.load)
    if line.users is not None:
        return words("sweep.at_users", users=line.users)
    return words("sweep.offline")


def what_was_run(report: SweepReport, words: Words) -> list[Block]:
    """Enough to judge the figures: how much was replayed, of what, at which cost."""
    blocks: list[Block] = [_run(report, words), _costs(report, words)]
    if report.notes:
        notes = tuple(Item(clean(note, _LONG)) for note in report.notes[:_MOST_NOTES])
        blocks += [Heading(words("sweep.notes")), Bullets(notes)]
    if report.failures:
        blocks.append(_failures(report, words))
    return blocks


def objectives(sweep: SweepFigures, words: Words) -> str:
    """What users are promised; a dash for nothing."""
    told = [
        words("sweep.objective", name=known(words, "sweep", f"objective_{name}"), seconds=limit)
        for name, limit in sweep.objectives.items()
    ]
    return words("format.list_separator").join(told) or words.number(None, "")


def _run(report: SweepReport, words: Words) -> Table:
    comma, here = words("format.list_separator"), report.here
    replications = max((own.replications for own in (*report.rows, *report.limits)), default=0)
    memory = report.memory
    rows = [
        ("name", clean(report.name)),
        ("traffic", words.number(here.requests, "count")),
        ("rate", words.number(here.rate_per_s, "rate")),
        ("cv", words.number(here.length_cv, "number")),
        ("policies", comma.join(found.in_file(own) for own in found.policies(report))),
        ("baseline", found.in_file(report.baseline)),
        ("objectives", objectives(report, words)),
        ("gain_adopt", words.number(report.thresholds["gain_adopt"], "factor")),
        ("waiting_adopt", words.number(report.thresholds["waiting_adopt"], "percent")),
        ("memory", words("sweep.memory_none") if memory is None else _memory(memory, words)),
        ("points", words.number(report.points, "count")),
        ("failed", words.number(len(report.failures), "count")),
        ("replications", words.number(replications, "count")),
        ("seed", str(report.seed)),
        ("engine", report.engine),
    ]
    heads = (
        Column(words("provenance.item"), numeric=False),
        Column(words("provenance.value"), numeric=False),
    )
    told = tuple((words(f"sweep.run_{key}"), value) for key, value in rows)
    return Table(words("sweep.caption_run"), heads, told)


def _memory(memory: Memory, words: Words) -> str:
    return words(
        "sweep.memory", tokens=memory.kv_tokens, reserve=known(words, "sweep", memory.reserve)
    )


def _costs(report: SweepReport, words: Words) -> Table:
    rows = tuple(
        (clean(name, 40), cost_reading.source(own, words), cost_reading.quality(own, words))
        for name, own in report.costs.items()
    )
    heads = tuple(
        Column(words(f"sweep.cost_{key}"), numeric=False) for key in ("name", "source", "quality")
    )
    return Table(words("sweep.caption_costs"), heads, rows)


def _failures(report: SweepReport, words: Words) -> Table:
    lines: Sequence[Failure] = report.failures
    come = Column(words("sweep.arrivals"), numeric=False)
    why = Column(words("sweep.why"), numeric=False)
    columns: list[_Cells[Failure]] = [
        *_varied(lines, words),
        (come, lambda own: words("sweep.search") if own.limits else arrivals(own, words)),
        (Column(words("sweep.replication")), lambda own: words.number(own.replication, "count")),
        (why, lambda own: clean(own.why, 200)),
    ]
    caption = words("sweep.caption_failures")
    return _bounded(caption, columns, lines, words, "sweep.json", label="")


def _bounded(
    caption: str,
    columns: Sequence[_Cells[_L]],
    lines: Sequence[_L],
    words: Words,
    file: str,
    label: Label = "simulated",
    note: str = "",
) -> Table:
    """The table, its first rows alone where it is long."""
    left = len(lines) - MOST_ROWS
    if left > 0:
        note += words("sweep.more", rows=left, file=file)
    return Table(
        caption,
        tuple(head for head, _ in columns),
        tuple(tuple(told(line) for _, told in columns) for line in lines[:MOST_ROWS]),
        label,
        reading.label_word(words, label),
        note.strip(),
    )


def _policy(words: Words, named: Names = found.in_file) -> _Cells[_P]:
    column = Column(words("sweep.policy"), numeric=False)
    return (column, lambda own: named(own.policy))


def _varied(lines: Sequence[_L], words: Words) -> list[_Cells[_L]]:
    """The columns of the server: its slots, and what else differs among the lines."""
    columns: list[_Cells[_L]] = [
        (Column(words("gain.slots")), lambda own: words.number(own.slots, "count"))
    ]

    def add(name: str, column: Column, told: Callable[[_L], str]) -> None:
        if len({getattr(line, name) for line in lines}) > 1:
            columns.append((column, told))

    add("cost", Column(words("sweep.cost_name"), numeric=False), lambda own: clean(own.cost, 40))
    add(
        "replicas",
        Column(words("fact.replicas")),
        lambda own: words.number(own.replicas, "count"),
    )
    add(
        "balancer",
        Column(words("sweep.balancer"), numeric=False),
        lambda own: found.balancer_name(own.balancer, words),
    )
    add("length_cv", Column(words("plane.head_cv")), lambda own: _cv(own.length_cv, words))
    return columns


def _cv(cv: float | None, words: Words) -> str:
    return words("sweep.own_lengths") if cv is None else words.number(cv, "number")


def _times(value: Estimate, factor: float) -> Estimate:
    return Estimate(
        estimate=value.estimate * factor, low=value.low * factor, high=value.high * factor
    )
