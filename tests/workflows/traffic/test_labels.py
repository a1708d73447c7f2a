"""A segment is a column of labels: texts are refused, whatever their column is called."""

from __future__ import annotations

import csv
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slotwise_workflows.errors import UsageError
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic, write_parquet

Read = Callable[[Sequence[str]], Traffic]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a log with these values in the column `about`, as its segment."""

    def from_values(values: Sequence[str]) -> Traffic:
        path = tmp_path / "x.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                [("ts", "out_tokens", "about"), *((i, 5, v) for i, v in enumerate(values))]
            )
        return read_traffic([str(path)], ReadOptions(time_unit="s", segments=("about",)))

    return from_values


@pytest.mark.parametrize(
    "values",
    [
        ["x" * 200, "chat", "chat"],
        [f"Customer {i}" for i in range(19)],  # too few to say whether they repeat
        [f"Customer {i % 20}" for i in range(40)],  # each twice
        [f"問い合わせ{i % 5}" for i in range(40)],
        [str(uuid.UUID(int=i)) for i in range(40)],
        [str(i) for i in range(40)],
        [f"/v1/a/rather/long/path/of/an/address/number/{i % 20}" for i in range(40)],
        [""] * 30 + [f"Customer {i}" for i in range(19)],
    ],
)
def test_labels_are_kept_as_they_are(values: list[str], read: Read) -> None:
    assert read(values).table["about"].to_list() == [value or None for value in values]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["chat", "x" * 201], "x.csv:3: .*this value has 201 characters"),
        (["chat", "one\ntwo"], "x.csv:3: .*this value has several lines"),
        (["one\u2028two"], "several lines"),
        ([f"Tell me of {i}" for i in range(20)], "20 of its 20 values are different"),
        ([f"天気は{i}" for i in range(40)], "40 of its 40 values are different"),
        (
            [f"Tell me of {i}" for i in range(21)] + ["Tell me of 0"] * 19,
            "21 of its 40 values are different",
        ),
        ([f"{i:041}" for i in range(20)], "20 of its 20"),
        ([f"Tell me of {i}" for i in range(20)] + [""] * 40, "20 of its 20"),
    ],
)
def test_texts_are_refused_and_not_told(values: list[str], told: str, read: Read) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        read(values)
    message = str(caught.value)
    assert "--segment about names a column of text" in message
    assert "Name a column of labels" in message
    assert not any(value in message for value in values if len(value) > 5)


def test_rows_that_are_left_out_have_no_say(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"out_tokens,about\n0,{'x' * 300}\n5,chat\n", encoding="utf-8")
    traffic = read_traffic([str(path)], ReadOptions(segments=("about", "about")))
    assert traffic.segments == ("about",)
    assert traffic.table["about"].to_list() == ["chat"]


def test_a_name_of_a_model_is_short(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    text = "the quarterly numbers are bad " * 20
    path.write_text(f"out_tokens,model\n5,{text}\n6,m\n", encoding="utf-8")
    traffic = read_traffic([str(path)])
    assert traffic.table["gen_ai.request.model"].to_list() == [text[:200], "m"]
    write_parquet(traffic, tmp_path / "t.parquet")
    assert text[:201].encode() not in (tmp_path / "t.parquet").read_bytes()
