"""The canonical table on its own: what its file tells when it is read again as a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slotwise_sim.workload import Workload
from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic, write_parquet
from slotwise_workflows.traffic.model import made_traffic

DAY = 1_788_220_800


def put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


def read_back(traffic: Traffic, folder: Path) -> Traffic:
    """What reading a table's own file gives."""
    write_parquet(traffic, folder / "traffic.parquet")
    return read_traffic([str(folder / "traffic.parquet")])


MONOTONIC = json.dumps(
    {
        "start_times": [27530.25, 27531.5],
        "input_lens": [5, 6],
        "output_lens": [10, 20],
        "ttfts": [0.1, 0.2],
        "itls": [[0.1], [0.1]],
        "errors": ["", ""],
        "generated_texts": [],
    }
)
TOLD = ReadOptions(map={"arrival": "ts [s]", "clock": "counts_from"})


@pytest.mark.parametrize(
    ("text", "options", "clock"),
    [
        (f"ts,out_tokens\n{DAY},1\n{DAY + 1},2\n", ReadOptions(), "epoch"),
        # The first moments of 1970, whose nanoseconds have few digits, 0 among them.
        ("ts,out_tokens\n1970-01-01T00:00:00Z,1\n1970-01-01T00:00:05Z,2\n", None, "epoch"),
        ("ts_s,out_tokens\n0,1\n5,2\n", None, "relative"),
        # Twenty years by a relative clock have the digits of a date.
        ("ts,out_tokens,counts_from\n5,1,relative\n631152001,2,relative\n", TOLD, "relative"),
        ("ts,out_tokens,counts_from\n5,1,monotonic\n6,2,monotonic\n", TOLD, "monotonic"),
        (MONOTONIC, None, "monotonic"),
        ("out_tokens\n1\n2\n", None, None),
        # A clock put back to winter time, with ends and durations that look as if they told more.
        (
            "start_time,end_time,latency_s,out_tokens\n"
            "2026-10-25 02:50:00,2026-10-25 02:51:00,60,1\n"
            "2026-10-25 02:05:00,2026-10-25 02:06:00,60,2\n"
            "2026-10-25 02:10:00,2026-10-25 02:11:00,60,3\n",
            None,
            None,
        ),
    ],
)
def test_a_table_read_again_has_the_same_clock(
    text: str, options: ReadOptions | None, clock: str | None, tmp_path: Path
) -> None:
    traffic = read_traffic([put(tmp_path, "x", text)], options or ReadOptions())
    assert traffic.clock == clock
    assert traffic.table["clock"].unique().to_list() == [clock]
    again = read_back(traffic, tmp_path)
    assert again.clock == clock
    assert again.table.drop("source").equals(traffic.table.drop("source"), null_equal=True)


def test_made_requests_read_again_are_the_same(tmp_path: Path) -> None:
    made = made_traffic(
        Workload(np.array([0.0, 0.25, 7e8]), np.array([1, 2, 3]), np.array([4, 5, 6])),
        format_id="synthetic",
    )
    again = read_back(made, tmp_path)
    assert again.clock == made.clock == "relative"
    same = made.table.drop("source")
    assert again.table.drop("source").equals(same, null_equal=True)


def test_an_end_of_another_clock_is_not_kept(tmp_path: Path) -> None:
    row = '{{"ts":{},"end_time":{}.5,"completion_tokens":5}}\n'
    text = "".join(row.format(DAY + i, 27536 + i) for i in range(2))
    traffic = read_traffic([put(tmp_path, "x.jsonl", text)])
    assert traffic.flags == ("two_clocks",)
    for table in (traffic.table, read_back(traffic, tmp_path).table):
        assert table["end_time"].null_count() == table["e2e_latency"].null_count() == 2


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("epoch", "x.csv:3: the clock changes \\(relative -> epoch\\)"),
        ("wall", "x.csv:3: there is no clock 'wall'"),
    ],
)
def test_rows_of_one_log_have_one_clock(second: str, told: str, tmp_path: Path) -> None:
    text = f"ts,out_tokens,counts_from\n5,1,relative\n6,2,{second}\n"
    with pytest.raises(InputError, match=told):
        read_traffic([put(tmp_path, "x.csv", text)], TOLD)


def test_how_an_answer_was_cut_off_and_that_no_cache_gave_it(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"status": 200, "cache_hit": False},
        {"status": 499, "cache_hit": "None"},
        {"status": "cancelled"},
        {"status": "client_disconnect", "error": "the prompt 'secret' was cut off"},
        {"status": "the prompt 'secret' made an error", "finish_reason": "abort"},
        {"finish_reason": "abort", "cache_hit": "miss"},
    ]
    text = "".join(json.dumps({"completion_tokens": 5, **row}) + "\n" for row in rows)
    traffic = read_traffic([put(tmp_path, "x.jsonl", text)])
    for table in (traffic.table, read_back(traffic, tmp_path).table):
        assert table["error.type"].to_list() == [
            *(None, "499", "cancelled", "client_disconnect", None, None)
        ]
        assert table["cache_hit"].to_list() == [False, None, None, None, None, False]
        assert table["aborted"].to_list() == [False, True, True, True, True, True]
