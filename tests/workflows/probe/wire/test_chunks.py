from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.probe.wire.chunks import Piece, merge, model_cards, read_json, read_piece

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "usage",
                    "delta",
                    "message",
                    "content",
                    "text",
                    "finish_reason",
                    "completion_tokens",
                    "prompt_tokens",
                    "error",
                    "data",
                    "id",
                    "tool_calls",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"delta": {"content": "a"}}, True),
        ({"delta": {"content": ""}}, False),
        ({"delta": {"content": None, "reasoning_content": "a"}}, True),
        ({"delta": {"reasoning": "a"}}, True),
        ({"delta": {"tool_calls": [{"index": 0}]}}, True),
        ({"delta": {"role": "assistant"}}, False),
        ({"text": " a"}, True),
        ({"text": ""}, False),
        ({"message": {"content": "whole"}}, True),
        ({"message": {"content": None, "tool_calls": [{"function": {"name": "f"}}]}}, True),
        ({"delta": {"refusal": "no"}}, True),
        ({"delta": {"function_call": {"arguments": "{"}}}, True),
        ({"delta": {"content": [{"type": "text", "text": "a"}]}}, True),
        ({"delta": {"content": []}}, False),
        ({"delta": {"content": [{}]}}, False),
        ({"delta": {"tool_calls": []}}, False),
        ({"delta": {"tool_calls": None, "function_call": None, "refusal": None}}, False),
        ({"delta": {"content": 5}}, False),
    ],
)
def test_a_token_of_any_channel(choice: dict[str, object], expected: bool) -> None:
    assert read_piece(json.dumps({"choices": [choice]})).has_token is expected


def test_the_usage_chunk_has_no_choices() -> None:
    piece = read_piece('{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}')
    assert piece == Piece(output_tokens=9, prompt_tokens=3)


@pytest.mark.parametrize("count", [True, -1, 1.5, "7", None, 2**60])
def test_counts_that_are_none(count: object) -> None:
    assert read_piece(json.dumps({"usage": {"completion_tokens": count}})).output_tokens is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nonsense", "not_json"),
        ("[1]", "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"error": {"message": "out of memory"}}', "error_event"),
        ('{"error": "out of memory", "error_type": "generation"}', "error_event"),
        ('{"object": "error", "message": "m", "code": 400}', "error_event"),
        ('{"choices": [{"finish_reason": "error"}]}', "error_event"),
        ('{"a": 1}\n{"a": 2}', "ndjson"),
        ('{"a": 1}\nrest', "ndjson"),
        ('[1]\n{"a": 2}', "not_json"),
        ("nonsense\nnonsense", "not_json"),
        ('{"error": null, "choices": []}', None),
    ],
)
def test_faults(text: str, fault: str | None) -> None:
    assert read_piece(text).fault == fault


def test_an_early_usage_is_kept_and_a_later_one_wins() -> None:
    first = read_piece('{"choices": [], "usage": {"completion_tokens": 1}}')
    token = read_piece('{"choices": [{"delta": {"content": "x"}}], "usage": null}')
    last = read_piece(
        '{"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"completion_tokens": 2}}'
    )
    assert merge(first, token) == Piece(has_token=True, output_tokens=1)
    assert merge(merge(first, token), last) == Piece(
        has_token=True, output_tokens=2, finish_reason="stop"
    )


@given(values)
def test_no_answer_breaks_it(value: object) -> None:
    text = json.dumps(value)
    read_piece(text)
    assert all(isinstance(card["id"], str) for card in model_cards(read_json(text)))


def test_models() -> None:
    listed = {"data": [{"id": "a"}, {"id": "b"}, {"name": "c"}, {"id": "x\ny"}, {"id": "z" * 999}]}
    assert [card["id"] for card in model_cards(listed)] == ["a", "b"]
    assert model_cards(None) == []
