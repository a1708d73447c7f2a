"""A consultant's notes: a subset of Markdown read into the blocks that every skin renders.

Paragraphs, headings and lists stay what they are; bold, emphasis and code become plain text, and a
link its text with its address. HTML is text. What a report cannot show is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from slotwise_workflows.report.document import Block, Bullets, Heading, Item, Paragraph
from slotwise_workflows.report.words import clean

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_REFUSED = {
    "table": "a table",
    "fence": "a block of code",
    "blockquote": "a quotation",
    "hr": "a line across",
    "image": "a picture",
    "bullet_list": "a list inside a list",
    "ordered_list": "a list inside a list",
}
# Japanese is written without spaces, so a line's end between two of its characters is none.
_WIDE = "\u3000-\u30ff\u3400-\u9fff\uff00-\uffef"
_END_WITHIN_JAPANESE = re.compile(rf"(?<=[{_WIDE}])\n(?=[{_WIDE}])")


def read_notes(markdown: str) -> tuple[Block, ...]:
    """Reads notes.

    Args:
        markdown: CommonMark; its length is the caller's to bound.

    Returns:
        Its blocks, with unescaped text.

    Raises:
        ValueError: It holds something that a report cannot show; says what, and on which line.
    """
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("code")
    return tuple(_block(node) for node in SyntaxTreeNode(reader.parse(markdown)).children)


def _block(node: SyntaxTreeNode) -> Block:
    if node.type == "heading":
        return Heading(_line(node))
    if node.type == "paragraph":
        return Paragraph(_line(node))
    if node.type in {"bullet_list", "ordered_list"}:
        items = tuple(Item(_item(own)) for own in node.children)
        return Bullets(items, ordered=node.type == "ordered_list")
    raise _refused(node)


def _item(node: SyntaxTreeNode) -> str:
    for own in node.children:
        if own.type not in {"paragraph", "heading"}:
            raise _refused(own)
    return " ".join(_line(own) for own in node.children)


def _line(node: SyntaxTreeNode) -> str:
    """The text of a paragraph or a heading, in one line."""
    text = "".join(_plain(node)).strip()
    text = _END_WITHIN_JAPANESE.sub("", text).replace("\n", " ")
    return clean(text, len(text))


def _plain(node: SyntaxTreeNode) -> Iterator[str]:
    for own in node.children:
        if own.type == "image":
            raise _refused(own, within=node)
        if own.type in {"softbreak", "hardbreak"}:
            yield "\n"
        elif own.children:
            yield from _plain(own)
        else:
            yield own.content
        if own.type == "link":
            address = str(own.attrs["href"])
            yield "" if address == "".join(_plain(own)) else f" ({address})"


def _refused(node: SyntaxTreeNode, within: SyntaxTreeNode | None = None) -> ValueError:
    lines = node.map
    while lines is None and within is not None:
        lines, within = within.map, within.parent
    place = f" on its line {lines[0] + 1}" if lines else ""
    return ValueError(
        f"holds {_REFUSED[node.type]}{place}, which a report does not show: write paragraphs, "
        "headings, lists, bold and links"
    )
