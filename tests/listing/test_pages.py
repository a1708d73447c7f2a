"""The product pages: both languages, every number with a source, no boast."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
LISTING = REPOSITORY / "listing"
LANGUAGES = ("ja", "en")
FIGURE = re.compile(r"<!-- figure: (\w+) -->([\d.,]+)")
FIGURES = yaml.safe_load((LISTING / "figures.yaml").read_text(encoding="utf-8"))


def _page(language: str, name: str = "page") -> str:
    return (LISTING / language / f"{name}.md").read_text(encoding="utf-8")


def _at(document: Any, pointer: str) -> Any:
    for key in pointer.removeprefix("/").split("/"):
        document = document[key]
    return document


@pytest.fixture(scope="module")
def demo() -> dict[str, Any]:
    """What `slotwise demo --json` prints."""
    app = pytest.importorskip("slotwise_cli.app")
    from typer.testing import CliRunner

    done = CliRunner().invoke(app.app, ["demo", "--json"])
    assert done.exit_code == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def test_both_languages_have_the_same_pages() -> None:
    pages = [{path.name for path in (LISTING / language).iterdir()} for language in LANGUAGES]
    assert pages[0] == pages[1]


def test_both_languages_show_the_same_figures() -> None:
    japanese, english = (FIGURE.findall(_page(language)) for language in LANGUAGES)
    assert sorted(japanese) == sorted(english)
    assert {name for name, _ in english} == FIGURES.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_has_a_source(language: str) -> None:
    rest = FIGURE.sub("", _page(language))
    assert re.findall(r"\d+", rest) == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_what_its_command_prints(demo: dict[str, Any], name: str) -> None:
    source = FIGURES[name]
    assert source["command"] == "slotwise demo --json"
    value = _at(demo, source["pointer"]) * source.get("scale", 1)
    shown = f"{value:,.{source['digits']}f}"
    assert dict(FIGURE.findall(_page("en")))[name] == shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_have_the_same_build(language: str) -> None:
    """Headings, lists and code stand in the same order in both."""

    def build(text: str) -> list[str]:
        return [line.split(" ", 1)[0] for line in text.splitlines() if line[:1] in "#-`"]

    assert build(_page(language)) == build(_page("en"))


@pytest.mark.parametrize(
    "path", sorted(LISTING.glob("*/*.md")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_nothing_remote_nothing_boastful(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"https?:|!\[|<img|<script", text) == []
    boasts = (
        r"\b(best|fastest|leading|revolutionary|guaranteed|official|world)\b"
        r"|最高|最速|業界|世界|公式|必ず効"
    )
    assert re.findall(boasts, text, re.IGNORECASE) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_local_links_lead_somewhere(language: str) -> None:
    for path in (LISTING / language).glob("*.md"):
        for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).is_file(), target


def test_sellers_facts_are_placeholders() -> None:
    for language in LANGUAGES:
        assert "<<SELLER:price>>" in _page(language)
        assert "<<SELLER:support_email>>" in _page(language, "support")
        assert "<<SELLER:privacy_policy>>" in _page(language, "privacy")
