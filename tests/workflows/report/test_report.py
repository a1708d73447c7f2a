from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, Literal

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.report import Branding, load_words, render_report
from slotwise_workflows.report.compose import compose
from slotwise_workflows.report.document import (
    Callout,
    Code,
    Document,
    Figure,
    KeyNumbers,
    Table,
)
from slotwise_workflows.report.render import as_html, as_markdown, markdown_text
from slotwise_workflows.result import ArrivalSpan, Result

VOID = {"meta", "br", "hr", "img", "input", "link", "col", "wbr"}
ESCAPED = re.compile(r"\\([\\`*_{}\[\]>#|~!&@.:)+=-])")


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in order; cells and texts are collected."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: Counter[str] = Counter()
        self.tables: list[list[list[str]]] = []
        self.definitions: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        assert len(own) == len(attrs), f"an attribute of {tag} stands twice"
        self.tags.append((tag, own))
        if own.get("id"):
            self.ids[str(own["id"])] += 1
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in {"th", "td"}:
            self.tables[-1][-1].append("")
        if tag == "dd":
            self.definitions.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if {"th", "td"} & set(self.open[-1:]):
            self.tables[-1][-1][-1] += data
        if self.open[-1:] == ["dd"]:
            self.definitions[-1] += data


def read_page(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert not page.open
    return page


def unescape(markdown: str) -> str:
    return ESCAPED.sub(r"\1", markdown).replace("&lt;", "<")


def read_markdown_tables(markdown: str) -> list[list[list[str]]]:
    tables: list[list[list[str]]] = []
    inside = False
    for line in markdown.splitlines():
        if line.startswith("|"):
            if not inside:
                tables.append([])
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
            if not re.fullmatch(r"[|: -]+", line):
                tables[-1].append([unescape(cell.strip()) for cell in cells])
        inside = line.startswith("|")
    return tables


def document_of(result: Result, language: Any) -> Document:
    return compose(result, load_words(language), Branding("A & Co <Ltd>", "B"))


def blocks_of(document: Document, kind: type) -> list[Any]:
    sections = (*document.first_page, *document.sections)
    return [block for section in sections for block in section.blocks if isinstance(block, kind)]


def printed_tables(document: Document) -> list[list[list[str]]]:
    """The document's tables in reading order, heads first, as their cells are printed."""
    sections = (*document.first_page, *document.sections)
    tables = [
        block.table if isinstance(block, Figure) else block
        for section in sections
        for block in section.blocks
        if isinstance(block, Table | Figure)
    ]
    return [
        [[" ".join(column.title.split()) for column in table.columns]]
        + [[" ".join(cell.split()) for cell in row] for row in table.rows]
        for table in tables
    ]


def test_html_and_markdown_hold_the_numbers_of_the_document(any_document: Document) -> None:
    document = any_document
    page, markdown = read_page(as_html(document)), as_markdown(document)
    expected = printed_tables(document)
    assert [[[" ".join(c.split()) for c in row] for row in t] for t in page.tables] == expected
    assert read_markdown_tables(markdown) == expected
    plain = unescape(markdown)
    for key_numbers in blocks_of(document, KeyNumbers):
        for item in key_numbers.items:
            for shown in (item.now, item.after):
                assert not shown or shown in page.definitions
                assert shown in plain
            assert item.interval in plain
    for figure in blocks_of(document, Figure):
        assert figure.title in plain
        assert figure.description in plain


def test_the_page_is_one_file_that_asks_for_nothing(any_document: Document) -> None:
    html = as_html(any_document)
    page = read_page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "img", "object", "embed", "form", "base"}
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "action", "xlink:href"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        if tag == "a":
            assert str(attributes["href"]).startswith("#")
    outside = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"(?:href|src|url\(|@import)[^>]{0,5}https?:", outside)
    for target in re.findall(r"url\(([^)]*)\)", html):
        assert target in {"#held", "#plane-hatch"}
    assert len(html.encode()) < 500_000


def test_the_page_can_be_read_by_all(any_document: Document) -> None:
    page = read_page(as_html(any_document))
    assert set(page.ids.values()) == {1}
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    for tag, attributes in page.tags:
        if tag == "html":
            assert attributes["lang"] == any_document.language
        if tag == "svg":
            assert attributes["role"] == "img"
        for named in str(attributes.get("aria-labelledby") or "").split():
            assert named in page.ids
        if tag == "a":
            assert str(attributes["href"])[1:] in page.ids
        if tag == "th":
            assert attributes["scope"] in {"col", "row"}


@pytest.mark.usefixtures("charts_drawn_anew")
def test_the_same_result_gives_the_same_bytes(
    make_result: Callable[..., Result], language: Any
) -> None:
    again = Result.model_validate_json(make_result("adopt").model_dump_json(by_alias=True))
    first = render_report(make_result("adopt"), language=language)
    assert render_report(again, language=language) == first


def test_hostile_strings_are_shown_and_do_nothing(
    make_result: Callable[..., Result], language: Any
) -> None:
    branding = Branding(client="<b>x</b>", prepared_by="\u202e=1|2")
    report = render_report(make_result("hostile"), language=language, branding=branding)
    page = read_page(report.html)
    assert not {tag for tag, _ in page.tags} & {"script", "b"}
    assert "<script>alert(1)</script>" in "".join(page.text)
    for text in (report.html, report.markdown):
        assert not re.search("[\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text)
        assert "x" * 300 not in text
    outside = "\n".join(
        line for line in report.markdown.splitlines() if not line.startswith("    ")
    )
    assert "<script" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "http://evil" not in outside


def test_no_percentile_that_the_sample_cannot_carry(make_result: Callable[..., Result]) -> None:
    words = load_words("en")

    def row(result: Result, name: str) -> list[str]:
        tables = printed_tables(compose(result, words, Branding()))
        return next(r for t in tables for r in t if r[0] == words(f"tables.{name}"))[1:]

    assert row(make_result("adopt"), "latency_p99") != ["—"] * 3
    assert row(make_result("adopt", requests=367), "latency_p99") == ["—"] * 3
    assert row(make_result("adopt", requests=367), "latency_p95") != ["—"] * 3
    few = make_result("adopt", requests=71)
    assert row(few, "latency_p95") == ["—"] * 3
    markdown = render_report(few, language="en").markdown
    assert "a p95 needs 72" in markdown
    assert "p95 451" not in "".join(read_page(render_report(few, language="en").html).text)


def test_an_overloaded_server_leads_with_what_does_not_depend_on_the_load(
    make_result: Callable[..., Result],
) -> None:
    document = document_of(make_result("overloaded"), "en")
    names = [item.name for k in blocks_of(document, KeyNumbers) for item in k.items]
    assert names == ["Slots idle", "Longest of a batch over the mean", "Capacity"]
    text = as_markdown(document)
    assert "grow for as long as the overload lasts" in text
    assert "exceeds the capacity of continuous batching as well" in text


@pytest.mark.parametrize("case", ["no_arrivals", "tiny"])
def test_no_claim_about_waiting_says_why(make_result: Callable[..., Result], case: str) -> None:
    markdown = render_report(make_result(case), language="ja").markdown
    assert "待ち時間については判断していません。到着時刻が分からないためです。" in markdown
    assert "p95応答時間" not in markdown


def test_assumed_slots_are_named_where_numbers_stand_on_them(
    make_result: Callable[..., Result],
) -> None:
    markdown = render_report(make_result("no_arrivals"), language="ja").markdown
    assert "数値と図は8スロットの場合を示しています" in markdown


def test_rows_are_reconciled_as_a_sum(make_result: Callable[..., Result]) -> None:
    markdown = render_report(make_result("adopt"), language="en").markdown
    assert "2,000 = 1,940 + 60" in markdown


def test_money_stands_only_where_a_price_was_given(make_result: Callable[..., Result]) -> None:
    assert "1,260円" in render_report(make_result("money"), language="ja").markdown
    assert "## 3. 費用" not in render_report(make_result("adopt"), language="ja").markdown


def test_several_models_get_a_verdict_each_up_front(make_result: Callable[..., Result]) -> None:
    document = document_of(make_result("several_models"), "en")
    first = document.first_page[0]
    assert first.id == "models"
    table = next(block for block in first.blocks if isinstance(block, Table))
    assert [row[3] for row in table.rows] == ["Adopt", "No gain"]


def test_no_number_of_another_model_or_of_the_pool_stands_unlabelled(
    make_result: Callable[..., Result], language: Any
) -> None:
    made = make_result("several_models").model_dump(by_alias=True)

    def told(own: dict[str, Any], number: float) -> dict[str, Any]:
        """Every figure replaced by one that can be found again, in any unit it is printed in."""

        def replaced(value: Any, key: str) -> Any:
            if isinstance(value, dict):
                return {k: replaced(v, k) for k, v in value.items()}
            if isinstance(value, list):
                return [replaced(v, key) for v in value]
            if key in {"slots", "drawn_slots", "slot", "load", "counts", "token_share"}:
                return value
            if isinstance(value, float):
                return number
            return int(number) if key == "requests" else value

        fields = "requests limits reasons actions flip gain waiting gain_bound policies what_if"
        names = [*fields.split(), "capacity_per_s", "output_tokens", "prompt_tokens", "arrivals"]
        names += ["utilisation", "idle_share", "intervals", "facts", "sweep"]
        return own | {name: replaced(own[name], name) for name in names}

    apart = made["reasons"][-1]
    made["models"][1] = told(made["models"][1], 66_666.25)
    pool = told(made, 55_555.25) | {"reasons": [*made["reasons"][:-1], apart]}
    kept = {name: made[name] for name in ("limits", "actions", "utilisation", "facts")}
    words = load_words(language)
    document = compose(Result.model_validate(pool | kept), words, Branding())
    for section in (*document.first_page, *document.sections):
        if section.id not in {"models", "models-detail", "data"}:
            assert not re.search(r"66,?666|55,?555|66\.?6{2,}|55\.?5{2,}", repr(section)), (
                section.id
            )
    cover = document.cover
    told_of = [item.text for item in cover.because[:-1]] + [*cover.confidence_why, cover.action]
    assert all(text.startswith("llama-3-70b") for text in told_of)


def test_a_prediction_stands_only_where_a_change_is_advised(
    any_result: Result, any_document: Document
) -> None:
    words = load_words(any_document.language)
    callouts = [callout.title for callout in blocks_of(any_document, Callout)]
    changes = any_result.verdict in {"adopt", "conditional", "marginal"}
    assert callouts == ([words("rollout.predicted")] if changes else [])
    commands = [code.text for code in blocks_of(any_document, Code) if "NEW_LOG" in code.text]
    assert len(commands) == (any_result.verdict not in {"already", "not_yours"})


def test_what_a_server_would_gain_is_an_appendix_for_the_user_of_an_api(
    make_result: Callable[..., Result], language: Any
) -> None:
    words = load_words(language)
    document = document_of(make_result("not_yours"), language)
    assert [section.id for section in document.first_page] == ["elsewhere", "flips"]
    simulated = [
        section
        for section in document.sections
        if any(getattr(block, "label", "") == "simulated" for block in section.blocks)
        or section.id in {"numbers", "tables"}
    ]
    assert simulated
    for section in simulated:
        assert section.title.startswith(words("appendix.title", title="")), section.id


def test_intervals_are_in_words_and_in_their_own_units(
    make_result: Callable[..., Result],
) -> None:
    intervals = {
        "latency_ratio": {"estimate": 1.93, "low": 1.8, "high": 2.1},
        "makespan_ratio": {"estimate": 1.5, "low": 1.4, "high": 1.6},
        "idle_share.dynamic": {"estimate": 0.46, "low": 0.44, "high": 0.47},
        "latency_p95_s.dynamic": {"estimate": 9982.0, "low": 5400.0, "high": 11000.0},
    }

    def rows(language: Literal["ja", "en"], requests: int) -> tuple[tuple[str, ...], ...]:
        made = make_result("adopt", intervals=intervals, requests=requests)
        document = document_of(made, language)
        section = next(section for section in document.sections if section.id == "tables")
        return section.blocks[-1].rows  # type: ignore[union-attr]

    batch = "Batched at once (waits at most 50 ms)"
    assert rows("en", 600) == (
        ("Mean latency, batched at once over continuous", "1.93× (1.80–2.10)"),
        ("Time for all, batched at once over continuous", "1.50× (1.40–1.60)"),
        (f"Idle share – {batch}", "46% (44% to 47%)"),
        (f"Latency, p95 – {batch}", "2.77 h (90.0 min to 3.06 h)"),
    )
    assert rows("ja", 600)[3] == (
        "応答時間（p95）：一括（最大50ミリ秒待つ）",
        "2.77時間（90.0分 〜 3.06時間）",
    )
    assert rows("en", 71)[3][1] == "—"


def test_a_short_window_is_told_to_the_second(make_result: Callable[..., Result]) -> None:
    def window(first: str, last: str) -> str:
        result = make_result("adopt")
        span = ArrivalSpan(first=first, last=last)
        traffic = result.traffic.model_copy(update={"arrival": span})
        result = result.model_copy(update={"traffic": traffic})
        return dict(document_of(result, "en").facts)["Window"]

    assert window("2026-09-01T08:00:01.25Z", "2026-09-01T08:00:30Z") == (
        "2026-09-01 08:00:01 UTC to 2026-09-01 08:00:30 UTC"
    )
    assert window("2026-09-01T08:00:01+09:00", "2026-09-01T09:30:00+09:00") == (
        "2026-09-01 08:00 +09:00 to 2026-09-01 09:30 +09:00"
    )


def test_settings_are_told_in_words_and_what_was_not_set_is_left_out(
    make_result: Callable[..., Result],
) -> None:
    result = make_result("adopt")
    config = {
        "server": {"slots": 8, "replicas": None, "ms_per_token": 20.125, "max_delay_ms": ".inf"},
        "reading": {"where": [], "segments": ["a", "b"], "allow_truncated": False},
        "traffic": {"synthetic": {"seed": 3}},
    }
    provenance = result.provenance.model_copy(update={"config": config})
    document = document_of(result.model_copy(update={"provenance": provenance}), "en")
    section = next(section for section in document.sections if section.id == "provenance")
    assert section.blocks[-1].rows == (  # type: ignore[union-attr]
        ("Slots per server", "8"),
        ("Time per token (ms)", "20.125"),
        ("Maximum delay of a short batch (ms)", "none; waits until the batch is full"),
        ("Split by", "a, b"),
        ("File cut off allowed", "no"),
        ("traffic.synthetic.seed", "3"),
    )


def test_assumed_slots_are_called_assumed_in_the_gain_chart(
    make_result: Callable[..., Result],
) -> None:
    def gain(case: str) -> Figure:
        figures: list[Figure] = blocks_of(document_of(make_result(case), "en"), Figure)
        return next(figure for figure in figures if figure.id == "gain")

    assert "8 are assumed" in gain("no_arrivals").description
    assert "This server has 8 slots" in gain("adopt").description
    few = [row[0] for row in gain("few").table.rows]
    assert few == ["2", "4", "8", "16"]


def test_the_numbers_of_the_timeline_are_those_of_its_bars(
    make_result: Callable[..., Result],
) -> None:
    figure = next(f for f in blocks_of(document_of(make_result("adopt"), "en"), Figure))
    # 8 slots of 60 s; batched at once busy 9 + 4 s, held until 39 s; refilled busy 8.5 + 4 s.
    busy, held = sum(9 + 4 * s for s in range(8)), sum(29 - 4 * s for s in range(8))
    refilled = sum(8.5 + 4 * s for s in range(8))
    assert [row[1:5] for row in figure.table.rows] == [
        (f"{busy}", f"{held}", f"{480 - busy - held}", "480"),
        (f"{refilled:.0f}", "0", f"{480 - refilled:.0f}", "480"),
    ]
    # Either way the same time is idle: what differs is what the slots are held for.
    assert f"{held} slot-seconds pass waiting" in figure.title


def test_the_cover_carries_verdict_confidence_reason_and_action(any_document: Document) -> None:
    words, cover = load_words(any_document.language), any_document.cover
    assert cover.sentence == words(f"verdict.{cover.verdict}.sentence")
    assert cover.because
    assert cover.confidence_why
    assert cover.action


def test_many_slots_and_requests_stay_small(make_result: Callable[..., Result]) -> None:
    report = render_report(make_result("many_slots"), language="en")
    assert "32 of 64 slots are drawn" in report.markdown
    assert len(report.html) < 500_000


def test_a_reason_of_another_version_is_told_in_one_line(
    make_result: Callable[..., Result],
) -> None:
    result = make_result("adopt", limits=[{"code": "from_the_future"}])
    with pytest.raises(InputError, match="from_the_future"):
        render_report(result, language="en")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("- item", "\\- item"),
        ("1. first", "1\\. first"),
        ("2.5 s", "2.5 s"),
        ("two\nlines", "two lines"),
        ("<b>", "&lt;b\\>"),
        ("</b>", "&lt;/b\\>"),
        ("<!--", "&lt;\\!--"),
        ("<0.1%", "<0.1%"),
        ("http://x", "http\\://x"),
        ("me@x.jp", "me\\@x.jp"),
    ],
)
def test_markdown_is_escaped(text: str, escaped: str) -> None:
    assert markdown_text(text) == escaped


def test_the_client_stands_in_the_plane_of_load_and_variation(
    make_result: Callable[..., Result],
) -> None:
    document = document_of(make_result("adopt"), "en")
    plane = next(own for own in blocks_of(document, Figure) if own.id == "plane")
    assert "today: from 0.60× (0.55–0.65) today's load on" in plane.title
    assert [row[0] for row in plane.table.rows] == ["0", "0.5", "0.77 (today)", "1", "2"]
    worth = [row[4] for row in plane.table.rows]
    assert worth == ["shorter waits only", *["capacity and waiting"] * 3, "no load found"]
    until = [row[2] for row in plane.table.rows]
    assert until == ["1.80× (1.75–1.85)", *["no end"] * 3, "—"]
    assert "the middle 95% of 5 replications" in plane.note
    limits = next(
        t for t in blocks_of(document, Table) if "From CV" in {c.title for c in t.columns}
    )
    assert [row[3] for row in limits.rows] == ["3 (2–3)", "1"]
    assert "the middle 95% of 5 replications" in limits.note


def test_times_that_cannot_be_replayed_have_no_plane(make_result: Callable[..., Result]) -> None:
    document = document_of(make_result("no_arrivals"), "en")
    assert "plane" not in {figure.id for figure in blocks_of(document, Figure)}
    assert "From load" not in as_markdown(document)


def test_the_fall_of_waiting_is_said_once(make_result: Callable[..., Result]) -> None:
    made = make_result("adopt")
    said = render_report(made, language="en").markdown
    assert said.count("48% lower (interval 44–52%)") == 1
    assert "Nothing is claimed about waiting" not in said
    figures = {"gain": 2.07, "low": 1.97, "high": 2.17, "utilisation": 1.2}
    reasons = [{"code": "gain_overload", "numbers": figures}, made.reasons[1].model_dump()]
    assert (
        "48% lower" in render_report(make_result("adopt", reasons=reasons), language="en").markdown
    )
