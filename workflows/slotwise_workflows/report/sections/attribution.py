"""Where the gain comes from: the order of filling, kept apart from memory for more requests."""

from __future__ import annotations

from slotwise_sim.attribution import Attribution
from slotwise_workflows.report import reading, svg
from slotwise_workflows.report.charts.factors import product
from slotwise_workflows.report.document import Block, Column, Figure, Paragraph, Section, Table
from slotwise_workflows.report.words import Words
from slotwise_workflows.result import Diagnosis


def attribution(diagnosis: Diagnosis, words: Words) -> Section | None:
    """The split of the gain; None at a fixed time per token, where all of it is order."""
    split = diagnosis.attribution
    if split is None:
        return None
    tag = words("label.simulated")
    told = _numbers(split)
    padding = reading.fact(diagnosis, "padding")
    if split.memory is None or diagnosis.memory is None:
        blocks: list[Block] = [Paragraph(words("attribution.lead_order", **told), "simulated", tag)]
        cost = diagnosis.cost
        if cost is not None and cost.kv_tokens is not None:
            blocks.append(Paragraph(words(f"attribution.held_{cost.kind}", tokens=cost.kv_tokens)))
    else:
        reserved = _reserved(diagnosis)
        blocks = [
            Paragraph(words(f"attribution.lead{_less(split)}", **told), "simulated", tag),
            *([Paragraph(words("attribution.reserved"))] if reserved else []),
            *_of_the_verdict(diagnosis, words),
            _figure(split, words, reserved=reserved),
            Paragraph(words("attribution.bought", tokens=diagnosis.memory.kv_tokens)),
        ]
    if padding is not None and padding.value == "yes":
        blocks.append(Paragraph(words("attribution.padding")))
    blocks.append(Paragraph(words("attribution.kernels")))
    return Section("attribution", words("attribution.title"), tuple(blocks))


def _of_the_verdict(diagnosis: Diagnosis, words: Words) -> list[Block]:
    """The verdict's own gain, which memory limits where it is told and which adds no slots."""
    gain = diagnosis.gain
    if gain is None:
        return []
    text = words("attribution.verdict", gain=gain.estimate, low=gain.low, high=gain.high)
    return [Paragraph(text, "simulated", words("label.simulated"))]


def one_line(diagnosis: Diagnosis, split: Attribution, words: Words) -> str:
    """The split as a console shows it."""
    key = "line_order" if split.memory is None else "line"
    if _reserved(diagnosis):
        key += "_reserved"
    return words(f"attribution.{key}", **_numbers(split))


def _reserved(diagnosis: Diagnosis) -> bool:
    """Whether the memory told is not paged, so that the split tells of another memory."""
    return diagnosis.memory is not None and diagnosis.memory.reserve == "max_tokens"


def _numbers(split: Attribution) -> dict[str, float | None]:
    """What its sentences name."""
    return {
        "order": split.order,
        "memory": split.memory,
        "larger_batch": split.larger_batch,
        "total": split.total,
        "now": split.running["continuous"],
        "running": split.running.get("paged"),
    }


def _less(split: Attribution) -> str:
    """Where memory holds fewer requests than there are slots, other sentences say so."""
    return "_less" if split.memory is not None and split.memory < 1 else ""


def _figure(split: Attribution, words: Words, *, reserved: bool) -> Figure:
    told = _numbers(split)
    keys = {name: name for name in ("order", "memory", "larger_batch", "total")}
    if reserved:
        keys["memory"] = "memory_reserved"
    steps = [(words(f"attribution.{k}", **told), told[name] or 1.0) for name, k in keys.items()]
    title = words(f"attribution.title_figure{_less(split)}", **told)
    description = words("attribution.description", **told)
    *bars, whole = ((words("attribution.bar", name=n, factor=f), f) for n, f in steps)
    spec = product(bars, whole, {"axis": words("attribution.axis")})
    heads = (
        Column(words("attribution.column"), numeric=False),
        Column(words("attribution.factor")),
    )
    return Figure(
        id="product",
        title=title,
        description=description,
        svg=svg.draw(spec, name="product", title=title, description=description),
        table=Table(
            words("attribution.table"),
            heads,
            tuple((name, words.number(factor, "times")) for name, factor in steps),
        ),
        label="simulated",
        tag=words("label.simulated"),
        note=words("attribution.note"),
    )
