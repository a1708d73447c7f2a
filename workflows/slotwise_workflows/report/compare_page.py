"""The page of two runs side by side, through the same document and skins as a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slotwise_workflows.files import prepare_directory, write_file
from slotwise_workflows.record import Estimate
from slotwise_workflows.report.compare import Comparison, Kept, Run, Shift, Side
from slotwise_workflows.report.compose import brand_facts, page_words, shown_brand, window
from slotwise_workflows.report.document import (
    Block,
    Branding,
    Bullets,
    Column,
    Cover,
    Document,
    Item,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.numbers import DASH
from slotwise_workflows.report.reading import label_word
from slotwise_workflows.report.render import skin
from slotwise_workflows.report.sections.data import fact_value, known
from slotwise_workflows.report.words import Language, Words, clean, load_words
from slotwise_workflows.run_directory import as_json

COMPARISON = "comparison"


def write_comparison(
    comparison: Comparison,
    directory: Path,
    *,
    language: Language,
    formats: Sequence[str],
    branding: Branding,
) -> list[Path]:
    """Writes ``comparison.json``, and ``comparison.html``, ``.md`` and ``.pdf`` where asked for.

    Args:
        comparison: What `compare_runs` found; nothing else is read.
        directory: Made if it is not there.
        language: Of the words.
        formats: Those of a report; one that a comparison does not have is passed over.
        branding: For whom, by whom.

    Returns:
        The files written.

    Raises:
        InputError: The directory cannot be written.
        MissingExtraError: A PDF was asked for, and what sets it is not installed.
    """
    document = compose_comparison(comparison, load_words(language), branding)
    skins = {
        name: skin(name, document, comparison.after.created)
        for name in dict.fromkeys(formats)
        if name != "summary"
    }
    prepare_directory(directory)
    return [
        write_file(directory / f"{COMPARISON}.json", as_json(comparison)),
        *(write_file(directory / f"{COMPARISON}.{name}", made) for name, made in skins.items()),
    ]


def compose_comparison(own: Comparison, words: Words, branding: Branding) -> Document:
    """Puts a comparison into words.

    Args:
        own: What `compare_runs` found.
        words: The language.
        branding: For whom, by whom.
    """
    facts = (
        *brand_facts(branding, words),
        (words("compared.before"), clean(own.before.name)),
        (words("compared.after"), clean(own.after.name)),
    )
    return Document(
        language=words.language,
        title=words("compared.title"),
        facts=tuple((term, text) for term, text in facts if text),
        cover=_cover(own, words),
        first_page=(_runs(own, words), _figures(own, words)),
        sections=(_facts(own, words), _method(own, words)),
        brand=shown_brand(branding),
        words=page_words(words, words("compared.footer")),
    )


def _cover(own: Comparison, words: Words) -> Cover:
    """The prediction's outcome, where there was one; else how much moved."""
    moved = [shift for shift in own.figures if shift.moved in {"up", "down"}]
    judged = [shift for shift in own.figures if shift.moved != "unknown"]
    if own.prediction is not None:
        sentence = words(f"compared.prediction_{own.prediction.outcome}")
    elif moved:
        sentence = words("compared.some_moved", moved=len(moved), judged=len(judged))
    else:
        sentence = words("compared.none_moved")
    because = [_prediction(own.prediction, words)] if own.prediction else []
    because += [_moved(shift, words) for shift in moved]
    return Cover(badge=words("compared.badge"), sentence=sentence, because=tuple(because))


def _prediction(kept: Kept, words: Words) -> Item:
    text = words(
        "compared.prediction",
        predicted=words.estimate(kept.predicted),
        found=words.estimate(kept.found),
        low=kept.change.low,
        high=kept.change.high,
    )
    return Item(text, "simulated", label_word(words, "simulated"))


def _moved(shift: Shift, words: Words) -> Item:
    text = words(
        f"compared.moved_{shift.moved}",
        figure=_name(shift, words),
        before=words.number(shift.before.value, shift.unit),
        after=words.number(shift.after.value, shift.unit),
    )
    return Item(text, shift.source, label_word(words, shift.source))


def _name(shift: Shift, words: Words) -> str:
    """A figure's name, with the way of batching that it is of."""
    figure = words(f"compared.figure.{shift.name}")
    if not shift.policy:
        return figure
    policy = words(f"compared.policy.{shift.policy}")
    return words("tables.of_policy", figure=figure, policy=policy)


def _runs(own: Comparison, words: Words) -> Section:
    """The two runs: verdict then and now."""
    rows = [
        ("verdict", [words(f"verdict.{run.verdict}.badge") for run in _both(own)]),
        ("confidence", [words(f"confidence.{run.confidence}") for run in _both(own)]),
        ("requests", [words.number(run.requests, "count") for run in _both(own)]),
        ("window", [window(run.window, words) for run in _both(own)]),
        ("slots", [words.number(run.slots, "count") for run in _both(own)]),
        ("model", [clean(run.model or DASH) for run in _both(own)]),
        ("created", [clean(run.created or DASH) for run in _both(own)]),
    ]
    table = Table(
        words("compared.runs"),
        _heads(words, "what", "before", "after"),
        tuple((words(f"compared.{key}"), *cells) for key, cells in rows),
    )
    return Section("runs", words("compared.runs_title"), (table,))


def _both(own: Comparison) -> tuple[Run, Run]:
    return own.before, own.after


def _figures(own: Comparison, words: Words) -> Section:
    """Every figure of both runs."""
    rows = tuple(
        (
            _name(shift, words),
            _side(shift.before, shift, words),
            _side(shift.after, shift, words),
            _change(shift, words),
            words(f"compared.is_{shift.moved}"),
            label_word(words, shift.source),
        )
        for shift in own.figures
    )
    heads = _heads(words, "figure_head", "before", "after", "change", "is", "kind")
    table = Table(words("compared.figures"), heads, rows)
    return Section("figures", words("compared.figures_title"), (table,))


def _side(side: Side, shift: Shift, words: Words) -> str:
    if side.low is None or side.high is None:
        return words.number(side.value, shift.unit)
    return words.estimate(Estimate(estimate=side.value, low=side.low, high=side.high), shift.unit)


def _change(shift: Shift, words: Words) -> str:
    if shift.change is None:
        return DASH
    return words.estimate(shift.change, "points" if shift.unit == "percent" else shift.unit)


def _facts(own: Comparison, words: Words) -> Section:
    """What was known differently of the server: a figure may have moved for that alone."""
    if not own.facts:
        block: Block = Paragraph(words("compared.facts_same"))
        return Section("facts", words("compared.facts_title"), (block,))
    rows = tuple(
        (
            known(words, "fact", shift.name),
            *(
                words(
                    "compared.fact",
                    value=fact_value(fact, words),
                    source=words(f"label.{fact.source}"),
                )
                if fact is not None
                else DASH
                for fact in (shift.before, shift.after)
            ),
        )
        for shift in own.facts
    )
    table = Table(words("compared.facts"), _heads(words, "what", "before", "after"), rows)
    return Section(
        "facts", words("compared.facts_title"), (Paragraph(words("compared.facts_lead")), table)
    )


def _method(own: Comparison, words: Words) -> Section:
    judged = sum(shift.change is not None for shift in own.figures)
    notes = [
        words("compared.method_interval"),
        words("compared.method_chance", judged=judged),
        words("compared.method_length"),
    ]
    if own.same_log:
        notes.append(words("compared.method_same_log"))
    if own.prediction is None:
        notes.append(words("compared.method_no_prediction"))
    return Section(
        "method", words("compared.method_title"), (Bullets(tuple(Item(note) for note in notes)),)
    )


def _heads(words: Words, *keys: str) -> tuple[Column, ...]:
    return tuple(Column(words(f"compared.{key}"), numeric=False) for key in keys)
