"""The page of a sweep: what came out of it, in words and pictures, and its pictures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slotwise_workflows.files import prepare_directory, write_file
from slotwise_workflows.report import sweep_reading as found
from slotwise_workflows.report.compose import page_words
from slotwise_workflows.report.document import (
    Block,
    Cover,
    Definitions,
    Document,
    Figure,
    Item,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.render import as_html, as_markdown
from slotwise_workflows.report.sections import sweep as pictures
from slotwise_workflows.report.sections import sweep_plane
from slotwise_workflows.report.sections import sweep_tables as tables
from slotwise_workflows.report.svg import standalone
from slotwise_workflows.report.words import Language, Words, clean, load_words
from slotwise_workflows.sweep.record import SweepFigures, SweepLimit, SweepReport

_TERMS = ("slot", "batch_at_once", "continuous", "capacity", "utilisation", "latency", "p95", "cv")


def write_sweep_page(report: SweepReport, directory: Path, *, language: Language) -> list[Path]:
    """Writes ``sweep.html``, ``sweep.md`` and ``pictures/*.svg``; each whole or not at all.

    Args:
        report: What a sweep found; nothing else is read.
        directory: Made if it is not there.
        language: Of the words.

    Returns:
        The files written; the same report gives the same bytes.

    Raises:
        InputError: The directory cannot be written.
    """
    document = compose_sweep(report, load_words(language))
    prepare_directory(directory)
    written = [
        write_file(directory / "sweep.html", as_html(document).encode()),
        write_file(directory / "sweep.md", as_markdown(document).encode()),
    ]
    figures = [
        block
        for section in (*document.first_page, *document.sections)
        for block in section.blocks
        if isinstance(block, Figure)
    ]
    if figures:
        folder = prepare_directory(directory / "pictures")
        written += [
            write_file(folder / f"{own.id}.svg", standalone(own.svg).encode()) for own in figures
        ]
    return written


def compose_sweep(report: SweepReport, words: Words) -> Document:
    """Puts a sweep into words and pictures.

    Args:
        report: What a sweep found.
        words: The language.
    """
    sections = (
        _region(report, words),
        _present(
            "gain",
            words,
            [pictures.gain_by_variation(report, words), pictures.gain_by_slots(report, words)],
        ),
        _present("times", words, _times(report, words)),
        _present(
            "tables",
            words,
            [tables.all_limits_table(report, words), tables.rows_table(report, words)],
        ),
        Section("run", words("sweep.title_run"), tuple(tables.what_was_run(report, words))),
        _glossary(words),
    )
    return Document(
        language=words.language,
        title=words("sweep.title"),
        facts=_facts(report, words),
        cover=_cover(report, words),
        first_page=_first_page(report, words),
        sections=tuple(own for own in sections if own is not None),
        words=page_words(words, words("sweep.footer")),
    )


def _facts(report: SweepReport, words: Words) -> tuple[tuple[str, str], ...]:
    facts = (
        ("name", clean(report.name)),
        ("traffic", words.number(report.here.requests, "count")),
        ("rate", words.number(report.here.rate_per_s, "rate")),
        ("cv", words.number(report.here.length_cv, "number")),
        ("objectives", tables.objectives(report, words)),
    )
    return tuple((words(f"sweep.run_{key}"), value) for key, value in facts)


def _cover(report: SweepReport, words: Words) -> Cover:
    """The answer, for the server of today's slots or of the fewest; then what it rests on."""
    kinds = found.kinds(report)
    if not kinds:
        return Cover(words("sweep.badge_nothing"), words("sweep.nothing"), ())
    server, policy = kinds[0], found.challenger(report)
    standing = found.standing(report, server, policy)
    place = standing.removesuffix("_waiting")
    badge = "waiting" if standing == "inside_waiting" else place
    items = (
        _gain(report, policy, words),
        _variation(report, found.own_limit(report, server, policy), words),
        _per_policy(report, server, "capacity", words),
        _per_policy(report, server, "servers", words),
        _which(report, server, words),
    )
    tag = words("label.simulated")
    return Cover(
        badge=words(f"sweep.badge_{badge}"),
        sentence=found.standing_sentence(report, server, words),
        because=tuple(Item(text, "simulated", tag) for text in items if text),
    )


def _which(report: SweepReport, server: found.Server, words: Words) -> str:
    """Why the answer is of this server, where others with more or fewer slots were swept."""
    slots = report.here.slots
    if slots == server.slots:
        several = len(found.alike(report, server)) > 1
        return words("sweep.which_own", slots=slots) if several else ""
    key = "sweep.which_unknown" if slots is None else "sweep.which_fewest"
    return words(key, slots=server.slots, own=slots)


def _gain(report: SweepReport, policy: str | None, words: Words) -> str:
    """The gain at the fewest and at the most slots."""
    if policy is None:
        return ""
    gains = found.gains(report, policy)
    told = [
        (own, gains[own, None])
        for own in found.alike(report, found.kinds(report)[0])
        if (own, None) in gains
    ]
    if not told:
        return ""
    (few, first), (many, last) = told[0], told[-1]
    return words(
        "sweep.gain" if few != many else "sweep.gain_one",
        policy=found.quoted(words)(policy),
        few=few.slots,
        first=found.shown(first, "times", words),
        many=many.slots,
        last=found.shown(last, "times", words),
    )


def _variation(report: SweepReport, own: SweepLimit | None, words: Words) -> str:
    """The variation from which capacity is gained, beside the traffic's own."""
    here, adopt = report.here.length_cv, report.thresholds["gain_adopt"]
    if own is None or here is None:
        return ""
    value = own.break_even_cv
    key = "none" if value is None else "any" if value.high == 0 else "from"
    from_cv = found.cv_from(value, words)
    return words(f"sweep.variation_{key}", adopt=adopt, here=here, from_cv=from_cv)


def _per_policy(report: SweepFigures, server: found.Server, what: str, words: Words) -> str:
    """The capacity or the number of servers of every policy on one server."""
    parts = []
    for policy in found.policies(report):
        own = found.own_limit(report, server, policy)
        if own is None or own.capacity_per_s is None:
            continue
        if what == "capacity":
            value = found.capacity(own.capacity_per_s, "per_second", words)
        else:
            value = found.whole(own.servers_needed, words)
        parts.append(words("sweep.of_policy", policy=found.in_file(policy), value=value))
    if not parts:
        return ""
    key = f"sweep.{what}" if report.objectives else f"sweep.{what}_no_objectives"
    told = words("format.list_separator").join(parts)
    return words(key, server=found.server_name(server, report, words), parts=told)


def _first_page(report: SweepReport, words: Words) -> tuple[Section, ...]:
    """The limits at the traffic's own lengths, and why some points are missing."""
    table = tables.limits_table(report, words)
    blocks: list[Block] = [] if table is None else [table]
    if report.failures:
        text = words("sweep.failed", failed=len(report.failures), points=report.points)
        blocks.insert(0, Paragraph(text))
    return (Section("limits", words("sweep.title_limits"), tuple(blocks)),) if blocks else ()


def _region(report: SweepReport, words: Words) -> Section:
    """The planes; where there is none to draw, why."""
    title, drawn = words("sweep.title_region"), sweep_plane.planes(report, words)
    policy = found.challenger(report)
    if drawn and policy is not None:
        named = found.quoted(words)
        lead = words("plane.lead", policy=named(policy), baseline=named(report.baseline))
        return Section("region", title, (Paragraph(lead), *drawn))
    return Section("region", title, (Paragraph(words("plane.nothing")),))


def _times(report: SweepReport, words: Words) -> list[Figure | Table | None]:
    return [
        pictures.by_load(report, words, "mean"),
        pictures.by_load(report, words, "p95"),
        pictures.by_users(report, words, "mean"),
        pictures.by_users(report, words, "requests"),
        tables.offline_table(report, words),
    ]


def _present(name: str, words: Words, blocks: Sequence[Block | None]) -> Section | None:
    shown = tuple(block for block in blocks if block is not None)
    return Section(name, words(f"sweep.title_{name}"), shown) if shown else None


def _glossary(words: Words) -> Section:
    items = tuple((words(f"glossary.{t}.term"), words(f"glossary.{t}.text")) for t in _TERMS)
    own = (words("sweep.interval_term"), words("sweep.interval_text"))
    return Section("glossary", words("glossary.title"), (Definitions((*items, own)),))
