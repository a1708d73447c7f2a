"""The result's tables at full precision, for a spreadsheet or a notebook."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence

from slotwise_workflows.record import Record
from slotwise_workflows.report.words import clean
from slotwise_workflows.result import Diagnosis, Result

Cell = str | float | int | bool | None
Row = Sequence[Cell]


def csv_tables(result: Result) -> dict[str, tuple[list[str], list[Row]]]:
    """Every table at full precision: file name, columns, rows. Empty tables are left out.

    Where the log holds several models, the log as a whole stands among the verdicts alone, under
    the model ``*``: its figures are those of the leading model.
    """
    whole = ("*" if result.models else result.model or "", result)
    models: list[tuple[str, Diagnosis]] = [(m.model or "", m) for m in result.models]
    parts = models or [whole]

    def each(rows: Callable[[Diagnosis], Iterable[Row]]) -> list[Row]:
        return [(name, *row) for name, part in parts for row in rows(part)]

    tables: dict[str, tuple[str, list[Row]]] = {
        "verdicts": (
            "model requests token_share verdict confidence slots gain gain_low gain_high",
            [(name, *row) for name, part in [whole, *models] for row in _verdict(part)],
        ),
        "policies": ("model policy figure value", each(_policies)),
        "gain_bound": ("model slots estimate low high", each(_bound)),
        "what_if": (
            "model slots load gain policy latency_mean_s latency_p95_s idle_share overloaded",
            each(_what_if),
        ),
        "output_lengths": ("model from_token to_token requests", each(_histogram)),
        "arrivals": ("model from_s to_s requests_per_s", each(_arrivals)),
        "attribution": ("model factor value", each(_attribution)),
        "facts": ("model fact value low high unit source basis detail weight", each(_facts)),
        "rows": ("kind reason rows", _reconciliation(result)),
        "segments": (
            "segment value requests token_share mean p50 p95 max std cv",
            list(_segments(result)),
        ),
    }
    return {name: (columns.split(), rows) for name, (columns, rows) in tables.items() if rows}


def _verdict(own: Diagnosis) -> Iterator[Row]:
    gain = own.gain
    bounds = (None, None, None) if gain is None else (gain.estimate, gain.low, gain.high)
    yield own.requests, own.token_share, own.verdict, own.confidence, own.slots, *bounds


def _policies(own: Diagnosis) -> Iterator[Row]:
    for policy, figures in own.policies.items():
        for name, value in figures:
            if isinstance(value, Record):
                yield from ((policy, f"{name}.{key}", part) for key, part in value)
            else:
                yield policy, name, value


def _bound(own: Diagnosis) -> Iterator[Row]:
    for slots, e in own.gain_bound.items():
        yield slots, e.estimate, e.low, e.high


def _what_if(own: Diagnosis) -> Iterator[Row]:
    for p in own.what_if:
        for policy, idle in p.idle_share.items():
            mean, p95 = p.latency_mean_s.get(policy), p.latency_p95_s.get(policy)
            over = p.overloaded.get(policy)
            yield p.slots, p.load or None, p.gain, policy, mean, p95, idle, over


def _histogram(own: Diagnosis) -> Iterator[Row]:
    start, width = own.histogram.start, own.histogram.width
    for i, count in enumerate(own.histogram.counts):
        yield start + i * width, start + (i + 1) * width, count


def _arrivals(own: Diagnosis) -> Iterator[Row]:
    if own.arrivals is not None:
        width = own.arrivals.bin_s
        for i, rate in enumerate(own.arrivals.rate_by_bin):
            yield i * width, (i + 1) * width, rate


def _facts(own: Diagnosis) -> Iterator[Row]:
    for f in own.facts:
        yield f.name, f.value, f.low, f.high, f.unit, f.source, f.basis, f.detail, f.weight


def _attribution(own: Diagnosis) -> Iterator[Row]:
    split = own.attribution
    if split is not None:
        for name in ("order", "memory", "larger_batch", "total"):
            yield name, getattr(split, name)
        yield from ((f"running.{name}", n) for name, n in split.running.items())


def _reconciliation(result: Result) -> list[Row]:
    own = result.traffic
    return [
        ("rows", "", own.rows),
        ("requests", "", own.requests),
        *(("excluded", reason, count) for reason, count in own.excluded.items()),
    ]


def _segments(result: Result) -> Iterator[Row]:
    for name, segmentation in result.traffic.segments.items():
        for value, own in segmentation.values.items():
            t = own.output_tokens
            figures = (t.mean, t.p50, t.p95, t.max, t.std, t.cv)
            yield name, value, own.requests, own.token_share, *figures


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """A table as CSV: UTF-8, numbers at full precision, text made harmless to spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return buffer.getvalue().encode("utf-8")


def _cell(cell: Cell) -> Cell:
    """Text that a spreadsheet would run as a formula gets a quote in front."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    text = clean(cell, 1000)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text
