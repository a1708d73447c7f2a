"""Paths, specs and values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.traffic import ReadOptions, fields, read_traffic
from slotwise_workflows.traffic.fields import AmbiguousNumberError, count, first_of, lookup


@pytest.mark.parametrize(
    ("record", "path", "value"),
    [
        ({"a": {"b": 1}}, "a.b", 1),
        ({"a.b": 1}, "a.b", 1),
        ({"a.b": {"c.d": 1}}, "a.b.c.d", 1),
        ({"a": 1, "a.b": {"c": 2}}, "a.b.c", 2),
        ({"a": {"x": 0}, "a.b": 3}, "a.b", 3),
        ({"a": '{"b": {"c": 7}}'}, "a.b.c", 7),
        ({"a": "{'b': None, 'c': 21}"}, "a.c", 21),
        ({"a": [{"x": 1}, {"b": 5}]}, "a.b", 5),
        ({"a": '[{"b": 4}]'}, "a.b", 4),
        ({"a": None}, "a.b", None),
        ({"a": "no json"}, "a.b", None),
        ({"a": "{broken"}, "a.b", None),
        ({"a": "__import__('os')"}, "a.b", None),
        ({}, "a.b.c", None),
    ],
)
def test_lookup(record: Any, path: str, value: Any) -> None:
    assert lookup(record, path) == value


def test_a_null_key_is_there() -> None:
    assert fields.has({"usage": None}, "usage")
    assert fields.has({"a": {"usage": None}}, "a.usage")
    assert not fields.has({"a": {}}, "a.usage")


def test_deep_nesting_is_no_crash() -> None:
    record: Any = 1
    for _ in range(60):
        record = {"a": record}
    assert lookup(record, ".".join("a" * 60)) is None
    assert lookup({"a": "[" * 100_000}, "a.b") is None


@pytest.mark.parametrize(
    ("spec", "record", "value"),
    [
        ("a + b", {"a": 1, "b": 2}, 3),
        ("a + b", {"a": 1}, 1),
        ("a + b", {"b": 1}, None),
        ("a - b", {"a": 5, "b": 2}, 3),
        ("a - b", {"a": 5}, None),
        ("a / b", {"a": 6, "b": 2}, 3),
        ("a / b", {"a": 6, "b": 0}, None),
        ("a / b", {"a": "4.1s", "b": "24.848484ms"}, 165),
        ("a / b", {"a": "4.1s"}, None),
        ("a.-1", {"a": [1, 2, 3]}, 3),
        ("a.0", {"a": [1, 2, 3]}, 1),
        ("a.7", {"a": [1, 2, 3]}, None),
        ("u.in*", {"u": {"in": 3, "in_cached": 4, "out": 9}}, 7),
        ("u.in*", {"u": '{"in": 3}'}, 3),
        ("u.in*", {"u": {}}, None),
        ('"a + b"', {"a + b": 8}, 8),
        ('"u [s]"', {"u [s]": 8}, 8),
    ],
)
def test_specs_of_counts(spec: str, record: Any, value: int | None) -> None:
    assert first_of((spec,), count)(record) == value


@pytest.mark.parametrize(
    ("spec", "value", "seconds"),
    [
        ("d", 1.5, 1.5),
        ("d [ms]", 1500, 1.5),
        ("d [ns]", 1_500_000_000, 1.5),
        ("d [ms]", "611.28ms", 0.61128),
        ("d", "754.5µs", 0.0007545),
        ("d", "4.06s", 4.06),
        ("d", "1,5", 1.5),
        ("d", "N/A", None),
        ("d", True, None),
        ("d", "soon", None),
        ("d", float("inf"), None),
    ],
)
def test_durations(spec: str, value: Any, seconds: float | None) -> None:
    found = first_of((spec,), fields.seconds)({"d": value})
    assert found == (None if seconds is None else pytest.approx(seconds, rel=1e-12))


def test_first_alternative_that_has_a_value_counts() -> None:
    read = first_of(("a", "b"), count)
    assert read({"a": None, "b": 3}) == 3
    assert read({"a": 0, "b": 3}) == 0
    assert read({"a": "N/A", "b": "n/a"}) is None


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (5, 5),
        (64.0, 64),
        ("128", 128),
        (" 7 ", 7),
        ("2,048", 2048),
        ("1,234,567", 1234567),
        ("1 024", 1024),
        ("1\u202f024", 1024),
        ("64.0", 64),
        ("1e3", 1000),
        (-1, None),
        ("-1", None),
        ("", None),
        ("NaN", None),
        (float("nan"), None),
        (None, None),
        ("N/A", None),
        ("null", None),
    ],
)
def test_counts(value: Any, tokens: int | None) -> None:
    assert count(value) == tokens


@pytest.mark.parametrize(
    "value", [12.5, "12.5", "abc", True, [], {}, 2**40, "9" * 60, float("inf")]
)
def test_no_counts(value: Any) -> None:
    with pytest.raises(ValueError, match=r"no |more than"):
        count(value)


def test_dot_between_thousands() -> None:
    with pytest.raises(AmbiguousNumberError):
        count("1.500")
    assert count("1.500", decimal=",") == 1500
    assert count("1.234.567", decimal=",") == 1234567
    with pytest.raises(ValueError, match="no whole number"):
        count("1.500", decimal=".")
    assert count("1.000", decimal=".") == 1


@given(st.integers(0, 10**9), st.sampled_from(["{}", " {} ", "{}.0", "{:,}"]))
def test_any_count_survives_being_written(tokens: int, form: str) -> None:
    assert count(form.format(tokens)) == tokens


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=8,
    )
)
def test_no_value_breaks_a_reader(value: Any) -> None:
    fields.seconds(value)
    fields.text(value)
    fields.truth(value)
    fields.raw(value)
    lookup({"a": value}, "a.b.c")
    try:
        found = count(value)
    except ValueError:
        return
    assert found is None or found >= 0


def test_nothing_is_evaluated(tmp_path: Any) -> None:
    target = tmp_path / "pwned"
    text = f"{{'a': __import__('pathlib').Path({str(target)!r}).touch()}}"
    assert lookup({"a": text}, "a.a") is None
    assert not target.exists()


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 9), min_size=1, max_size=5))
def test_json_text_is_looked_through(record: dict[str, int]) -> None:
    for key, value in record.items():
        assert lookup({"outer": json.dumps(record)}, f"outer.{key}") == value


def test_names_out_of_a_log_are_shown_harmless() -> None:
    assert fields.shown("a\x1b[31mb\u202ec\n") == "a?[31mb?c?"
    assert len(fields.shown("x" * 1000)) == 60


def test_a_duration_whose_unit_nothing_tells_is_told(tmp_path: Path) -> None:
    """A guess would be off by a thousand; silence would hide what the log could have told."""
    path = tmp_path / "t.csv"
    path.write_text("arrival,output_tokens,ttft,latency_ms\n0,10,0.1,1000\n1,12,0.1,1200\n")
    log = read_traffic([str(path)])
    assert [flag for flag in log.flags if flag.startswith("unit")] == ["unit_unknown:ttft"]
    assert log.table["e2e_latency"].to_list() == [1.0, 1.2]
    told = read_traffic([str(path)], ReadOptions(map={"ttft": "ttft [s]"}))
    assert not [flag for flag in told.flags if flag.startswith("unit")]
    assert told.table["gen_ai.response.time_to_first_chunk"].to_list() == [0.1, 0.1]
