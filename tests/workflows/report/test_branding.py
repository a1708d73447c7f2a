"""Names, colour and logo: what is taken, what is made of it, what is refused."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from slotwise_workflows.errors import InputError
from slotwise_workflows.report import render_report
from slotwise_workflows.report.branding import (
    BRAND_TEXTS,
    branding_of,
    logo_bytes,
    read_logo,
    readable_on_white,
)
from slotwise_workflows.report.document import ACCENT
from slotwise_workflows.report.words import LANGUAGES, Language
from slotwise_workflows.result import Result

CIRCLE = '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">{}</svg>'
DRAWN = '<circle cx="12" cy="12" r="12" fill="red"/>'
COLOURS = st.integers(0, 0xFFFFFF).map("#{:06x}".format)


def picture(logo: str) -> Image.Image:
    return Image.open(io.BytesIO(logo_bytes(logo)))


# --- the colour ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    # contrasts to white as WebAIM's checker states them
    ("colour", "taken"),
    [("#767676", True), ("#777777", False), ("#FF0000", False), ("#0000FF", True), (ACCENT, True)],
)
def test_a_colour_must_be_readable_on_white(colour: str, taken: bool) -> None:
    if taken:
        assert readable_on_white(colour) == colour.lower()
    else:
        with pytest.raises(ValueError, match=r"contrast of (4.48|4.00) to white"):
            readable_on_white(colour)


@given(colour=COLOURS)
def test_the_darker_colour_that_is_named_is_taken(colour: str) -> None:
    try:
        taken = readable_on_white(colour)
    except ValueError as error:
        taken = str(error).rsplit(" ", 1)[1]
    assert readable_on_white(taken) == taken


@pytest.mark.parametrize("said", ["red", "#12345", "#1234567", "#00000g", "#000000;}*{", ""])
def test_what_is_no_colour_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match="must be a colour such as #0b6b7d"):
        readable_on_white(said)


# --- the logo ------------------------------------------------------------------------------------


def test_a_png_loses_its_margin_its_size_and_what_else_it_holds(tmp_path: Path) -> None:
    made = Image.new("RGBA", (3000, 2000))
    made.paste((200, 0, 0, 255), (500, 500, 2500, 1500))
    made.save(tmp_path / "logo.png", exif=b"Exif\0\0secret", dpi=(72, 72))
    assert b"secret" in (tmp_path / "logo.png").read_bytes()
    logo = read_logo("logo.png", tmp_path)
    assert picture(logo).size == (720, 360)
    assert b"secret" not in logo_bytes(logo)
    assert read_logo(logo, tmp_path / "elsewhere") == logo  # kept with a run, read from anywhere


def test_an_svg_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_text(CIRCLE.format(f"<script>alert(1)</script>{DRAWN}"))
    shown = picture(read_logo("logo.svg", tmp_path)).convert("RGBA")
    assert shown.size == (360, 360)
    assert shown.getpixel((180, 180)) == (255, 0, 0, 255)
    assert shown.getpixel((1, 1)) == (0, 0, 0, 0)


def test_an_svg_of_any_size_is_drawn_at_one(tmp_path: Path) -> None:
    vast = (
        CIRCLE.format(DRAWN)
        .replace('"24"', '"1000000"')
        .replace("<svg", '<svg viewBox="0 0 24 24"')
    )
    (tmp_path / "logo.svg").write_text(vast)
    assert picture(read_logo("logo.svg", tmp_path)).size == (360, 360)


BOMB = (
    "<!DOCTYPE s ["
    + "".join(
        f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' if i else '<!ENTITY e1 "ha">' for i in range(9)
    )
    + f"]>{CIRCLE.format('<g>&e9;</g>')}"
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither PNG nor SVG"),
        (b"GIF89a", "neither PNG nor SVG"),
        (b"\x89PNG\r\n\x1a\n", "damaged PNG"),
        (CIRCLE.format("").encode(), "nothing is drawn"),
        (b"<svg", "nothing is drawn"),
        (BOMB.encode(), "nothing is drawn"),
        (CIRCLE.format("<text>A</text>").encode(), "<text>"),
        (CIRCLE.format('<image href="/etc/logo.png"/>').encode(), "<image>"),
        (CIRCLE.format("<foreignObject/>").encode(), "<foreignObject>"),
        (b"x" * 5_000_001, "more than 5,000,000 bytes"),
    ],
)
def test_what_is_no_logo_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "logo").write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_logo("logo", tmp_path)
    assert caught.value.where == str(tmp_path / "logo")


def test_a_cut_png_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(whole, "PNG")
    (tmp_path / "logo.png").write_bytes(whole.getvalue()[:-200])
    with pytest.raises(InputError, match="damaged PNG"):
        read_logo("logo.png", tmp_path)


@pytest.mark.parametrize("side", [3_000, 5_000, 20_000])
def test_a_png_of_too_many_pixels_is_refused_before_it_is_read(side: int, tmp_path: Path) -> None:
    small = io.BytesIO()
    Image.new("1", (1, 1)).save(small, "PNG")
    claim = struct.pack(">II", 20_000, side)
    (tmp_path / "logo.png").write_bytes(small.getvalue()[:16] + claim + small.getvalue()[24:])
    with pytest.raises(InputError, match="more than 50,000,000 pixels"):
        read_logo("logo.png", tmp_path)


def test_a_logo_that_would_fill_the_report_is_refused(tmp_path: Path) -> None:
    Image.merge("RGB", [Image.effect_noise((1600, 360), 90)] * 3).save(tmp_path / "logo.png")
    with pytest.raises(InputError, match="250,000 at most"):
        read_logo("logo.png", tmp_path)


def test_a_logo_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_logo("none.png", tmp_path)
    with pytest.raises(InputError, match="the logo that the run keeps is damaged"):
        read_logo("data:image/png;base64,§", tmp_path)


# --- on the page ---------------------------------------------------------------------------------


def test_all_of_it_stands_on_every_page(make_result: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_text(CIRCLE.format(DRAWN))
    texts = {name: f"own {name}" for name in BRAND_TEXTS}
    brand = branding_of({**texts, "accent": "#A00000", "logo": "logo.svg", "x": 1}, tmp_path)
    report = render_report(make_result("adopt"), language="en", branding=brand)
    for page in (report.html, report.summary):
        assert "--accent: #a00000;" in page
        assert f'src="{brand.logo}"' in page
    for page in (report.html, report.markdown.replace("\\", ""), report.summary):
        assert all(text in page for text in texts.values())


def test_without_any_of_it_nothing_of_it_is_shown(make_result: Callable[..., Result]) -> None:
    page = render_report(make_result("adopt"), language="en").html
    assert "<img" not in page
    assert 'class="confidential"' not in page
    assert f"--accent: {ACCENT};" in page


class _Skeleton(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add((tag, tuple(name for name, _ in attrs)))


def skeleton(page: str) -> set[tuple[str, tuple[str, ...]]]:
    reader = _Skeleton()
    reader.feed(page)
    reader.close()
    return reader.seen


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</style><script>alert(1)</script>",
        "{{ 7 * 7 }}{% raw %}",
        "\u202egnp\u2066",
        "[a](javascript:alert(1)) ![b](http://evil.example/c)",
        "x" * 100_000,
    ],
)
def test_hostile_branding_adds_no_element(
    make_result: Callable[..., Result], text: str, language: Language
) -> None:
    result = make_result("no_gain")
    told = branding_of(dict.fromkeys(BRAND_TEXTS, text), Path())
    plain = branding_of(dict.fromkeys(BRAND_TEXTS, "plain"), Path())
    page = render_report(result, language=language, branding=told)
    known = render_report(result, language=language, branding=plain)
    assert skeleton(page.html) == skeleton(known.html)
    assert skeleton(page.summary) == skeleton(known.summary)
    assert not {"\u202e", "\u2066"} & set(page.html + page.markdown + page.summary)
    assert len(page.html) < len(known.html) + 2000
