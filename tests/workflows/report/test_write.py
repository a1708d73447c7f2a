from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from slotwise_workflows.errors import UsageError
from slotwise_workflows.report import write_report
from slotwise_workflows.report.csv_tables import csv_tables
from slotwise_workflows.result import Result


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_files_are_written_and_named(make_result: Callable[..., Result], tmp_path: Path) -> None:
    paths = write_report(make_result("adopt"), tmp_path / "run", language="ja")
    names = [path.relative_to(tmp_path / "run").as_posix() for path in paths]
    assert names[:3] == ["report.html", "report.md", "summary.html"]
    assert "tables/policies.csv" in names
    found = [p for p in (tmp_path / "run").rglob("*") if p.is_file()]
    assert sorted(paths) == sorted(found)


def test_only_the_formats_asked_for(make_result: Callable[..., Result], tmp_path: Path) -> None:
    write_report(make_result("adopt"), tmp_path, language="en", formats=("md",))
    assert (tmp_path / "report.md").exists()
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(UsageError, match="docx"):
        write_report(make_result("adopt"), tmp_path, language="en", formats=("docx",))


def test_tables_hold_full_precision(make_result: Callable[..., Result], tmp_path: Path) -> None:
    result = make_result("adopt")
    write_report(result, tmp_path, language="en")
    rows = {
        (row["policy"], row["figure"]): float(row["value"])
        for row in read_rows(tmp_path / "tables" / "policies.csv")
    }
    for name, figures in result.policies.items():
        assert rows[name, "latency_s.p99"] == figures.latency_s.p99
        assert rows[name, "requests_per_s"] == figures.requests_per_s
    bound = read_rows(tmp_path / "tables" / "gain_bound.csv")
    assert {row["slots"]: float(row["low"]) for row in bound} == {
        slots: e.low for slots, e in result.gain_bound.items()
    }


def test_tables_do_not_run_in_a_spreadsheet(
    make_result: Callable[..., Result], tmp_path: Path
) -> None:
    write_report(make_result("hostile"), tmp_path, language="en")
    values = [row["value"] for row in read_rows(tmp_path / "tables" / "segments.csv")]
    assert "'=HYPERLINK(1)" in values
    assert not any(value.startswith(("=", "+", "-", "@")) for value in values)
    models = {row["model"] for row in read_rows(tmp_path / "tables" / "verdicts.csv")}
    assert models == {"*", "llama-3-70b", "<script>alert(1)</script>"}


@pytest.mark.usefixtures("charts_drawn_anew")
def test_writing_twice_gives_the_same_bytes(
    make_result: Callable[..., Result], tmp_path: Path
) -> None:
    first = {p: p.read_bytes() for p in write_report(make_result("adopt"), tmp_path, language="ja")}
    second = {
        p: p.read_bytes() for p in write_report(make_result("adopt"), tmp_path, language="ja")
    }
    assert first == second


def test_every_table_and_column_is_documented(make_result: Callable[..., Result]) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "report.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    documented = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    tables = csv_tables(make_result("several_models")) | csv_tables(make_result("step_cost"))
    for name, (columns, _) in tables.items():
        for column in columns:
            assert f"`{column}`" in documented[f"{name}.csv"]
    assert {n for n in documented if n.endswith(".csv") and "*" not in n} == {
        f"{name}.csv" for name in tables
    }
