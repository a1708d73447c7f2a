"""What a report consists of: blocks of plain text and data, without any markup.

Every skin (HTML, Markdown) renders the same `Document`, so all of them say the same numbers. Text
here is unescaped; escaping belongs to the skin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from slotwise_workflows.report.words import Language
from slotwise_workflows.result import Verdict

Label = Literal["measured", "simulated", "given", "estimated", "assumed", ""]


@dataclass(frozen=True, slots=True)
class OwnAction:
    """An action of the consultant's: what, by whom, until which day (ISO 8601)."""

    what: str
    owner: str = ""
    due: str = ""


ACCENT = "#0b6b7d"


@dataclass(frozen=True, slots=True)
class Branding:
    """Who hands the report to whom, and what they add to it; all of it may be left out.

    Attributes:
        client: Whose report it is.
        prepared_by: Who hands it over.
        date: As it is to stand on the report.
        document_number: As the one who hands it over files it.
        confidential: A line that says who may read it, on each page.
        accent: A colour, ``#rrggbb``, that can be read on white.
        logo: Of the one who hands it over, as `branding.read_logo` gives it.
        notes: Their own words, in the Markdown that `notes.read_notes` takes.
        actions: What they have agreed on.
    """

    client: str = ""
    prepared_by: str = ""
    date: str = ""
    document_number: str = ""
    confidential: str = ""
    accent: str = ACCENT
    logo: str = ""
    notes: str = ""
    actions: tuple[OwnAction, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list, with the kind of number it rests on."""

    text: str
    label: Label = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `label` and `tag` as in `Item`."""

    text: str
    label: Label = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Callout:
    """Something the reader must not overlook."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command to copy."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; `ordered` where the order matters."""

    items: tuple[Item, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Definitions:
    """Terms and what they mean."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; numbers are set flush right."""

    title: str
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of each row is its heading.

    Attributes:
        caption: What it shows.
        columns: One for each cell of a row.
        rows: Cells as they are printed.
        label: The kind of its numbers.
        tag: The label's word.
        note: What a reader of it must know.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    label: Label = ""
    tag: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """One of the three numbers of page one.

    Attributes:
        name: What it is.
        now: Today's value, or the only one.
        after: The value under continuous batching; empty where there is only one.
        interval: The 95 % interval in words, or why there is none.
        label: The kind of number.
        tag: The label's word.
    """

    name: str
    now: str
    after: str
    interval: str
    label: Label
    tag: str


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """The three numbers, and the words above the two values of each."""

    now: str
    after: str
    items: tuple[KeyNumber, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture whose title states what it shows.

    Attributes:
        id: Unique in the document, a plain identifier.
        title: The finding in one sentence.
        description: The same for those who cannot see it, with its numbers.
        svg: The picture.
        table: Its numbers.
        label: The kind of number.
        tag: The label's word.
        note: What a reader of it must know.
    """

    id: str
    title: str
    description: str
    svg: str
    table: Table
    label: Label
    tag: str
    note: str = ""


Block = Heading | Paragraph | Callout | Code | Bullets | Definitions | Table | KeyNumbers | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered part of the report."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Cover:
    """The answer: the first thing on page one; of a sweep, no verdict and what follows from it."""

    badge: str
    sentence: str
    because: tuple[Item, ...]
    verdict: Verdict | None = None
    confidence: str = ""
    confidence_why: tuple[str, ...] = ()
    action_title: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report, in reading order.

    Attributes:
        language: Of its words.
        title: What it answers.
        facts: Client, author, log, window: term and text.
        cover: The answer.
        first_page: What stands on page one below the answer.
        sections: The rest.
        brand: What the skins take from it: accent, logo, the line on confidentiality.
        words: Fixed words of the skin: contents, show_numbers, footer, ....
    """

    language: Language
    title: str
    facts: tuple[tuple[str, str], ...]
    cover: Cover
    first_page: tuple[Section, ...]
    sections: tuple[Section, ...]
    brand: Branding = field(default_factory=Branding)
    words: dict[str, str] = field(default_factory=dict)
