"""What the console shows, in whatever encoding it has."""

import io
import sys

import pytest

from slotwise_cli.console import Console, choose_language, one_line, prepare_streams


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LC_ALL": "ja_JP.UTF-8", "LANG": "en_US.UTF-8"}, "ja"),
        ({"LC_MESSAGES": "ja_JP", "LANG": "C"}, "ja"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "C"}, "en"),
    ],
)
def test_the_language_is_the_locales(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], language: str
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert choose_language(None) == language
    assert choose_language(None, "ja") == "ja"
    assert choose_language("en", "ja") == "en"


def test_a_console_without_a_character_shows_a_question_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="cp932")
    monkeypatch.setattr(sys, "stdout", stream)
    prepare_streams()
    Console().out("ゲイン 2.85× → é")
    stream.flush()
    assert written.getvalue().decode("cp932") == "ゲイン 2.85× → ?\n"


def test_json_on_such_a_console_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="cp932")
    monkeypatch.setattr(sys, "stdout", stream)
    Console().json({"name": "é 模型"})
    stream.flush()
    assert b"\\u00e9" in written.getvalue()


def test_json_is_readable_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    Console().json({"name": "模型"})
    stream.flush()
    assert "模型" in written.getvalue().decode()


def test_long_text_is_cut() -> None:
    assert len(one_line("x" * 10_000)) < 2100


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Console(quiet=True).note("hello")
    assert capsys.readouterr().err == ""


def test_nobody_is_shown_a_bar_who_does_not_watch(capsys: pytest.CaptureFixture[str]) -> None:
    with Console().progress("reading") as advance:
        advance(1, 2)
    assert capsys.readouterr().err == ""
