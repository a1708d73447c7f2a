"""Results as a person reads them on a console; the words of a verdict are the report's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Literal

import typer

from slotwise_cli.console import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from slotwise_sim.attribution import Attribution
    from slotwise_sim.costs import PerToken, Piece, Step
    from slotwise_sim.memory import Memory
    from slotwise_workflows.costs import CostRecord
    from slotwise_workflows.record import Estimate
    from slotwise_workflows.report import Words
    from slotwise_workflows.result import (
        Diagnosis,
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
    from slotwise_workflows.report import reading
    from slotwise_workflows.report.document import KeyNumbers
    from slotwise_workflows.report.sections import attribution, first_page
    from slotwise_workflows.report.words import load_words

    words = load_words(language)
    cover = first_page.cover(result, words)
    lines = [f"{cover.badge}: {cover.sentence}"]
    lines += [f"  {item.text}" for item in cover.because]
    lines += [f"  {cover.confidence}", *(f"    {why}" for why in cover.confidence_why)]
    if len(result.models) > 1:
        lines += ["", *(_model_line(model, words) for model in result.models[:_MOST_MODELS])]
    leading = reading.leading(result)
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
    if leading.attribution is not None:
        lines.append(f"  {attribution.one_line(leading, leading.attribution, words)}")
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
    from slotwise_workflows.sample_size import P95_REQUESTS

    table = _table(title, "policy", "mean", "p95", "max", "makespan", "req/s", "busy", "idle")
    for name, figures in policies.items():
        table.add_row(
            name,
            _seconds(figures.latency_s.mean, 2),
            _seconds(figures.latency_s.p95, 2) if requests >= P95_REQUESTS else "-",
            _seconds(figures.latency_s.max, 2),
            _seconds(figures.makespan_s, 1),
            f"{figures.requests_per_s:.2f}",
            _seconds(figures.busy_slot_s, 1),
            f"{100 * figures.idle_share:.1f} %",
        )
    _print(table)


def _seconds(value: float, digits: int) -> str:
    """Whole seconds from ten thousand on, so that the table keeps to its columns."""
    return f"{value:.0f}" if value >= 10_000 else f"{value:.{digits}f}"


def print_simulation(result: SimulationResult) -> None:
    """A simulation's policies side by side, what they cost, and where the gain comes from."""
    replicas = f" x {result.replicas} replicas, {result.balancer}" if result.replicas > 1 else ""
    users = "" if result.users is None else f", {result.users:,} users"
    pace = "" if result.ms_per_token is None else f", {result.ms_per_token:g} ms a token"
    server = f"{result.slots} slots{replicas}{users}{pace}"
    title = f"{result.name}: {result.requests:,} requests, {server}; latency in s"
    print_policies(result.policies, title=title, requests=result.requests)
    for line in setting_lines(result.cost, result.memory):
        typer.echo(one_line(line))
    for name, figures in result.policies.items():
        if figures.preemptions:
            typer.echo(f"  {name}: {figures.preemptions:,} times a request had to give it back")
    if result.attribution is not None:
        typer.echo(_split(result.attribution, list(result.policies)))


def setting_lines(cost: CostRecord, memory: Memory | None) -> list[str]:
    """What iterations cost, who says so and how good that is, and the memory; none per token."""
    if cost.kind == "ms_per_token":
        return []
    lines = [f"cost: {terms(cost.values)}"]
    if cost.name:
        lines.append(f"  {cost.kind} {cost.name}, {cost.quality}; source: {cost.source}")
    else:
        lines.append(f"  {cost.source}, {cost.quality}")
    if memory is None:
        return [*lines, "memory: limits nothing"]
    how = "prompt + max_tokens reserved at once"
    if memory.reserve == "paged":
        how = f"paged in blocks of {memory.block_tokens}"
    return [*lines, f"memory: {memory.kv_tokens:,} tokens a server, {how}"]


def terms(cost: PerToken | Step | Piece) -> str:
    """The terms of a cost as a workload file takes them; what is 0 or absent is left out."""
    values = ((field.name, getattr(cost, field.name)) for field in fields(cost))
    told = [
        f"{name}: [{', '.join(terms(piece) for piece in value)}]"
        if name == "pieces"
        else f"{name}: {value:g}"
        for name, value in values
        if value
    ]
    return f"{{{', '.join(told)}}}"


def _split(split: Attribution, policies: Sequence[str]) -> str:
    """The gain as a product of what it comes from."""
    batch = next(name for name in policies if not name.startswith("continuous"))
    gain = f"continuous over {batch}, all requests waiting: {split.total:.2f} times"
    if split.memory is None or split.larger_batch is None:
        return (
            f"{gain}, all of it from refilling slots; more slots from memory are not counted, since"
            " server.memory is not given"
        )
    now, then = split.running["continuous"], split.running["paged"]
    return (
        f"{gain} = {split.order:.2f} (slots are refilled) x {split.memory:.2f} (paged memory:"
        f" {then:.1f} run at once, not {now:.1f}) x {split.larger_batch:.2f} (a larger batch steps"
        " slower)"
    )


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
    from slotwise_workflows.sample_size import P95_REQUESTS

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
