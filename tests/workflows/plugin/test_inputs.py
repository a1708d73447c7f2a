"""The inputs file: what is wrong, at which pointer, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError
from slotwise_workflows.host.inputs import defaults, read_inputs
from slotwise_workflows.resources import load_yaml

SCHEMA = load_yaml("workflows/diagnose.yaml")["inputs"]


def _read(tmp_path: Path, content: object) -> dict[str, Any]:
    path = tmp_path / "inputs.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_inputs(path, SCHEMA)


def _refusal(tmp_path: Path, content: object) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        _read(tmp_path, content)
    error = caught.value
    assert "\n" not in str(error)
    return error.where.removeprefix(str(tmp_path)).lstrip("/\\"), str(error)


def test_reads_what_the_file_says(tmp_path: Path) -> None:
    said = {"traffic_log": ["a.csv", "b/*.jsonl"], "slots": 8, "map": {"arrival": "t"}}
    assert _read(tmp_path, said) == said


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert _read(tmp_path, b'\xef\xbb\xbf{"traffic_log": "a"}') == {"traffic_log": "a"}


def test_defaults() -> None:
    assert defaults(SCHEMA) == {"seed": 0, "language": "ja"}


@pytest.mark.parametrize(
    ("content", "where", "says"),
    [
        ({}, "inputs.json#", "traffic_log is missing"),
        ({"traffic_log": "a", "slotz": 8}, "inputs.json#/slotz", "Did you mean slots?"),
        ({"traffic_log": "a", "slots": 0}, "inputs.json#/slots", "less than the minimum of 1"),
        ({"traffic_log": "a", "slots": True}, "inputs.json#/slots", "not of type"),
        ({"traffic_log": "a", "slots": "8"}, "inputs.json#/slots", "not of type"),
        ({"traffic_log": "a", "ms_per_token": 0}, "inputs.json#/ms_per_token", "minimum of 0"),
        ({"traffic_log": []}, "inputs.json#/traffic_log", "non-empty"),
        ({"traffic_log": ["a", 1]}, "inputs.json#/traffic_log/1", "not of type"),
        ({"traffic_log": "a", "language": "fr"}, "inputs.json#/language", "['ja', 'en']"),
        ({"traffic_log": "a", "map": {"a/b~c": 1}}, "inputs.json#/map/a~1b~0c", "not of type"),
        ([], "inputs.json#", "not of type"),
        (b'{"traffic_log": "a",\n "slots": }', "inputs.json:2", "not JSON"),
        (b'{"traffic_log": "a", "traffic_log": "b"}', "inputs.json", "stands twice"),
        (b'{"traffic_log": "a", "ms_per_token": NaN}', "inputs.json", "not a finite number"),
        (b'{"traffic_log": "a", "ms_per_token": 1e999}', "inputs.json", "not a finite number"),
        (b'{"traffic_log": "\xff"}', "inputs.json", "not JSON"),
        (b"[" * 100_000, "inputs.json", "nested too deeply"),
        (b" " * (1 << 20) + b"{}", "inputs.json", "larger than 1 MiB"),
        (b"", "inputs.json:1", "not JSON"),
    ],
)
def test_refusals_say_where(tmp_path: Path, content: object, where: str, says: str) -> None:
    place, message = _refusal(tmp_path, content)
    assert place == where
    assert says in message
    assert message.isascii()  # no label of two languages: pointer and reason


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the inputs file"):
        read_inputs(tmp_path / "none.json", SCHEMA)


def test_hostile_keys_stay_on_one_short_line(tmp_path: Path) -> None:
    _, message = _refusal(tmp_path, {"traffic_log": "a", "x\n\x1b[31m\u202e" + "y" * 5000: 1})
    assert message.isprintable()
    assert len(message) < 1500


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(sorted(SCHEMA["properties"])) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(_json)
def test_anything_else_is_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-inputs.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    said, refusal = {}, ""
    try:
        said = read_inputs(path, SCHEMA)
    except InputError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert refusal or "traffic_log" in said
    assert said.keys() <= SCHEMA["properties"].keys()
