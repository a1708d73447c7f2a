"""The page of a sweep says what was found, and no more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from slotwise_workflows.report import load_words
from slotwise_workflows.report import sweep_reading as found
from slotwise_workflows.report.document import Block, Document, Figure, Table
from slotwise_workflows.report.render import as_html, as_markdown
from slotwise_workflows.report.sweep_page import compose_sweep, write_sweep_page
from slotwise_workflows.report.words import Language
from slotwise_workflows.sweep.record import SweepReport

HOSTILE = ("<script>alert(1)</script>", "\u202egnp", "a|b\nc # *d* [e](http://evil.example)")
COST = {
    "kind": "ms_per_token",
    "name": "",
    "source": "stated by the user",
    "quality": "not checked against a server",
    "kv_tokens": None,
    "values": {"ms_per_token": 8.0},
}
LIMITS = (
    "gain",
    "capacity_load",
    "capacity_per_s",
    "servers_needed",
    "break_even_load",
    "break_even_until",
)


def estimate(value: float | None, half: float = 0.05) -> dict[str, float] | None:
    return None if value is None else {"estimate": value, "low": value - half, "high": value + half}


def server(slots: int = 4, cv: float | None = None, **changes: Any) -> dict[str, Any]:
    own = {"cost": "8 ms", "slots": slots, "replicas": 1, "balancer": "round_robin"}
    return own | {"length_cv": cv, "replications": 5} | changes


def row(policy: str, slots: int = 4, cv: float | None = None, **changes: Any) -> dict[str, Any]:
    """Continuous is three times as fast, and gains with the variation and the slots."""
    refills = policy.startswith("continuous")
    load = changes.get("load", 1.0)
    gain = 1 + (1.0 if cv is None else cv) * slots / 8 if refills else 1.0
    figures: dict[str, Any] = {
        "arrivals": "open",
        "load": load,
        "users": None,
        "requests": 600,
        "gain": estimate(gain),
        "latency_ratio": estimate(3.0 if refills else 1.0),
        "utilisation": estimate(0.7 * (load or 1.0) * (1 if refills else 2)),
    }
    for name, value in (
        ("latency_mean_s", 2.0),
        ("latency_p95_s", 6.0),
        ("queue_delay_mean_s", 1.0),
        ("ttft_p95_s", 3.0),
        ("idle_share", 0.3),
        ("requests_per_s", 2.0),
        ("output_tokens_per_s", 400.0),
        ("makespan_s", 3600.0),
        ("preemptions", 0.5),
    ):
        figures[name] = estimate(value if refills else 3 * value)
    return server(slots, cv) | {"policy": policy} | figures | changes


def limit(policy: str, slots: int = 4, cv: float | None = None, **changes: Any) -> dict[str, Any]:
    refills = policy.startswith("continuous")
    gain = 1 + (1.0 if cv is None else cv) * slots / 8 if refills else 1.0
    own = server(slots, cv) | {
        "policy": policy,
        "gain": estimate(gain),
        "capacity_load": estimate(0.7 * gain),
        "capacity_per_s": estimate(1.1 * gain),
        "servers_needed": estimate(1.0 if refills else 2.4, 0.0 if refills else 0.4),
        "break_even_load": estimate(0.6 if gain > 1.2 else 1.4) if refills else None,
        "break_even_until": estimate(1.9) if refills and gain <= 1.2 else None,
        "break_even_cv": estimate(0.4) if refills and cv is None else None,
    }
    return own | changes


def pays(load: float | None, until: float | None = None) -> dict[str, Any]:
    """The loads at which it is worth it."""
    return {
        "break_even_load": estimate(load, 0.05 if load else 0.0),
        "break_even_until": estimate(until),
    }


POLICIES = ("static", "continuous")


def base() -> dict[str, Any]:
    cvs = (None, 0.0, 0.5, 1.0)
    return {
        "schema": "slotwise/sweep/v1",
        "name": "mixed",
        "engine": "local",
        "points": 40,
        "reused": 0,
        "seed": 7,
        "costs": {"8 ms": COST},
        "memory": None,
        "notes": [],
        "failures": [],
        "objectives": {"latency": 20.0},
        "thresholds": {"gain_adopt": 1.2, "waiting_adopt": 0.2},
        "baseline": "static",
        "here": {"requests": 600, "length_cv": 0.8, "rate_per_s": 1.5, "slots": None},
        "rows": [
            row(policy, slots, cv, load=load)
            for slots, cv, load, policy in product((4, 8), cvs, (0.5, 1.0, 2.0), POLICIES)
        ],
        "limits": [limit(p, slots, cv) for slots, cv, p in product((4, 8), cvs, POLICIES)],
    }


def closed() -> dict[str, Any]:
    told: dict[str, Any] = {"arrivals": "closed", "load": None, "utilisation": None}
    users = product((4, 16), POLICIES)
    whole: dict[str, Any] = {**told, "arrivals": "offline"}
    return {
        "rows": [row(policy, users=count, **told) for count, policy in users]
        + [row(policy, **whole) for policy in POLICIES],
        "here": {"requests": 600, "length_cv": 0.8, "rate_per_s": None, "slots": None},
        "limits": [limit(p) | dict.fromkeys(LIMITS[1:]) for p in POLICIES],
    }


def several_kinds() -> dict[str, Any]:
    others: list[dict[str, Any]] = [{}, {"cost": "slow"}, {"replicas": 2, "balancer": "least_busy"}]
    return {
        "costs": {"8 ms": COST, "slow": COST},
        "rows": [row(p, cv=cv) | own for own in others for cv in (None, 0.0) for p in POLICIES],
        "limits": [limit(p, cv=cv) | own for own in others for cv in (None, 0.0) for p in POLICIES],
    }


def failed() -> dict[str, Any]:
    point = {name: value for name, value in server().items() if name != "replications"}
    told = {"load": 1.0, "users": None, "replication": 3, "limits": False, "why": HOSTILE[2]}
    return {"rows": [], "limits": [], "failures": [point | told]}


def hostile() -> dict[str, Any]:
    own = base()
    names = dict(zip(POLICIES, HOSTILE, strict=False))
    lines = {
        key: [line | {"policy": names[line["policy"]], "cost": HOSTILE[0]} for line in own[key]]
        for key in ("rows", "limits")
    }
    return lines | {
        "name": HOSTILE[2],
        "baseline": HOSTILE[0],
        "costs": {HOSTILE[0]: COST | {"source": HOSTILE[2], "quality": HOSTILE[1]}},
        "notes": list(HOSTILE),
    }


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "grid": dict,
    "closed": closed,
    "several_kinds": several_kinds,
    "failed": failed,
    "hostile": hostile,
    "no_limits": lambda: {"limits": []},
    "no_objectives": lambda: {"objectives": {}},
    "own_lengths_not_swept": lambda: {
        "limits": [],
        "rows": [r for r in base()["rows"] if r["length_cv"] is not None],
    },
    "alone": lambda: {
        key: [line for line in base()[key] if line["policy"] == "static"]
        for key in ("rows", "limits")
    },
}


def make(case: str = "grid", **changes: Any) -> SweepReport:
    return SweepReport.model_validate(base() | CASES[case]() | changes)


def composed(report: SweepReport, language: Language = "en") -> Document:
    return compose_sweep(report, load_words(language))


def blocks_of(document: Document) -> list[Block]:
    return [b for s in (*document.first_page, *document.sections) for b in s.blocks]


def figures_of(document: Document) -> dict[str, Figure]:
    return {own.id: own for own in blocks_of(document) if isinstance(own, Figure)}


@pytest.mark.parametrize("case", CASES)
def test_both_skins_hold_every_number_of_every_case(case: str, language: Language) -> None:
    document = composed(make(case), language)
    html, markdown = as_html(document), as_markdown(document)
    text = unescape(re.sub(r"<[^>]*>", "\n", html))
    plain = re.sub(r"\\(.)", r"\1", markdown).replace("&lt;", "<")
    blocks = blocks_of(document)
    tables = [own.table if isinstance(own, Figure) else own for own in blocks]
    shown = [
        document.cover.sentence,
        document.cover.badge,
        *(i.text for i in document.cover.because),
    ]
    shown += [
        cell for own in tables if isinstance(own, Table) for line in own.rows for cell in line
    ]
    shown += [own.title for own in blocks if isinstance(own, Figure)]
    assert len(shown) > 20
    for words in shown:
        assert words in text
        assert " ".join(words.split()) in plain
    assert "script" not in re.findall(r"<(\w+)", html)
    ids = Counter(re.findall(r' id="([^"]+)"', html))
    assert set(ids.values()) == {1}
    assert set(re.findall(r"url\(#([^)]*)\)", html)) <= ids.keys()
    assert not re.search("[\u200b-\u200f\u2028-\u202e\u2066-\u2069]", html + markdown)
    assert "http://evil" not in markdown
    for own in blocks:
        if isinstance(own, Figure):
            assert (own.label, own.tag) == ("simulated", load_words(language)("label.simulated"))


def test_files_are_written_whole_and_the_same_again(tmp_path: Path, language: Language) -> None:
    paths = write_sweep_page(make(), tmp_path / "run", language=language)
    assert sorted(paths) == sorted(p for p in (tmp_path / "run").rglob("*") if p.is_file())
    names = {path.relative_to(tmp_path / "run").as_posix() for path in paths}
    assert {
        "sweep.html",
        "sweep.md",
        "pictures/plane-1.svg",
        "pictures/gain-variation.svg",
    } <= names
    first = {path: path.read_bytes() for path in paths}
    again = SweepReport.model_validate_json(make().model_dump_json(by_alias=True))
    assert {
        p: p.read_bytes() for p in write_sweep_page(again, tmp_path / "run", language=language)
    } == first


def test_a_picture_stands_alone(tmp_path: Path) -> None:
    paths = write_sweep_page(make(), tmp_path, language="en")
    for path in (own for own in paths if own.suffix == ".svg"):
        root = ET.fromstring(path.read_bytes())
        size = (root.get("width"), root.get("height"))
        assert root.get("viewBox") == f"0 0 {size[0]} {size[1]}"
        tags = [child.tag.rpartition("}")[2] for child in root]
        assert tags[:3] == ["title", "desc", "rect"]
        assert root[0].text in {own.title for own in figures_of(composed(make())).values()}


def test_each_picture_stands_where_its_axis_was_varied() -> None:
    assert figures_of(composed(make())).keys() == {
        "plane-1",
        "plane-2",
        "gain-variation",
        "gain-slots",
        "open-mean",
        "open-p95",
    }
    assert figures_of(composed(make("closed"))).keys() == {"closed-mean", "closed-requests"}
    assert figures_of(composed(make("failed"))).keys() == set()
    assert "plane-1" not in figures_of(composed(make("no_limits")))
    one_load = make(rows=[row(p, slots) for slots in (4, 8) for p in POLICIES])
    assert "open-mean" not in figures_of(composed(one_load))
    few = make(rows=[line | {"requests": 71} for line in base()["rows"]])
    assert "open-p95" not in figures_of(composed(few))


def test_batches_in_order_are_what_a_gain_is_over_and_no_line() -> None:
    figure = figures_of(composed(make()))["gain-slots"]
    assert [column.title for column in figure.table.columns] == ["Slots", "continuous"]
    assert [line[1][:5] for line in figure.table.rows] == ["1.50×", "2.00×"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (pays(0.6), "inside"),
        (pays(0.98), "edge"),
        (pays(1.4), "outside"),
        (pays(0.0), "any"),
        (pays(None), "none"),
        (pays(0.6, 1.9), "inside_waiting"),
        (pays(0.0, 1.9), "inside_waiting"),
        (pays(0.98, 1.9), "edge_waiting"),
        (pays(0.6, 1.02), "edge_waiting"),
        (pays(0.0, 0.98), "edge_waiting"),
        (pays(1.4, 1.9), "outside_waiting"),
        (pays(0.1, 0.3), "outside_waiting"),
        (pays(0.0, 0.3), "outside_waiting"),
        (pays(0.6) | {"gain": estimate(1.18)}, "mixed"),
        (pays(0.0) | {"gain": estimate(1.18)}, "mixed"),
        (pays(1.4) | {"gain": estimate(1.18)}, "outside"),
        ({"gain": None}, "unknown"),
    ],
)
def test_the_answer_is_where_the_traffic_stands(changes: dict[str, Any], expected: str) -> None:
    lines = [limit("static"), limit("continuous") | changes]
    report = make(rows=[], limits=lines)
    (own,) = found.servers(report)
    assert found.standing(report, own, "continuous") == expected
    for language in ("en", "ja"):
        cover = composed(report, language).cover
        assert cover.badge
        assert "continuous" in cover.sentence


@pytest.mark.parametrize(
    ("gain", "expected"),
    [((1.5, 0.1), "capacity"), ((1.25, 0.1), "unsure"), ((1.05, 0.1), "no_capacity")],
)
def test_without_loads_the_answer_is_of_capacity(gain: tuple[float, float], expected: str) -> None:
    report = make(limits=[], rows=[row("static"), row("continuous") | {"gain": estimate(*gain)}])
    (own,) = found.servers(report)
    assert found.standing(report, own, "continuous") == expected


def test_the_answer_in_both_languages() -> None:
    told = {language: composed(make(), language).cover for language in ("en", "ja")}
    assert told["en"].badge == "Worth it today"
    assert "from 0.60× (0.55–0.65) today's load on" in told["en"].sentence
    assert (
        "「static」に代えて「continuous」を用いる効果が、現在の負荷の0.60倍" in told["ja"].sentence
    )
    because = [item.text for item in told["en"].because]
    assert because[0] == (
        "Capacity gain of continuous: 1.50× (1.45–1.55) with 4 slots, 2.00× (1.95–2.05) with 8."
    )
    assert "from lengths with a variation (CV) of 0.40 (0.35–0.45); today's have 0.8" in because[1]
    assert because[3].endswith("static 3 (2–3), continuous 1.")


@pytest.mark.parametrize(
    ("slots", "named", "which"),
    [
        (None, "4 slots", "4 slots, the fewest that were searched; how many this server has is"),
        (8, "8 slots", "8 slots, which this server has"),
        (6, "4 slots", "4 slots, the fewest that were searched; this server's 6 were not"),
    ],
)
def test_the_answer_is_of_the_servers_own_slots(slots: int | None, named: str, which: str) -> None:
    document = composed(make(here=base()["here"] | {"slots": slots}))
    assert document.cover.sentence.startswith(f"On {named},")
    assert document.cover.because[-1].text.startswith(f"The answer is of {which}")
    figures = figures_of(document)
    for name in ("plane-1", "open-mean", "open-p95"):
        assert named in figures[name].title
    assert "plane-2" in figures


def test_a_band_has_its_upper_end_in_every_table() -> None:
    lines = [
        limit(p, cv=cv) | (pays(0.6, 1.9) if p != "static" else {})
        for cv in (None, 0.0)
        for p in POLICIES
    ]
    document = composed(make(limits=lines))
    assert document.cover.badge == "Shorter waits only"
    assert "from 0.60× (0.55–0.65) to 1.90× (1.85–1.95) today's load" in document.cover.sentence
    tables = [own.table if isinstance(own, Figure) else own for own in blocks_of(document)]
    ends = [
        [line[place] for line in own.rows if own.columns[0].title != "Slots" or line[1] != "static"]
        for own in tables
        if isinstance(own, Table)
        for place, column in enumerate(own.columns)
        if column.title == "Up to load"
    ]
    assert len(ends) == 3
    assert {cell for column in ends for cell in column} >= {"1.90× (1.85–1.95)"}


def test_an_interval_says_how_many_replications_it_is_of(language: Language) -> None:
    words = load_words(language)
    document = composed(make(), language)
    told = words("sweep.replications", high=5, low=5)
    notes = [own.note for own in blocks_of(document) if isinstance(own, Figure | Table)]
    named = [note for note in notes if "95%" in note]
    assert len(named) >= 6
    assert all(told in note for note in named)
    few = make(
        rows=[line | {"replications": 3} for line in base()["rows"][:1]] + base()["rows"][1:]
    )
    assert words("sweep.replications_between", low=3, high=5) in as_html(composed(few, language))


def test_a_single_number_of_slots_is_told_once() -> None:
    own = base()
    rows, limits = ([x for x in own[key] if x["slots"] == 4] for key in ("rows", "limits"))
    figure = figures_of(composed(make(rows=rows, limits=limits)))["gain-variation"]
    assert figure.description.count("4 slots") == 1


def test_a_long_grid_ends_with_where_the_rest_is() -> None:
    loads = [0.1 * i for i in range(1, 41)]
    report = make(rows=[row(p, load=load) for load in loads for p in POLICIES])
    table = next(
        own
        for own in blocks_of(composed(report))
        if isinstance(own, Table) and own.caption == "Every setting that was replayed"
    )
    assert len(table.rows) == 60
    assert table.note.endswith("20 rows more in sweep.parquet.")


def test_one_replication_has_no_interval() -> None:
    lines = [limit(p, gain=estimate(1.5, 0), capacity_per_s=estimate(2.0, 0)) for p in POLICIES]
    (table,) = (b for b in composed(make(rows=[], limits=lines)).first_page[0].blocks)
    assert isinstance(table, Table)
    assert [line[2] for line in table.rows] == ["2.00/s", "2.00/s"]


def test_no_p95_of_too_few_requests() -> None:
    def told(requests: int) -> set[str]:
        rows = [row(p, requests=requests) for p in POLICIES]
        tables = (own for own in blocks_of(composed(make(rows=rows))) if isinstance(own, Table))
        (own,) = (t for t in tables if "p95 latency" in {c.title for c in t.columns})
        at = [column.title for column in own.columns].index("p95 latency")
        return {line[at] for line in own.rows}

    assert told(71) == {"—"}
    assert told(72) == {"6.00 s", "18.0 s"}


def test_machine_hours_count_every_server() -> None:
    whole: dict[str, Any] = {
        "arrivals": "offline",
        "load": None,
        "utilisation": None,
        "replicas": 2,
    }
    report = make(rows=[row(p, **whole) for p in POLICIES], limits=[])
    (table,) = (
        own
        for own in blocks_of(composed(report))
        if isinstance(own, Table) and own.caption == "The offline job"
    )
    # One hour on two servers; batching at once takes three.
    assert [line[3].split()[0] for line in table.rows] == ["6.00", "2.00"]


def test_failures_are_named_with_their_reason(language: Language) -> None:
    document = composed(make("failed"), language)
    tables = [own for own in document.sections[-2].blocks if isinstance(own, Table)]
    assert "evil.example" in tables[-1].rows[0][-1]
    words = load_words(language)
    assert document.cover.badge == words("sweep.badge_nothing")
    assert words("sweep.failed", failed=1, points=40) in as_html(document)
