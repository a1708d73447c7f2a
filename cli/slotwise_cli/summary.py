"""Results as a person reads them on a console; the words of a verdict are the report's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from slotwise_cli.console import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from slotwise_workflows.report import Words
    from slotwise_workflows.result import (
        Diagnosis,
        Estimate,
        Inspection,
        LengthFigures,
        PolicyFigures,
        Result,
    )
    from slotwise_workflows.simulation import SimulationResult

_MOST_SEGMENTS = 12
_MOST_MODELS = 12
_MOST_NOTES = 3


def verdict_lines(result: Result, language: Literal["ja", "en"]) -> list[str]:
    """The first page of the report in a few lines."""
    from slotwise_workflows.report.document import KeyNumbers
    from slotwise_workflows.report.sections import first_page
    from slotwise_workflows.report.words import load_words

    words = load_words(language)
    cover = first_page.cover(result, words)
    lines = [f"{cover.badge}: {cover.sentence}"]
    lines += [f"  {item.text}" for item in cover.because]
    lines += [f"  {cover.confidence}", *(f"    {why}" for why in cover.confidence_why)]
    if len(result.models) > 1:
        lines += ["", *(_model_line(model, words) for model in result.models[:_MOST_MODELS])]
    leading = first_page.leading(result)
    section = first_page.numbers(leading, words)
    lines.append("")
    if result.models:
        lines.append(f"  {words('models.shown', model=first_page.model_name(words, leading))}")
    if result.verdict in {"already", "not_yours"}:  # what is not the client's to gain
        own = result.verdict == "already"
        lines.append(
            "  " + (section.title if own else words("appendix.title", title=section.title))
        )
    for block in section.blocks:
        if isinstance(block, KeyNumbers):
            for item in block.items:
                after = f" -> {item.after}" if item.after else ""
                lines.append(f"  {item.name}: {item.now}{after} ({item.interval})")
    lines += _account_lines(result.traffic, words)
    if cover.action:
        lines += ["", f"  {cover.action_title}: {cover.action}"]
    return lines


def _account_lines(traffic: Inspection, words: Words) -> list[str]:
    """How many rows are behind the figures, why the others are not, and where to look."""
    left_out = {reason: count for reason, count in traffic.excluded.items() if count}
    lines = []
    if left_out:
        reasons = ", ".join(
            f"{reason} {words.number(count, 'count')}"
            for reason, count in sorted(left_out.items(), key=lambda item: (-item[1], item[0]))
        )
        kept, rows = (words.number(n, "count") for n in (traffic.requests, traffic.rows))
        lines = [f"  {words('data.all_rows')}: {rows}; {words('data.kept')}: {kept} ({reasons})"]
    lines += [f"    {note}" for note in traffic.notes[:_MOST_NOTES]]
    return ["", *lines] if lines else []


def _model_line(model: Diagnosis, words: Words) -> str:
    from slotwise_workflows.report.sections.first_page import model_name

    badge = words(f"verdict.{model.verdict}.badge")
    return f"  {model_name(words, model)}: {badge} ({words.number(model.requests, 'count')})"


def print_policies(policies: Mapping[str, PolicyFigures], *, title: str, requests: int) -> None:
    """One row a policy, times in seconds, on standard output."""
    from slotwise_workflows.result import P95_REQUESTS

    table = _table(title, "policy", "mean", "p95", "max", "makespan", "req/s", "busy", "idle")
    for name, figures in policies.items():
        p95 = f"{figures.latency_s.p95:.2f}" if requests >= P95_REQUESTS else "-"
        table.add_row(
            name,
            f"{figures.latency_s.mean:.2f}",
            p95,
            f"{figures.latency_s.max:.2f}",
            f"{figures.makespan_s:.1f}",
            f"{figures.requests_per_s:.2f}",
            f"{figures.busy_slot_s:.1f}",
            f"{100 * figures.idle_share:.1f} %",
        )
    _print(table)


def print_simulation(result: SimulationResult) -> None:
    """A simulation's policies side by side."""
    replicas = f" x {result.replicas} replicas" if result.replicas > 1 else ""
    title = (
        f"{result.name}: {result.requests:,} requests, {result.slots} slots{replicas}, "
        f"{result.ms_per_token:g} ms a token; latency in s"
    )
    print_policies(result.policies, title=title, requests=result.requests)


def print_inspection(inspection: Inspection) -> None:
    """What a log is: its account, its lengths, what variation alone can gain, its segments."""
    facts = _table("", "", "")
    facts.show_header = False
    facts.add_row("format", one_line(inspection.format))
    facts.add_row("rows", _account(inspection))
    if inspection.arrival is not None:
        facts.add_row("arrivals", f"{inspection.arrival.first} to {inspection.arrival.last}")
    else:
        facts.add_row("arrivals", "not known")
    if inspection.flags:
        facts.add_row("flags", one_line(", ".join(inspection.flags)))
    facts.add_row("output tokens", _lengths(inspection.output_tokens, inspection.requests))
    if inspection.prompt_tokens is not None:
        facts.add_row("prompt tokens", _lengths(inspection.prompt_tokens, inspection.requests))
    for label, mean in (("latency", inspection.latency_s), ("first token", inspection.ttft_s)):
        if mean is not None:
            facts.add_row(label, f"mean {mean.mean:.3g} s, known of {mean.n:,}")
    for note in inspection.notes:
        facts.add_row("note", one_line(note))
    _print(facts)
    _print(_bounds(inspection.gain_bound))
    for column, split in inspection.segments.items():
        table = _table(one_line(column), "value", "requests", "tokens", "mean", "cv", "gain at 8")
        for value, figures in list(split.values.items())[:_MOST_SEGMENTS]:
            cv = figures.output_tokens.cv
            bound = figures.gain_bound.get("8")
            table.add_row(
                one_line(value)[:48],
                f"{figures.requests:,}",
                f"{100 * figures.token_share:.0f} %",
                f"{figures.output_tokens.mean:.1f}",
                "-" if cv is None else f"{cv:.2f}",
                "-" if bound is None else _estimate(bound),
            )
        _print(table)


def _account(inspection: Inspection) -> str:
    terms = [f"{count:,} {reason}" for reason, count in inspection.excluded.items() if count]
    return " + ".join([f"{inspection.rows:,} = {inspection.requests:,} requests", *terms])


def _lengths(figures: LengthFigures, requests: int) -> str:
    from slotwise_workflows.result import P95_REQUESTS

    p95 = f", p95 {figures.p95:.0f}" if requests >= P95_REQUESTS else ""
    spread = "" if figures.cv is None else f", cv {figures.cv:.2f}"
    return f"mean {figures.mean:.1f}, median {figures.p50:g}{p95}, max {figures.max:.0f}{spread}"


def _bounds(bounds: Mapping[str, Estimate]) -> Table:
    table = _table(
        "longest of a batch over the mean: what the variation alone can gain, with 95 % interval",
        "slots",
        "gain",
    )
    for slots, bound in bounds.items():
        table.add_row(slots, _estimate(bound))
    return table


def _estimate(value: Estimate) -> str:
    return f"{value.estimate:.2f} ({value.low:.2f} to {value.high:.2f})"


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else _side(columns), overflow="fold")
    return table


def _side(columns: Sequence[str]) -> Literal["left", "right"]:
    return "left" if len(columns) == 2 else "right"


def _print(table: Table) -> None:
    from rich.console import Console

    # Text of a log must not be read as markup; what a console cannot show becomes "?".
    Console(file=sys.stdout, markup=False, highlight=False, emoji=False).print(table)
