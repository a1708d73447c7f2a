"""JSON Lines, arrays, documents, concatenated objects, and their faults."""

from __future__ import annotations

import gzip
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic.containers.json_text import (
    Window,
    parse_value,
    read_document,
    read_lines,
)

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
_RECORDS = st.lists(
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), _VALUES, max_size=4),
    min_size=1,
    max_size=6,
)


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _document(text: str, size: int = 1 << 18, limit: int = 1 << 20) -> list[Any]:
    return list(read_document(Window(_pieces(text, size), "x", limit), by_number=False))


def test_an_object_a_line(opened: Any) -> None:
    container, rows = opened('{"a": 1}\r\n\r\n{"a": 2}\n')
    assert container.kind == "jsonl"
    assert [(row.line, row.value) for row in rows] == [(1, {"a": 1}), (3, {"a": 2})]


def test_a_last_line_that_is_cut_is_told_by_number(opened: Any) -> None:
    container, rows = opened('{"ts": 1, "n": 5}\n{"ts": 2, "n": 6}\n{"ts":3,"comp')
    assert container.kind == "jsonl"
    assert [row.value for row in rows] == [{"ts": 1, "n": 5}, {"ts": 2, "n": 6}, None]
    assert (rows[2].line, rows[2].why) == (3, "the record is cut off before its end")


def test_a_line_of_something_else_is_no_record_and_quotes_nothing(opened: Any) -> None:
    _, rows = opened(
        '{"n": 1}\n{"prompt": "my secret" "n": 2}\n{"n": 3}\n' * 4 + '[4]\n"five"\nnull\n7\n'
    )
    assert [row.value for row in rows[:3]] == [{"n": 1}, None, {"n": 3}]
    assert rows[1].why.startswith("not valid JSON")
    assert "secret" not in rows[1].why
    assert [row.why for row in rows[12:]] == [
        "is a list, not an object",
        "is a string, not an object",
        "is null, not an object",
        "is a number, not an object",
    ]


def test_lines_that_are_mostly_no_json_are_text(opened: Any) -> None:
    container, rows = opened('{"n": 0}\nINFO start\nINFO go\nINFO end\n')
    assert (container.kind, len(rows)) == ("text", 4)
    container, rows = opened('INFO start\nINFO go\n{"n": 1}\nINFO end\nDone\n')
    assert container.kind == "text"
    assert rows[2].value == {"line": '{"n": 1}'}


def test_half_of_the_lines_is_enough_for_json_lines(opened: Any) -> None:
    container, rows = opened('listening on 8000\n{"n": 1}\n{"n": 2}\nstopped\n')
    assert container.kind == "jsonl"
    assert [row.value is None for row in rows] == [True, False, False, True]


def test_integers_keep_every_digit(opened: Any) -> None:
    _, rows = opened('{"ns": 1788220800500000001}\n{"ns": 1788220800500000002}\n')
    assert [row.value["ns"] for row in rows] == [1788220800500000001, 1788220800500000002]


def test_nan_and_infinity_are_floats(opened: Any) -> None:
    _, rows = opened('{"n": NaN}\n{"n": -Infinity}\n')
    assert math.isnan(rows[0].value["n"])
    assert rows[1].value["n"] == -math.inf


def test_several_objects_on_a_line_of_many(opened: Any) -> None:
    container, rows = opened('{"n": 1}{"n": 2} {"n": 3}\n{"n": 4}\n')
    assert container.kind == "jsonl"
    assert [(row.line, row.value["n"]) for row in rows] == [(1, 1), (1, 2), (1, 3), (2, 4)]


def test_concatenated_objects_on_one_line_are_numbered(opened: Any) -> None:
    container, rows = opened('{"n":10}{"n":20} {"n":30}')
    assert container.kind == "json"
    assert [(row.line, row.value["n"]) for row in rows] == [(1, 10), (2, 20), (3, 30)]


def test_concatenated_objects_written_over_several_lines(opened: Any) -> None:
    container, rows = opened('{\n  "n": 1\n}\n{\n  "n": 2\n}{"n": 3}\n')
    assert container.kind == "json"
    assert [(row.line, row.value["n"]) for row in rows] == [(1, 1), (4, 2), (6, 3)]


def test_a_broken_object_among_concatenated_ones_costs_one_row(opened: Any) -> None:
    _, rows = opened('{"n":1}{"n":oops}{"n":3}')
    assert [row.value for row in rows] == [{"n": 1}, None, {"n": 3}]
    _, rows = opened('{"n":"a" "b"}{"n":2}{"n":3}')
    assert [row.value for row in rows] == [None, {"n": 2}, {"n": 3}]


def test_json_text_sequences_and_repeated_byte_order_marks(opened: Any) -> None:
    _, rows = opened('\x1e{"n": 1}\n\x1e{"n": 2}\n\ufeff{"n": 3}\n')
    assert [row.value for row in rows] == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_gives_its_items(opened: Any, indent: int | None) -> None:
    container, rows = opened(json.dumps([{"n": 1}, {"n": 2}, 3], indent=indent))
    assert container.kind == "json"
    assert container.repaired == ()
    assert [row.value for row in rows] == [{"n": 1}, {"n": 2}, None]
    assert [row.line for row in rows] == ([1, 2, 3] if indent is None else [2, 5, 8])


def test_an_array_with_an_object_a_line_is_an_array(opened: Any) -> None:
    container, rows = opened('[\n{"n": 1},\n{"n": 2},\n{"n": 3}\n]\n')
    assert container.kind == "json"
    assert [(row.line, row.value) for row in rows] == [(2, {"n": 1}), (3, {"n": 2}), (4, {"n": 3})]


def test_an_empty_array_has_no_rows(opened: Any) -> None:
    assert opened("[ ]\n")[1] == []


def test_one_object_is_one_row_wrapped_or_not(opened: Any) -> None:
    text = json.dumps({"data": [{"n": 1}, {"n": 2}]}, indent=2)
    container, rows = opened(text)
    assert (container.kind, container.repaired) == ("json", ())
    assert [(row.line, row.value) for row in rows] == [(1, json.loads(text))]
    assert opened('{"n": 1}\n')[0].kind == "json"


def test_pages_of_arrays_in_one_file(opened: Any) -> None:
    _, rows = opened('[{"n": 1},\n {"n": 2}]\n[{"n": 3}]\n')
    assert [(row.line, row.value["n"]) for row in rows] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_trailing_comma_of_an_array_is_mended_and_told(
    opened: Any, compress: bool, encoding: str
) -> None:
    text = '[{"n": 10},\n {"n": 20},\n]\n'
    data = text.encode(encoding)
    place = data.rindex(b",")
    container, rows = opened(gzip.compress(data) if compress else data)
    assert [row.value for row in rows] == [{"n": 10}, {"n": 20}]
    assert container.repaired == (f"trailing comma before ] at byte {place}",)


def test_trailing_commas_inside_a_document_are_mended_and_told(opened: Any) -> None:
    container, rows = opened('{"data": [\n {"n": 1},\n {"n": 2,},\n],\n}')
    assert rows[0].value == {"data": [{"n": 1}, {"n": 2}]}
    assert container.repaired == (
        "trailing comma before } at character 30, line 3",
        "trailing comma before ] at character 32, line 3",
        "trailing comma before } at character 35, line 4",
    )


def test_a_comma_in_a_text_is_not_mended(opened: Any) -> None:
    container, rows = opened('{"a": ",]", "b": ", }",\n}')
    assert rows[0].value == {"a": ",]", "b": ", }"}
    assert len(container.repaired) == 1


def test_a_document_beyond_mending_says_where(opened: Any) -> None:
    with pytest.raises(InputError, match=r"some\.log:3: .*broken.*delimiter"):
        opened('{"data": [\n {"n": 1},\n {"n" 2}\n]}')


def test_an_array_broken_in_its_middle_says_where(opened: Any) -> None:
    with pytest.raises(InputError, match=r"some\.log:2: .*comma.*missing"):
        opened('[{"n": 1},\n {"n": 2} {"n": 3}, {"n": 4}, {"n": 5}]')
    with pytest.raises(InputError, match=r"some\.log:3: "):
        opened('[{"n": 1},\n {"a": 2,\n "n": oops}, {"n": 4}, {"n": 5}]')


def test_an_array_that_is_cut_keeps_what_is_whole(opened: Any) -> None:
    _, rows = opened('[{"n": 1},\n {"n": 2},\n {"n": "thr')
    assert [row.value for row in rows] == [{"n": 1}, {"n": 2}, None]
    assert (rows[2].line, rows[2].why) == (3, "the file ends inside this record")
    _, rows = opened('[{"n": 1},\n {"n": 2}\n')
    assert [row.value for row in rows] == [{"n": 1}, {"n": 2}, None]
    assert rows[2].why == "the file ends inside the array: records may be missing"


def test_objects_parted_by_commas_outside_an_array_are_refused(opened: Any) -> None:
    with pytest.raises(InputError, match="in no array"):
        opened('{"n": 1},\n{"n": 2},\n{"n": 3}\n')


def test_a_bracket_does_not_make_a_json_array(opened: Any) -> None:
    container, rows = opened("[2026-09-01 00:00:00] started\n[2026-09-01 00:00:01] stopped\n")
    assert container.kind == "text"
    assert len(rows) == 2
    assert opened("[GIN] 2026/09/01 - 08:00:04 | 200 |  4.2s | POST /api/chat\n")[0].kind == "text"


def test_duplicate_keys_are_found_at_every_depth() -> None:
    text = '{"n": 1, "n": 2, "m": {"t": 3, "u": {"t": 1, "t": 4}}, "r": [{"L": 1, "L": 5}]}'
    value, end, keys = parse_value(text)
    assert value == {"n": 2, "m": {"t": 3, "u": {"t": 4}}, "r": [{"L": 5}]}
    assert end == len(text)
    assert keys == {"n", "m.u.t", "r[].L"}


def test_duplicate_keys_reach_the_row(opened: Any) -> None:
    _, rows = opened('{"ts":1,"n":100,"ttft_ms":255.9,"ttft_ms":4.9}\n{"ts":2,"n":12,"n":120}\n')
    assert [row.duplicate_keys for row in rows] == [{"ttft_ms"}, {"n"}]
    _, rows = opened('{"ts":1}\n{"ts":2}\n')
    assert [row.duplicate_keys for row in rows] == [frozenset(), frozenset()]


def test_half_a_character_is_replaced_since_it_cannot_be_written_again(opened: Any) -> None:
    _, rows = opened('{"model": "a\\ud83d"}\n{"model": "\\ud83d\\ude00"}\n')
    assert [row.value["model"] for row in rows] == ["a\ufffd", "\U0001f600"]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ('{"n": ' + "[" * 200_000 + "}", "nested too deeply"),
        ('{"n": ' + "9" * 5000 + "}", "holds an integer with too many digits"),
    ],
)
def test_records_made_to_crash_a_parser_are_only_unreadable(
    opened: Any, record: str, why: str
) -> None:
    _, rows = opened(f'{{"n": 1}}\n{{"n": 2}}\n{record}\n')
    assert [row.value for row in rows] == [{"n": 1}, {"n": 2}, None]
    assert rows[2].why.startswith(why)


def test_an_array_nested_without_end_is_an_error_not_a_crash(opened: Any) -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        opened("[" * 200_000)


def test_a_record_beyond_the_limit_is_an_error() -> None:
    with pytest.raises(InputError, match="longer than"):
        _document('[{"n": 1}, {"text": "' + "x" * 5000, size=64, limit=1000)
    with pytest.raises(InputError, match="longer than"):
        _document('{"text": "' + "x" * 5000 + '"}', size=64, limit=1000)


def test_an_array_far_beyond_the_limit_is_read_record_by_record() -> None:
    records = [{"n": number} for number in range(2000)]
    rows = _document(json.dumps(records), size=64, limit=200)
    assert [row.value for row in rows] == records


@given(_RECORDS, st.integers(1, 40), st.sampled_from([None, 0, 2]))
def test_an_array_cut_into_any_pieces_is_the_array(
    records: list[dict[str, Any]], size: int, indent: int | None
) -> None:
    text = json.dumps(records, indent=indent, ensure_ascii=False)
    assert [row.value for row in _document(text, size)] == records


@given(_RECORDS, st.integers(1, 40), st.sampled_from(["", "\n", " \r\n\x1e"]))
def test_concatenated_objects_cut_into_any_pieces(
    records: list[dict[str, Any]], size: int, between: str
) -> None:
    text = between.join(json.dumps(record) for record in records)
    rows = _document(text, size)
    assert [row.value for row in rows] == records
    position, lines = 0, []
    for record in records:
        lines.append(text.count("\n", 0, position) + 1)
        position += len(json.dumps(record)) + len(between)
    assert [row.line for row in rows] == lines


@given(_RECORDS)
def test_lines_are_what_json_loads_makes_of_them(records: list[dict[str, Any]]) -> None:
    lines = [json.dumps(record) for record in records]
    rows = list(read_lines(enumerate(lines, 1)))
    assert [row.value for row in rows] == [json.loads(line) for line in lines]
    assert not any(row.duplicate_keys for row in rows)
