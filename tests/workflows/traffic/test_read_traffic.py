"""`read_traffic` with its options, several files, and whatever a log may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slotwise_workflows.errors import InputError, SlotwiseError, UsageError
from slotwise_workflows.traffic import CANONICAL, ReadOptions, Traffic, read_traffic, write_parquet
from slotwise_workflows.traffic.conditions import where_condition

DAY = 1_788_220_800
OUTPUT = "gen_ai.usage.output_tokens"
OWN = "t_ms,out,in,cap,route,took\n" + "".join(
    f"{1000 * i},{10 + i},{5 * i},64,{'ab'[i % 2]},{100 * i}\n" for i in range(6)
)
MAP = {"arrival": "t_ms", "output_tokens": "out", "prompt_tokens": "in", "max_tokens": "cap"}


def put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


def test_table_of_ones_own(tmp_path: Path) -> None:
    log = put(tmp_path, "own.csv", OWN)
    options = ReadOptions(
        map={**MAP, "latency": "took [ms]"}, time_unit="ms", segments=("route",), where=("out>=12",)
    )
    traffic = read_traffic([log], options)
    assert traffic.format == "plain"
    assert traffic.table[OUTPUT].to_list() == [12, 13, 14, 15]
    assert traffic.table["start_time"].to_list() == [i * 10**9 for i in range(2, 6)]
    assert traffic.table["gen_ai.request.max_tokens"].to_list() == [64] * 4
    assert traffic.table["e2e_latency"].to_list() == pytest.approx([0.2, 0.3, 0.4, 0.5])
    assert traffic.table["route"].to_list() == ["a", "b", "a", "b"]
    assert traffic.segments == ("route",)
    assert traffic.excluded == {"filtered": 2}
    assert traffic.clock == "relative"
    assert traffic.flags == ()
    assert tuple(traffic.table.columns) == (*CANONICAL, "route")
    assert traffic.table.schema == {**CANONICAL, "route": pl.String()}


def test_a_mapped_column_is_used_for_nothing_else(tmp_path: Path) -> None:
    rows = [f"{i},{10 + i},100,{i % 2}" for i in range(6)]
    log = put(tmp_path, "own.csv", "ts,output_tokens,prompt_tokens,cached\n" + "\n".join(rows))
    cache = "gen_ai.usage.cache_read.input_tokens"
    assert read_traffic([log], ReadOptions()).excluded == {"cache_hit": 3}
    traffic = read_traffic([log], ReadOptions(map={"cached_tokens": "cached"}))
    assert traffic.excluded == {}
    assert traffic.table[cache].to_list() == [0, 1, 0, 1, 0, 1]


def test_a_column_mapped_to_what_it_means_keeps_its_other_uses(tmp_path: Path) -> None:
    text = "ts,output_tokens,input_tokens,cache_read_input_tokens\n0,5,10,90\n1,6,20,80\n"
    log = put(tmp_path, "own.csv", text)
    traffic = read_traffic([log], ReadOptions(map={"cached_tokens": "cache_read_input_tokens"}))
    assert traffic.table["gen_ai.usage.input_tokens"].to_list() == [100, 100]


def test_unit_of_a_mapped_time(tmp_path: Path) -> None:
    log = put(tmp_path, "own.csv", OWN)
    traffic = read_traffic([log], ReadOptions(map={**MAP, "arrival": "t_ms [ms]"}))
    assert traffic.table["start_time"].to_list()[-1] == 5 * 10**9


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        (ReadOptions(map={"output_tokens": "outt"}), InputError, "Did you mean out?"),
        (ReadOptions(map={"output": "out"}), UsageError, "Did you mean output_tokens?"),
        (ReadOptions(map={**MAP, "model": "a + b"}), UsageError, "cannot be computed"),
        (ReadOptions(map={**MAP, "model": "a [ms]"}), UsageError, "no unit of time"),
        (ReadOptions(map=MAP, where=("rout=a",)), InputError, "Did you mean route?"),
        (ReadOptions(map=MAP, where=("route",)), UsageError, "is not a condition"),
        (ReadOptions(map=MAP, segments=("rout",)), InputError, "Did you mean route?"),
        (ReadOptions(map=MAP, segments=("source",)), UsageError, "in the table anyway"),
        (ReadOptions(format="moonkake"), UsageError, "Did you mean mooncake?"),
        (ReadOptions(format="mooncake"), InputError, "not Mooncake trace"),
        (ReadOptions(map=MAP, timezone="Asia/Tokio"), UsageError, "no time zone"),
        (ReadOptions(map=MAP, where=("out>99",)), InputError, "0 requests after exclusions"),
    ],
)
def test_option_that_does_not_fit(
    options: ReadOptions, kind: type[SlotwiseError], told: str, tmp_path: Path
) -> None:
    log = put(tmp_path, "own.csv", OWN)
    with pytest.raises(kind, match=told.replace("?", r"\?")) as caught:
        read_traffic([log], options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "value", "met"),
    [
        ("a=1", 1, True),
        ("a==1", "1.0", True),
        ("a != 1", 2, True),
        ("a!=1", None, True),
        ("a=1", None, False),
        ("a<10", "9", True),
        ("a>=10", 9, False),
        ("a<2026-09-02", "2026-09-01T00:00:00Z", True),
        ("a=true", True, True),
        ("a='x y'", "x y", True),
        ("a.b=3", {"b": 3}, True),
    ],
)
def test_where(condition: str, value: Any, met: bool) -> None:
    assert where_condition(condition)[1]({"a": value}) is met


def test_files_of_one_format_are_one_log(tmp_path: Path) -> None:
    for name, start in (("a.jsonl", 0), ("b.jsonl", 100)):
        rows = [
            {"rid": f"req-{i}", "ts": DAY + start + i, "completion_tokens": 5 + i} for i in range(3)
        ]
        rows.append({"rid": "same", "ts": DAY + 50, "completion_tokens": 9})
        put(tmp_path, name, "".join(json.dumps(row) + "\n" for row in rows))
    traffic = read_traffic([str(tmp_path)])
    # `same` is the same request by id and arrival; the others' ids only start again.
    assert len(traffic) == 7
    assert traffic.excluded == {"duplicate": 1}
    assert [Path(file.name).name for file in traffic.files] == ["a.jsonl", "b.jsonl"]
    assert all(len(file.sha256) == 64 and file.size > 0 for file in traffic.files)
    assert traffic.table["source"].to_list()[0].endswith("a.jsonl:1")


def test_files_of_several_formats_are_refused_by_name(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-09-01 00:00:00,1,2\n")
    put(tmp_path, "b.jsonl", '{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}\n')
    put(tmp_path, "c.txt", "hello\nworld\n")
    with pytest.raises(InputError) as caught:
        read_traffic([str(tmp_path)])
    for told in ("a.csv is Azure", "b.jsonl is Mooncake", "c.txt is not usable"):
        assert told in str(caught.value)


def test_two_formats_that_fit_equally_are_both_named(tmp_path: Path) -> None:
    record = {
        "arrived_at": 1,
        "num_prefill_tokens": 1,
        "num_decode_tokens": 1,
        "arrival_timestamp": 1,
        "prompt_size": 1,
        "token_size": 1,
    }
    log = put(tmp_path, "x.jsonl", json.dumps(record) + "\n")
    with pytest.raises(InputError, match="vidur and splitwise equally"):
        read_traffic([log])
    assert read_traffic([log], ReadOptions(format="vidur")).format == "vidur"


def test_unparsable_rows_are_told_by_place(tmp_path: Path) -> None:
    log = put(tmp_path, "x.jsonl", f'{{"ts":{DAY},"completion_tokens":5}}\n{{"ts":{DAY},"compl')
    traffic = read_traffic([log])
    assert traffic.excluded == {"unparsable": 1}
    assert traffic.notes[0].startswith(f"{log}:2: ")


def test_prompts_are_never_kept_or_told(tmp_path: Path) -> None:
    secret = "the quarterly numbers are bad"
    rows = [
        {"ts": DAY, "prompt": secret, "messages": [secret], "completion_tokens": 5},
        {"ts": DAY + 1, "prompt": secret, "completion_tokens": secret},
        {"ts": secret, "prompt": secret, "completion_tokens": 6},
        {"ts": DAY + 2, "prompt": secret, "completion_tokens": 7},
    ]
    log = put(tmp_path, "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    traffic = read_traffic([log])
    write_parquet(traffic, tmp_path / "t.parquet")
    assert traffic.excluded == {"unparsable": 2}
    assert secret not in repr(traffic)
    assert secret.encode() not in (tmp_path / "t.parquet").read_bytes()


def test_own_table_is_read_again(tmp_path: Path) -> None:
    log = put(tmp_path, "own.csv", OWN)
    options = ReadOptions(map=MAP, time_unit="ms", segments=("route",))
    traffic = read_traffic([log], options)
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_parquet(traffic, first)
    write_parquet(traffic, second)
    assert first.read_bytes() == second.read_bytes()
    again = read_traffic([str(first)], ReadOptions(segments=("route",)))
    assert again.format == "slotwise_traffic"
    assert again.table.drop("source").equals(traffic.table.drop("source"), null_equal=True)


def test_table_that_cannot_be_written(tmp_path: Path) -> None:
    traffic = read_traffic([put(tmp_path, "own.csv", OWN)], ReadOptions(map=MAP))
    with pytest.raises(InputError, match="cannot be written"):
        write_parquet(traffic, tmp_path / "nowhere" / "t.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["own.csv"]


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    log = put(tmp_path, "own.csv", OWN)
    read_traffic(
        [log], ReadOptions(map=MAP), on_progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (len(OWN), len(OWN))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_names_out_of_a_log_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    log = put(tmp_path, "x.jsonl", json.dumps({"a\x1b[31m\n": 1}) + "\n")
    with pytest.raises(InputError) as caught:
        read_traffic([log])
    assert str(caught.value).isprintable()


def read_or_told(log: str) -> tuple[Traffic | None, str]:
    try:
        return read_traffic([log]), ""
    except InputError as error:
        return None, str(error)


KEYS = st.sampled_from(
    [
        *("ts", "t", "created", "created_at", "id", "usage", "choices", "model", "status", "error"),
        *("completion_tokens", "prompt_tokens", "output_tokens", "stream", "n", "latency_ms"),
        *("startTime", "endTime", "type", "usageDetails", "resourceSpans", "data", "message"),
        *("input_lens", "output_lens", "timestamp", "input_length", "output_length", "hash_ids"),
        *("requests", "finish_reason", "cache_hit", "done", "total_tokens", "end_time", "ttft_ms"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(DAY, DAY + 99)
    | st.integers(0, 99)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["2026-09-01T00:00:00Z", "9/1/2026 0:00", "1.500", "N/A", "{'a': 1}", "[]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=8), min_size=1, max_size=5))
def test_any_log_is_accounted_for_or_refused_in_one_line(tmp_path: Path, rows: list[Any]) -> None:
    log = put(tmp_path, "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    traffic, told = read_or_told(log)
    assert "\n" not in told
    if traffic is None:
        return
    assert traffic.rows == len(traffic) + sum(traffic.excluded.values())
    assert traffic.table[OUTPUT].min() >= 1  # type: ignore[operator]
    assert (traffic.clock is None) == (traffic.table["start_time"].null_count() == len(traffic))
    if traffic.clock is not None:
        assert traffic.table["start_time"].null_count() == 0
    assert len(traffic.workload()) == len(traffic)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 40),  # id
            st.integers(-1, 500),  # tokens
            st.sampled_from([200, 200, 200, 500]),
            st.sampled_from(["", "true", "false"]),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_reconciliation_against_brute_force(tmp_path: Path, rows: list[Any]) -> None:
    text = "ts,rid,completion_tokens,status,cache_hit\n" + "".join(
        f"{DAY + i},r{rid},{tokens},{status},{hit}\n"
        for i, (rid, tokens, status, hit) in enumerate(rows)
    )
    log = put(tmp_path, "x.csv", text)
    good = [r for r in rows if r[2] == 200 and r[3] != "true" and r[1] > 0]
    want = {rid: max(r[1] for r in good if r[0] == rid) for rid in {r[0] for r in good}}
    if not want:
        with pytest.raises(InputError, match="0 requests"):
            read_traffic([log])
        return
    traffic = read_traffic([log])
    assert sorted(traffic.table[OUTPUT].to_list()) == sorted(want.values())
    assert traffic.excluded.get("failed", 0) == sum(r[2] == 500 for r in rows)
    assert traffic.excluded.get("duplicate", 0) == len(good) - len(want)


def test_naive_clock_is_not_set_back_where_another_file_begins(tmp_path: Path) -> None:
    rows = "time,completion_tokens\n2026-09-01 01:00:0{0},1\n2026-09-01 01:30:0{0},2\n"
    logs = [put(tmp_path, f"{i}.csv", rows.format(i)) for i in range(2)]
    traffic = read_traffic(logs)
    assert traffic.clock == "epoch"
    assert set(traffic.flags) == {"naive_timestamps_assumed_utc", "reordered"}


def test_two_clocks_are_never_subtracted(tmp_path: Path) -> None:
    log = put(
        tmp_path,
        "x.jsonl",
        f'{{"ts":{DAY},"end_time":27536.5,"first_token_at":27530.1,"completion_tokens":5}}\n'
        f'{{"ts":{DAY + 1},"end_time":27538.5,"first_token_at":27531.1,"completion_tokens":6}}\n',
    )
    traffic = read_traffic([log])
    assert traffic.flags == ("two_clocks",)
    assert traffic.table["e2e_latency"].null_count() == 2
    assert traffic.table["gen_ai.response.time_to_first_chunk"].null_count() == 2
