"""Delimited text: the parser against Python's `csv`, dialects, headers, faults."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers.streams import numbered_lines
from slotwise_workflows.traffic.containers.tables import read_records

_CELLS = st.text(st.sampled_from('ab1 ,;"\n\r\té'), max_size=6)
_TABLES = st.lists(st.lists(_CELLS, min_size=2, max_size=4), min_size=1, max_size=6)


def _records(text: str, delimiter: str = ",", **options: Any) -> list[list[str]]:
    lines = numbered_lines([text], "x")
    return [record.cells for record in read_records(lines, delimiter, "x", **options)]


@given(_TABLES, st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_reads_what_the_csv_module_writes(
    table: list[list[str]], delimiter: str, newline: str
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=csv.QUOTE_ALL).writerows(
        table
    )
    assert _records(text.getvalue(), delimiter) == table


@given(st.text(st.sampled_from('ab,"\n'), max_size=30).filter(lambda text: ', "' not in text))
def test_reads_what_the_csv_module_reads(text: str) -> None:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    ours = list(read_records(enumerate(lines, 1), ",", "x"))
    if any(record.open_quote for record in ours):
        return  # the csv module takes the end of the file for the closing quote
    theirs = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert [record.cells for record in ours] == theirs


def test_a_space_before_a_quote_is_passed() -> None:
    assert _records('a, "b,c", d\n') == [["a", "b,c", " d"]]


def test_quoted_newlines_commas_and_doubled_quotes(opened: Any) -> None:
    container, rows = opened(
        "id,ts,prompt,n\n"
        '1,2026-09-01T00:00:00Z,"first line\nsecond, ""quoted"" line\n\nfourth",30\n'
        '2,2026-09-01T00:00:01Z,"a,b,c",40\n'
        "3,2026-09-01T00:00:02Z,plain,50\n"
    )
    assert (container.kind, container.delimiter) == ("csv", ",")
    assert container.columns == ("id", "ts", "prompt", "n")
    assert [(row.line, row.value["n"]) for row in rows] == [(2, "30"), (6, "40"), (7, "50")]
    assert rows[0].value["prompt"] == 'first line\nsecond, "quoted" line\n\nfourth'


def test_bom_and_carriage_returns_touch_neither_first_nor_last_column(opened: Any) -> None:
    container, rows = opened(b"\xef\xbb\xbfts,p,n\r\n1,5,10\r\n2,5,20\r\n")
    assert container.columns == ("ts", "p", "n")
    assert [row.value for row in rows] == [
        {"ts": "1", "p": "5", "n": "10"},
        {"ts": "2", "p": "5", "n": "20"},
    ]


def test_lines_ended_by_carriage_returns_alone(opened: Any) -> None:
    _, rows = opened(b"ts,n\r1,10\r2,20\r")
    assert [(row.line, row.value["n"]) for row in rows] == [(2, "10"), (3, "20")]


def test_utf16_with_tabs(opened: Any) -> None:
    container, rows = opened("ts\tn\r\n1\t10\r\n2\t20\r\n".encode("utf-16"))
    assert (container.encoding, container.delimiter) == ("utf-16-le", "\t")
    assert [row.value["n"] for row in rows] == ["10", "20"]
    container, _ = opened(b"\xfe\xff" + "ts\tn\r\n1\t10\r\n".encode("utf-16-be"))
    assert (container.encoding, container.columns) == ("utf-16-be", ("ts", "n"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_fits_header_and_rows(opened: Any, delimiter: str) -> None:
    noise = "".join(mark for mark in ",;|" if mark != delimiter) + " "
    rows = [["ts", "n", "text"], ["1", "10", noise * 3], ["2", "20", noise]]
    data = "\n".join(delimiter.join(cells) for cells in rows)
    container, rows = opened(data)
    assert container.delimiter == delimiter
    assert [row.value["n"] for row in rows] == ["10", "20"]


def test_excel_may_name_the_delimiter_first(opened: Any) -> None:
    container, rows = opened("sep=;\r\nts;n\r\n1;10\r\n")
    assert (container.delimiter, container.columns) == (";", ("ts", "n"))
    assert [(row.line, row.value["n"]) for row in rows] == [(3, "10")]


@pytest.mark.parametrize(
    ("latencies", "expected"),
    [
        (["0,52", "1,5", "12,25"], True),
        (["1.024,5", "2.000,75"], True),
        (["0,512"], True),
        (["1024,512"], True),
        (["1,024", "2,048"], False),  # may group thousands
        (["1,024.5"], False),
        (["0.5", "1.5"], False),
        (["1,2,3"], False),  # a list
        (["1,5", "0,14,15"], False),
        (["a,5"], False),
        (["1500", "2"], False),
    ],
)
def test_decimal_commas_are_seen(opened: Any, latencies: list[str], expected: bool) -> None:
    rows = "".join(f"2026-09-01;1.500;{latency}\n" for latency in latencies)
    container, _ = opened("ts;n;latency\n" + rows)
    assert container.decimal_comma is expected


def test_a_european_spreadsheet(opened: Any) -> None:
    container, rows = opened(
        "Zeit;prompt_tokens;completion_tokens;latency_s\r\n"
        "2026-09-01T00:00:00Z;1.024;256;3,5\r\n"
        "2026-09-01T00:00:01Z;90;1.500;12,25\r\n"
    )
    assert (container.delimiter, container.decimal_comma) == (";", True)
    assert [row.value["completion_tokens"] for row in rows] == ["256", "1.500"]


def test_grouped_thousands_stay_as_written(opened: Any) -> None:
    container, rows = opened('ts,n\n2026-09-01,"2,048"\n2026-09-01,512\n')
    assert [row.value["n"] for row in rows] == ["2,048", "512"]
    assert not container.decimal_comma


def test_a_json_column_comes_as_text(opened: Any) -> None:
    _, rows = opened('id,meta\nr1,"{""n"": 20}"\nr2,"{\'n\': 21}"\n')
    assert [row.value["meta"] for row in rows] == ['{"n": 20}', "{'n': 21}"]


def test_ragged_rows_are_told_not_shifted(opened: Any) -> None:
    _, rows = opened("ts,p,n\n1,5,10\n2,5\n3,5,30,9\n4,5,40,,\n5,5,50\n")
    assert [row.value and row.value["n"] for row in rows] == ["10", None, None, "40", "50"]
    assert rows[1].why == "has 2 fields, the header has 3"
    assert (rows[2].line, rows[2].why) == (4, "has 4 fields, the header has 3")


def test_a_header_in_the_middle_is_no_request(opened: Any) -> None:
    _, rows = opened("ts,n\n1,10\nts,n\n2,20\n")
    assert [row.value and row.value["n"] for row in rows] == ["10", None, "20"]
    assert rows[1].why == "repeats the header"


def test_a_header_alone_is_a_table_without_rows(opened: Any) -> None:
    container, rows = opened("timestamp,prompt_tokens,completion_tokens\n")
    assert (container.kind, rows) == ("csv", [])


def test_one_column_of_numbers_is_a_table(opened: Any) -> None:
    container, rows = opened("output_tokens\n10\n20\n")
    assert (container.kind, container.columns) == ("csv", ("output_tokens",))
    assert [row.value["output_tokens"] for row in rows] == ["10", "20"]


@pytest.mark.parametrize(
    "text",
    [
        "2026-09-01T00:00:00Z,m,100,200\n2026-09-01T00:00:01Z,m,100,210\n",
        "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n",
        '"9/1/2026, 11:58:00.000 AM",r-1,"a prompt, of words",5\n"9/1/2026, 11:58:01 AM",r,b,5\n',
        "0,1.33,8.59,Weibull,0.37\n600,0,0,,0\n",
        "1788220800,5,10\n",
    ],
)
def test_a_table_without_a_header_is_refused(opened: Any, text: str) -> None:
    with pytest.raises(InputError, match=r"some\.log:1: .*no header row") as caught:
        opened(text)
    assert "column" in caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "[GIN] 2026/09/01 - 08:00:04 | 200 |  4.221s |  127.0.0.1 | POST  /api/chat",
        "0.22.535.286 I slot launch_slot_: id  0 | task 0 | processing task",
        "2026-09-01 08:00:00.391 | slot update: id  3 | task 0 | prompt = 862",
        "1779264164496\t2026-09-01T08:02:44.496Z\tFinish: obj=Request(rid='b')",
        "2026-09-01 08:00:00,123 INFO request done",
        "INFO 09-02 08:46:16 [logger.py:92] Generated response x: output: 'a', finish_reason: None",
    ],
)
def test_lines_of_a_server_are_no_table(opened: Any, line: str) -> None:
    container, rows = opened(f"{line}\n" * 4)
    assert container.kind == "text"
    assert [row.value for row in rows] == [{"line": line}] * 4


def test_columns_of_one_name_are_refused_by_name(opened: Any) -> None:
    with pytest.raises(InputError, match=r"two columns are called 'n'"):
        opened("ts,n,p,n\n1,10,5,11\n")


def test_a_column_without_a_name_gets_its_number(opened: Any) -> None:
    assert opened(",ts,n\n0,1,10\n1,2,20\n")[0].columns == ("column 1", "ts", "n")


def test_a_quote_never_closed_does_not_swallow_rows_in_silence(opened: Any) -> None:
    with pytest.raises(InputError, match=r"some\.log:3: .*never closed: 2 of the 2 lines"):
        opened('ts,p,n\n1,x,10\n2,"oops,20\n3,x,30\n4,x,40\n')


def test_a_row_cut_inside_a_quoted_cell_is_one_unreadable_row(opened: Any) -> None:
    _, rows = opened('ts,n,p\n1,10,x\n2,20,"a prompt of\nseveral lines, cut')
    assert [row.value and row.value["n"] for row in rows] == ["10", None]
    assert (rows[1].line, rows[1].why) == (3, "a quote that opens here is never closed")


def test_a_field_far_longer_than_the_csv_module_allows(opened: Any) -> None:
    long = "x" * 300_000
    _, rows = opened(f'ts,p,n\n1,"a",10\n2,"{long}\n{long}",20\n')
    assert len(rows[1].value["p"]) == 600_001
    assert rows[1].value["n"] == "20"


def test_a_record_beyond_the_limit_of_memory_is_an_error() -> None:
    with pytest.raises(InputError, match=r"x:1: .*longer than"):
        _records('a,"' + "line\n" * 1000, limit=100)
